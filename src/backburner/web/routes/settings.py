"""The settings of the one who is signed in, section by section."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from backburner.actions import browse, memories, personal_data
from backburner.actions.accounts import credentials, profile, users
from backburner.actions.deps import Deps
from backburner.actions.memories import MAX_QUERY_CHARS
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import MAX_PAGE_SIZE, PageQuery, Paging, write_cursor
from backburner.core.accounts import Caller, CredentialKind, Scope, scopes_of
from backburner.core.conversation import Use
from backburner.core.ids import ConversationId
from backburner.core.memory import Memory
from backburner.web.display import Display
from backburner.web.rendering import load_words, respond
from backburner.web.routes.lists import Shown
from backburner.web.views import spending
from backburner.web.views.account.operate import describe_detail
from backburner.web.views.account.sections import SettingsPlace, show_place
from backburner.web.views.account.settings import (
    ShownMemory,
    show_allowances,
    show_browser,
    show_grants,
    show_memory,
    show_spent_in,
    show_token,
)

#: Acts on one account that are shown.
MAX_ACTS = 10
LIFETIMES = ("7d", "30d", "90d", "365d", "never")

router = APIRouter(include_in_schema=False)


@router.get("/page/settings")
async def show_root(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    """Show the list on a phone, and the first section beside it elsewhere."""
    return await _show_you(deps, caller, display, is_root=True)


@router.get("/page/settings/you")
async def show_you(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    return await _show_you(deps, caller, display, is_root=False)


@router.get("/page/settings/allowances")
async def show_spending(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    statement = await profile.spend_statement(deps, caller.user)
    days = profile.last_days(display.now, statement.zone)
    return await respond(
        "settings/allowances.html",
        display,
        place=find_place(caller, "allowances"),
        allowances=show_allowances(statement),
        conversations=show_spent_in(statement),
        spending=spending.show_spending(statement, days, display),
    )


@router.get("/page/settings/permissions")
async def show_permissions(
    deps: AppDeps, caller: Reader, display: Shown, paging: Paging
) -> Response:
    page = await browse.all_grants(
        deps, caller.user, paging.after(datetime, str), limit=paging.limit
    )
    ids = list(dict.fromkeys(row.conversation_id for row in page.items))
    found, _ = await browse.those_left(deps, caller.user, ids)
    titles = {ConversationId(row.conversation.id): row.conversation.title for row in found}
    return await respond(
        "settings/permissions_rows.html" if paging.cursor else "settings/permissions.html",
        display,
        place=find_place(caller, "permissions"),
        grants=show_grants(page.items, titles, display),
        next_page=write_cursor(page.next_key),
    )


@router.get("/page/settings/memories")
async def show_memories(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    paging: Paging,
    text: Annotated[str, Query(max_length=MAX_QUERY_CHARS)] = "",
) -> Response:
    rows, next_page = await _find_memories(deps, caller, display, paging, text)
    return await respond(
        "settings/memories_rows.html" if paging.cursor else "settings/memories.html",
        display,
        place=find_place(caller, "memories"),
        memories=rows,
        next_page=next_page,
        text=text,
    )


@router.get("/page/settings/memories/found")
async def show_found_memories(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    text: Annotated[str, Query(max_length=MAX_QUERY_CHARS)] = "",
) -> Response:
    """Show what matches while somebody types."""
    rows, next_page = await _find_memories(deps, caller, display, PageQuery(), text)
    return await respond(
        "settings/memories_list.html", display, memories=rows, next_page=next_page, text=text
    )


@router.get("/page/settings/memories/edit")
async def show_memory_form(deps: AppDeps, caller: Reader, display: Shown, key: str) -> Response:
    memory = await browse.memory(deps, caller.user, key)
    return await respond("settings/memory_form.html", display, memory=memory)


@router.get("/page/settings/background")
async def show_background(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    settings = await profile.load_settings(deps, caller.user)
    return await respond(
        "settings/background.html",
        display,
        place=find_place(caller, "background"),
        me=settings.profile,
        discovery=settings.discovery,
        may_discover=settings.may_discover,
    )


@router.get("/page/settings/tokens")
async def show_tokens(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    page = await credentials.list_credentials(
        deps, caller.user, CredentialKind.TOKEN, None, limit=MAX_PAGE_SIZE
    )
    allowed = scopes_of(caller.role)
    return await respond(
        "settings/tokens.html",
        display,
        place=find_place(caller, "tokens"),
        tokens=[show_token(token, caller, display) for token in page.items],
        scopes=[scope.value for scope in Scope if scope in allowed],
        uses=[use.value for use in Use],
        lifetimes=LIFETIMES,
    )


@router.get("/page/settings/browsers")
async def show_browsers(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    page = await credentials.list_credentials(
        deps, caller.user, CredentialKind.SESSION, None, limit=MAX_PAGE_SIZE
    )
    return await respond(
        "settings/browsers.html",
        display,
        place=find_place(caller, "browsers"),
        browsers=[show_browser(session, caller, display) for session in page.items],
    )


@router.get("/page/settings/data")
async def show_data(caller: Reader, display: Shown) -> Response:
    return await respond(
        "settings/data.html",
        display,
        place=find_place(caller, "data"),
        confirmation=personal_data.ERASE_CONFIRMATION,
    )


def find_place(caller: Caller, name: str, *, is_root: bool = False) -> SettingsPlace:
    return show_place(name, is_operator=caller.may(Scope.OPERATE), is_root=is_root)


async def _show_you(deps: Deps, caller: Caller, display: Display, *, is_root: bool) -> Response:
    settings = await profile.load_settings(deps, caller.user)
    acts = await users.list_acts_on(deps, caller.user, limit=MAX_ACTS)
    words = load_words().operate.audit.act
    return await respond(
        "settings/you.html",
        display,
        place=find_place(caller, "you", is_root=is_root),
        me=settings.profile,
        command=deps.command,
        acts=[(words[act.act.value], display.moment(act.at), describe_detail(act)) for act in acts],
    )


async def _find_memories(
    deps: Deps, caller: Caller, display: Display, paging: PageQuery, text: str
) -> tuple[Sequence[ShownMemory], str | None]:
    if text.strip():
        found: Sequence[Memory] = await memories.search(deps, caller.user, text, limit=paging.limit)
        return [show_memory(memory, display) for memory in found], None
    page = await browse.memories(deps, caller.user, paging.after(str), limit=paging.limit)
    shown = [show_memory(memory, display) for memory in page.items]
    return shown, write_cursor(page.next_key)
