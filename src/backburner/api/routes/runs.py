"""`/api/runs`: the history of runs, with their tool calls."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import ConversationIdPath, RunIdPath
from backburner.api.schemas.run import RunDetailsOut, RunOut, ToolCallOut

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


@router.get("/runs/{run_id}", summary="Get a run")
async def get_run(run_id: RunIdPath, deps: AppDeps, caller: Reader) -> RunDetailsOut:
    """Get a run with all its tool calls."""
    run, calls = await browse.run(deps, caller.user, run_id)
    return RunDetailsOut.of(run, tool_calls=[ToolCallOut.of(call) for call in calls])
