"""`/api/grants`: what the agent may do without asking, and taking that back."""

from fastapi import APIRouter

from backburner.actions import browse, tending
from backburner.api.auth import Reader, TheDeps, Writer
from backburner.api.pages import Page
from backburner.api.schemas import Id, refusals
from backburner.api.shown import GrantOut
from backburner.core.ids import ConversationId, GrantId


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["grants"])

    @router.get(
        "/conversations/{which}/grants", summary="List what is allowed", responses=refusals(404)
    )
    async def list_grants(which: Id, deps: TheDeps, caller: Reader) -> Page[GrantOut]:
        """List what may be done in a conversation without asking, on one page, newest first."""
        found = await browse.grants(deps, caller.user, ConversationId(which))
        return Page(items=[GrantOut.of(given) for given in found], next=None)

    @router.delete(
        "/grants/{which}", summary="Take a grant back", status_code=204, responses=refusals(404)
    )
    async def revoke_grant(which: Id, deps: TheDeps, caller: Writer) -> None:
        """Take it back: the next call that would need it is asked about."""
        await tending.revoke(deps, caller.user, GrantId(which))

    return router
