"""`/api/notices`: what users were told, and noting that they have seen it."""

from fastapi import APIRouter
from pydantic import BaseModel, Field, model_validator

from backburner.actions import browse, notices
from backburner.api.http import pages
from backburner.api.http.auth import Reader, TheDeps, Writer
from backburner.api.http.idempotency import KeyedRoute
from backburner.api.http.pages import MOST, USUAL, Cursor, Limit, Page
from backburner.api.schemas.base import BODY, Body, example, refusals
from backburner.api.schemas.shown import NoticeOut
from backburner.core.errors import BadRequest
from backburner.core.ids import NoticeId


class WhatWasSeen(Body):
    """Some, or all up to one: one of both."""

    model_config = example(up_to="n_0123456789abcdefghjkmnpqrs")

    ids: list[str] | None = Field(default=None, max_length=MOST)
    up_to: str | None = Field(default=None, description="This one and all before it.")

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "WhatWasSeen":
        if (self.ids is None) == (self.up_to is None):
            raise BadRequest("Say which were seen.", hint="Give either `ids` or `up_to`.")
        return self


class SeenNow(BaseModel):
    model_config = example(seen=3)

    seen: int = Field(description="How many had not been seen before.")


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["notices"], route_class=KeyedRoute)

    @router.get("/notices", summary="List notices", responses=refusals())
    async def list_notices(
        deps: TheDeps,
        caller: Reader,
        *,
        unseen: bool = False,
        limit: Limit = USUAL,
        cursor: Cursor = None,
    ) -> Page[NoticeOut]:
        """List what the user was told, the newest first."""
        after = pages.read(cursor, str)
        found = await browse.notices(deps, caller.user, after, unseen=unseen, limit=limit)
        return pages.show(found, NoticeOut.of)

    @router.post("/notices/seen", summary="Note what was seen", responses=refusals(404, 409, *BODY))
    async def see_notices(body: WhatWasSeen, deps: TheDeps, caller: Writer) -> SeenNow:
        if body.up_to is not None:
            count = await notices.mark_seen_until(deps, caller.user, NoticeId(body.up_to))
        else:
            which = [NoticeId(one) for one in body.ids or ()]
            count = await notices.mark_seen(deps, caller.user, which)
        return SeenNow(seen=count)

    return router
