"""`/api/notices`: list notices and mark them as seen."""

from fastapi import APIRouter

from backburner.actions import browse, notices
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.notice import NoticeOut, SeenCountOut, SeenNoticesBody
from backburner.core.ids import NoticeId

router = APIRouter(prefix="/api/notices", tags=["notices"], route_class=IdempotentRoute)


@router.get("", summary="List notices")
async def list_notices(
    deps: AppDeps, caller: Reader, *, unseen: bool = False, paging: Paging
) -> PageOut[NoticeOut]:
    """List notices, newest first."""
    after = paging.after(str)
    page = await browse.notices(deps, caller.user, after, unseen=unseen, limit=paging.limit)
    return make_page(page, NoticeOut.of)


@router.post("/seen", summary="Mark notices as seen", responses=error_responses(404))
async def mark_notices_seen(body: SeenNoticesBody, deps: AppDeps, caller: Writer) -> SeenCountOut:
    if body.up_to is not None:
        count = await notices.mark_seen_until(deps, caller.user, NoticeId(body.up_to))
    else:
        count = await notices.mark_seen(
            deps, caller.user, [NoticeId(text) for text in body.ids or ()]
        )
    return SeenCountOut(seen=count)
