"""`/api/runs`: the history of runs, with their tool calls."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query

from backburner.actions import browse
from backburner.actions.work import run_pages
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import ConversationIdPath, RunIdPath
from backburner.api.schemas.run import (
    CallSummaryOut,
    RunListItemOut,
    RunOut,
)
from backburner.api.schemas.views.run_page import ConversationStatsOut, RunDetailsOut
from backburner.core.run import RunStatus

router = APIRouter(prefix="/api", tags=["runs"])


@router.get("/conversations/{conversation_id}/runs", summary="List the runs of a conversation")
async def list_runs(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader, paging: Paging
) -> PageOut[RunOut]:
    """List runs, newest first. Skipped slots are included."""
    page = await browse.runs(
        deps, caller.user, conversation_id, paging.after(datetime, int, str), limit=paging.limit
    )
    return make_page(page, RunOut.of)


@router.get("/runs", summary="List runs of all conversations")
async def list_all_runs(
    deps: AppDeps,
    caller: Reader,
    *,
    status: Annotated[
        RunStatus | Literal["ended"],
        Query(description="`ended`: with any result. Default: those in progress."),
    ] = RunStatus.RUNNING,
    paging: Paging,
) -> PageOut[RunListItemOut]:
    """List runs with one status: those in progress or queued newest first, others last ended first.

    A run that ends between two pages is not on later pages of its old status.
    """
    page = await run_pages.listed(
        deps,
        caller.user,
        None if status == "ended" else status,
        paging.after(datetime, str),
        limit=paging.limit,
    )
    return make_page(page, RunListItemOut.of_listed)


@router.get("/runs/{run_id}/calls", summary="List the tool calls of a run")
async def list_calls(
    run_id: RunIdPath, deps: AppDeps, caller: Reader, paging: Paging
) -> PageOut[CallSummaryOut]:
    """List tool calls without their results, newest first."""
    page = await browse.call_summaries(
        deps, caller.user, run_id, paging.after(datetime, str), limit=paging.limit
    )
    return make_page(page, CallSummaryOut.of)


@router.get("/runs/{run_id}", summary="Get a run")
async def get_run(run_id: RunIdPath, deps: AppDeps, caller: Reader) -> RunDetailsOut:
    """Get a run with what started it, its timeline, cost, tool calls, and what it was told."""
    return RunDetailsOut.of_page(await run_pages.load_page(deps, caller.user, run_id))


@router.get("/conversations/{conversation_id}/stats", summary="Measure a conversation")
async def get_stats(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> ConversationStatsOut:
    """Measure its last 20 runs: time, tokens and cost of each, and their medians."""
    return ConversationStatsOut.of(await run_pages.stats(deps, caller.user, conversation_id))
