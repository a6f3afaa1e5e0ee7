"""Loads notices as the sidebar's tray and the page of all notices show them."""

from collections.abc import Sequence
from dataclasses import dataclass

from backburner.actions import notices
from backburner.actions.deps import Deps
from backburner.api.http.pages import PageQuery, write_cursor
from backburner.core.ids import UserId
from backburner.ports import PageKey
from backburner.web.display import Display
from backburner.web.views.notice import ShownNotice, show_notice

MAX_IN_TRAY = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownNotices:
    rows: Sequence[ShownNotice]
    unseen: int
    next_page: str | None
    #: Whose they are.
    user: UserId


async def load_tray(deps: Deps, user: UserId) -> tuple[ShownNotices, Display]:
    return await load_notices(deps, user, PageQuery(limit=MAX_IN_TRAY))


async def load_notices(
    deps: Deps, user: UserId, paging: PageQuery, *, down_to: PageKey | None = None
) -> tuple[ShownNotices, Display]:
    found = await notices.load_list(
        deps, user, paging.after(str), limit=paging.limit, down_to=down_to
    )
    display = Display(found.now, found.zone)
    shown = ShownNotices(
        rows=[show_notice(row, display, found.open_questions) for row in found.page.items],
        unseen=found.unseen,
        next_page=write_cursor(found.page.next_key),
        user=user,
    )
    return shown, display
