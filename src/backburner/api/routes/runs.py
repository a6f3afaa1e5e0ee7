"""`/api/runs`: the history of runs, with their tool calls."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import (
    DEFAULT_PAGE_SIZE,
    Cursor,
    Limit,
    PageOut,
    make_page,
    read_cursor,
)
from backburner.api.schemas.base import ConversationIdPath, RunIdPath
from backburner.api.schemas.run import RunDetailsOut, RunOut, ToolCallOut

router = APIRouter(prefix="/api", tags=["runs"])


@router.get(
    "/conversations/{conversation_id}/runs",
    summary="List the runs of a conversation",
    responses=error_responses(404),
)
async def list_runs(
    conversation_id: ConversationIdPath,
    deps: AppDeps,
    caller: Reader,
    limit: Limit = DEFAULT_PAGE_SIZE,
    cursor: Cursor = None,
) -> PageOut[RunOut]:
    """List runs, newest first. Skipped slots are included."""
    after = read_cursor(cursor, datetime, int, str)
    page = await browse.runs(deps, caller.user, conversation_id, after, limit=limit)
    return make_page(page, RunOut.of)


@router.get("/runs/{run_id}", summary="Get a run", responses=error_responses(404))
async def get_run(run_id: RunIdPath, deps: AppDeps, caller: Reader) -> RunDetailsOut:
    """Get a run with all its tool calls."""
    run, calls = await browse.run(deps, caller.user, run_id)
    return RunDetailsOut.of(run, tool_calls=[ToolCallOut.of(call) for call in calls])
