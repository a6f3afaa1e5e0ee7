"""The sidebar: pages, conversations with their states, search, and who is signed in."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from backburner.actions import browse
from backburner.actions.accounts import page_facts
from backburner.actions.accounts.page_facts import PageFacts
from backburner.actions.browse import DisplayContext
from backburner.actions.deps import Deps
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import DEFAULT_PAGE_SIZE, PageQuery, Paging, write_cursor
from backburner.core.accounts import Caller
from backburner.core.ids import ConversationId
from backburner.core.validation import check_text
from backburner.ports import ConversationFilter, ConversationRow
from backburner.web.display import Display, format_money
from backburner.web.notice_list import load_tray
from backburner.web.rendering import load_words, respond
from backburner.web.views.conversation_row import ShownRow, show_row
from backburner.web.views.list_filter import ListFilter, ListQuery

MAX_ROWS_ASKED = 20
MAX_SEARCH_CHARS = 200
#: More rows than this are not loaded again at once.
MAX_ROWS = 1_000
MAX_SEARCHES = 10

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class ShownUser:
    name: str
    initials: str
    spent: str
    #: Of the allowance, of 100.
    part: int | None
    paused: bool
    #: By an operator: only one of those resumes it.
    all_paused: bool


@dataclass(frozen=True, slots=True)
class Navigation:
    needs_you: int
    tasks: int
    working: int


async def load_display(deps: AppDeps, caller: Reader) -> Display:
    present = await page_facts.load_present(deps, caller.user)
    return Display(present.now, present.zone)


#: Times relative to now, in the zone of the caller.
Shown = Annotated[Display, Depends(load_display)]


async def read_list_query(
    state: ListFilter | Literal[""] = "",
    q: Annotated[str, Query(max_length=MAX_SEARCH_CHARS)] = "",
) -> ListQuery:
    return ListQuery(state or None, check_text("q", q, limit=MAX_SEARCH_CHARS).strip())


Listed = Annotated[ListQuery, Depends(read_list_query)]


@router.get("/page/sidebar")
async def show_sidebar(deps: AppDeps, caller: Reader, query: Listed) -> Response:
    shown, display = await _show_first(deps, caller, query)
    facts = await page_facts.load_facts(deps, caller.user)
    tray, _ = await load_tray(deps, caller.user)
    return await respond(
        "pages/sidebar.html",
        display,
        **shown,
        tray=tray,
        nav=show_navigation(facts),
        who=show_user(facts),
    )


@router.get("/page/list")
async def show_list(
    deps: AppDeps,
    caller: Reader,
    query: Listed,
    at_least: Annotated[int, Query(alias="rows", ge=0)] = 0,
) -> Response:
    """Show the first rows; an open page asks for as many as it shows."""
    shown, display = await _show_first(deps, caller, query, min(at_least, MAX_ROWS))
    return await respond("pages/list.html", display, **shown)


@router.get("/page/rows")
async def show_rows(
    deps: AppDeps,
    caller: Reader,
    paging: Paging,
    query: Listed,
    ids: Annotated[str, Query(max_length=40 * MAX_ROWS_ASKED)] = "",
    after: Annotated[str, Query(alias="group", max_length=20)] = "",
) -> Response:
    """Show the next rows; or of some conversations, and the parents of some, as they are now.

    Those that the list does not have, or no longer, are left out.
    """
    if wanted := [ConversationId(one) for one in ids.split(",") if one][:MAX_ROWS_ASKED]:
        filters, paging = query.conditions(among=wanted), PageQuery(2 * MAX_ROWS_ASKED)
    else:
        filters = query.conditions(pinned=None if query.search else False)
    rows, next_page, display = await _load_rows(deps, caller, paging, query, filters)
    return await respond(
        "pages/rows.html",
        display,
        **_describe(rows, next_page, query),
        after=after,
    )


@router.get("/page/nav")
async def show_nav(deps: AppDeps, caller: Reader) -> Response:
    facts = await page_facts.load_facts(deps, caller.user)
    display = Display(facts.now, facts.profile.zone)
    return await respond("pages/nav.html", display, nav=show_navigation(facts))


@router.get("/page/who")
async def show_who(deps: AppDeps, caller: Reader) -> Response:
    facts = await page_facts.load_facts(deps, caller.user)
    display = Display(facts.now, facts.profile.zone)
    return await respond("pages/who.html", display, who=show_user(facts))


async def _show_first(
    deps: Deps, caller: Caller, query: ListQuery, at_least: int = 0
) -> tuple[dict[str, Any], Display]:
    """Load all pinned conversations, and the first page of the others; a search mixes them."""
    pinned: Sequence[ShownRow] = ()
    if not query.search:
        filters = query.conditions(pinned=True)
        pinned, _, _ = await _load_rows(deps, caller, PageQuery(MAX_ROWS), query, filters)
    filters = query.conditions(pinned=None if query.search else False)
    paging = PageQuery(max(DEFAULT_PAGE_SIZE, at_least - len(pinned)))
    rows, next_page, display = await _load_rows(deps, caller, paging, query, filters)
    shown = _describe([*pinned, *rows], next_page, query)
    return shown | {"after": "", "at_least": at_least}, display


async def _load_rows(
    deps: Deps, caller: Caller, paging: PageQuery, query: ListQuery, filters: ConversationFilter
) -> tuple[Sequence[ShownRow], str | None, Display]:
    after, found = paging.after(datetime, str), list[ConversationRow]()
    # A search reads a limited number of conversations for a page, which may have found none.
    for _ in range(MAX_SEARCHES):
        page, context = await browse.conversations(
            deps,
            caller.user,
            filters,
            after,
            limit=paging.limit - len(found),
            with_children=query.has_groups_of_children,
        )
        found += page.items
        after = page.next_key
        if after is None or not query.search or len(found) >= paging.limit:
            break
    display = show_times(context)
    return [show_row(row, display) for row in found], write_cursor(after), display


def _describe(rows: Sequence[ShownRow], next_page: str | None, query: ListQuery) -> dict[str, Any]:
    return {
        "rows": rows,
        "next_page": next_page,
        "query": query,
        "filters": list(ListFilter),
    }


def show_times(context: DisplayContext) -> Display:
    return Display(context.now, context.zone)


def show_navigation(facts: PageFacts) -> Navigation:
    return Navigation(facts.open_questions, facts.tasks, facts.working)


def show_user(facts: PageFacts) -> ShownUser:
    words = load_words().common.nav
    profile, limit = facts.profile, facts.day
    name = profile.name or profile.login or load_words().common.you
    spent = format_money(facts.spent_today.micros)
    part: int | None = None
    if limit is not None and limit.micros:
        part = min(round(100 * facts.spent_today.micros / limit.micros), 100)
        spent = words.of_today.format(spent=spent, limit=format_money(limit.micros))
    elif facts.is_demo:
        spent = words.demo
    else:
        spent = f"{spent} {words.today}"
    return ShownUser(
        name=name,
        initials="".join(part[0] for part in name.split()[:2]).upper(),
        spent=spent,
        part=part,
        paused=profile.paused,
        all_paused=profile.all_paused,
    )
