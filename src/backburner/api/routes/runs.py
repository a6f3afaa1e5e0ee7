"""`/api/runs`: what was done, when, by which profile, and how it ended."""

from datetime import datetime

from fastapi import APIRouter

from backburner.actions import browse
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import Id, refusals
from backburner.api.schemas.shown import RunOut, RunWithCalls, ToolCallOut
from backburner.core.ids import ConversationId, RunId


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["runs"])

    @router.get("/conversations/{which}/runs", summary="List its runs", responses=refusals(404))
    async def list_runs(
        which: Id, deps: TheDeps, caller: Reader, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[RunOut]:
        """List runs, the newest first; slots that nobody served are among them, as skipped."""
        after = pages.read(cursor, datetime, int, str)
        found = await browse.runs(deps, caller.user, ConversationId(which), after, limit=limit)
        return pages.show(found, RunOut.of)

    @router.get("/runs/{which}", summary="Look at a run", responses=refusals(404))
    async def get_run(which: Id, deps: TheDeps, caller: Reader) -> RunWithCalls:
        """Look at a run with all the tool calls that it made."""
        run, calls = await browse.run(deps, caller.user, RunId(which))
        return RunWithCalls.of(run, tool_calls=[ToolCallOut.of(call) for call in calls])

    return router
