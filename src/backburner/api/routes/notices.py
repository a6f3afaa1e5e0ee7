"""`/api/notices`: list notices and mark them as seen."""

from fastapi import APIRouter

from backburner.actions import browse, notices
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import BODY_ERRORS, error_responses
from backburner.api.http.pages import (
    DEFAULT_PAGE_SIZE,
    Cursor,
    Limit,
    PageOut,
    make_page,
    read_cursor,
)
from backburner.api.schemas.notice import NoticeOut, SeenCountOut, SeenNoticesBody
from backburner.core.ids import NoticeId

router = APIRouter(prefix="/api/notices", tags=["notices"], route_class=IdempotentRoute)


@router.get("", summary="List notices", responses=error_responses())
async def list_notices(
    deps: AppDeps,
    caller: Reader,
    *,
    unseen: bool = False,
    limit: Limit = DEFAULT_PAGE_SIZE,
    cursor: Cursor = None,
) -> PageOut[NoticeOut]:
    """List notices, newest first."""
    after = read_cursor(cursor, str)
    page = await browse.notices(deps, caller.user, after, unseen=unseen, limit=limit)
    return make_page(page, NoticeOut.of)


@router.post(
    "/seen", summary="Mark notices as seen", responses=error_responses(404, 409, *BODY_ERRORS)
)
async def mark_notices_seen(body: SeenNoticesBody, deps: AppDeps, caller: Writer) -> SeenCountOut:
    if body.up_to is not None:
        count = await notices.mark_seen_until(deps, caller.user, NoticeId(body.up_to))
    else:
        count = await notices.mark_seen(
            deps, caller.user, [NoticeId(text) for text in body.ids or ()]
        )
    return SeenCountOut(seen=count)
