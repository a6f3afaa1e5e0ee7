"""`/api/grants`: what the agent may do without asking, widening it, and taking it back."""

from datetime import datetime

from fastapi import APIRouter
from pydantic import Field

from backburner.actions import browse, grants
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.pages import USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import BODY, Body, Id, example, refusals
from backburner.api.schemas.shown import GrantOut
from backburner.core.ids import ConversationId, GrantId

MOST_WORDS = 1_000


class Wider(Body):
    model_config = example(words=["git", "log"])

    words: list[str] = Field(
        min_length=1, max_length=MOST_WORDS, description="One or more of its first words."
    )


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["grants"])
    _add_lists(router)
    _add_changes(router)
    return router


def _add_lists(router: APIRouter) -> None:
    @router.get("/grants", summary="List all that is allowed", responses=refusals())
    async def list_all_grants(
        deps: TheDeps, caller: Reader, limit: Limit = USUAL, cursor: Cursor = None
    ) -> Page[GrantOut]:
        """List what may be done without asking, in all conversations, newest first."""
        after = pages.read(cursor, datetime, str)
        found = await browse.all_grants(deps, caller.user, after, limit=limit)
        return pages.show(found, GrantOut.of)

    @router.get(
        "/conversations/{which}/grants", summary="List what is allowed", responses=refusals(404)
    )
    async def list_grants(which: Id, deps: TheDeps, caller: Reader) -> Page[GrantOut]:
        """List what may be done in a conversation without asking, on one page, newest first."""
        found = await browse.grants(deps, caller.user, ConversationId(which))
        return Page(items=[GrantOut.of(given) for given in found], next=None)


def _add_changes(router: APIRouter) -> None:
    path = "/grants/{which}"

    @router.patch(path, summary="Widen a grant", responses=refusals(404, *BODY))
    async def widen_grant(which: Id, body: Wider, deps: TheDeps, caller: Writer) -> GrantOut:
        """Let it cover every command that begins with fewer of its words."""
        words = tuple(body.words)
        return GrantOut.of(await grants.widen(deps, caller.user, GrantId(which), words))

    @router.delete(path, summary="Take a grant back", status_code=204, responses=refusals(404))
    async def revoke_grant(which: Id, deps: TheDeps, caller: Writer) -> None:
        """Take it back: the next call that would need it is asked about."""
        await grants.revoke(deps, caller.user, GrantId(which))
