"""`/api/runs`: the history of runs, with their tool calls."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query

from backburner.actions import browse
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import ConversationIdPath, RunIdPath
from backburner.api.schemas.run import (
    CallSummaryOut,
    RunDetailsOut,
    RunListItemOut,
    RunOut,
    ToolCallOut,
)
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
    status: Annotated[RunStatus, Query(description="Default: those in progress.")] = (
        RunStatus.RUNNING
    ),
    paging: Paging,
) -> PageOut[RunListItemOut]:
    """List runs with one status: those in progress or queued newest first, others last ended first.

    A run that ends between two pages is not on later pages of its old status.
    """
    page = await browse.runs_by_status(
        deps, caller.user, status, paging.after(datetime, str), limit=paging.limit
    )
    return make_page(page, RunListItemOut.of_row)


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
    """Get a run with all its tool calls."""
    run, calls = await browse.run(deps, caller.user, run_id)
    return RunDetailsOut.of(run, tool_calls=[ToolCallOut.of(call) for call in calls])
