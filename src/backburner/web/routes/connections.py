"""Connections: the list, one of them with its tools and calls, and adding another."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions import browse
from backburner.actions.connections import calls, imports, manage, overview
from backburner.actions.connections.overview import AllConnections
from backburner.actions.deps import Deps
from backburner.api.http.auth import Approver, Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import Paging, write_cursor
from backburner.api.routes.work.connections import ConnectionIdPath
from backburner.api.schemas.base import ConversationIdPath
from backburner.api.schemas.work.connection_import import ImportPreviewBody
from backburner.core.accounts import Caller
from backburner.core.connections.catalogue import CATALOGUE
from backburner.core.connections.catalogue_entry import find_by_url
from backburner.core.connections.connection import ConnectionTool
from backburner.core.connections.naming import is_same_url
from backburner.core.errors import NotFound
from backburner.core.ids import ConnectionId, ConversationId
from backburner.web.display import Display
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.connect.connection_choice import list_choices
from backburner.web.views.connect.connection_detail import ConnectionDetail, show_calls, show_detail
from backburner.web.views.connect.connection_tools import (
    CHOICES,
    find_by_key,
    show_change,
    show_details,
)
from backburner.web.views.connect.connections import describe_server, show_row, sort_rows
from backburner.web.views.connect.import_offers import show_offers
from backburner.web.views.connect.services import show_services

CALLS = 10

router = APIRouter(include_in_schema=False)


@router.get("/page/connections")
async def show_connections(deps: AppDeps, caller: Reader) -> Response:
    """Show the list; beside it, where there is room, the first one."""
    return await _show(deps, caller, None)


@router.get("/page/connections/list")
async def show_list(deps: AppDeps, caller: Reader) -> Response:
    found = await overview.load_all(deps, caller.user)
    display = Display(found.now, found.zone)
    rows = sort_rows([show_row(one, display) for one in found.connections])
    return await respond("pages/connection_list.html", display, rows=rows, at="")


@router.get("/page/connections/add")
async def show_adding(deps: AppDeps, caller: Reader) -> Response:
    found = await overview.load_all(deps, caller.user)
    display = Display(found.now, found.zone)
    return await respond(
        "pages/connection_add.html",
        display,
        rows=sort_rows([show_row(one, display) for one in found.connections]),
        at="add",
        **_list_offers(deps, found),
    )


@router.post("/page/connections/imports")
async def show_import(
    body: ImportPreviewBody, deps: AppDeps, caller: Approver, display: Shown
) -> Response:
    """Show what is in the file of another client, which the browser sends. Nothing is stored."""
    preview = await imports.preview(deps, caller, body.content)
    offers = partial(show_offers, preview, deps.command)
    return await respond("pages/connection_import.html", display, offers=offers)


@router.get("/page/connections/{connection_id}")
async def show_connection(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader
) -> Response:
    return await _show(deps, caller, connection_id)


@router.get("/page/connections/{connection_id}/detail")
async def show_detail_part(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    detail = await _load_detail(deps, caller, connection_id)
    return await respond(
        "pages/connection_detail.html", display, detail=partial(detail, display), choices=CHOICES
    )


@router.get("/page/connections/{connection_id}/calls")
async def show_recent_calls(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader, display: Shown, paging: Paging
) -> Response:
    await manage.show(deps, caller.user, connection_id)
    page = await calls.list_calls(deps, caller.user, connection_id, paging.after(str), limit=CALLS)
    titles = await _load_titles(deps, caller, (call.conversation_id for call in page.items))
    return await respond(
        "pages/connection_calls.html",
        display,
        calls=show_calls(page.items, titles, display),
        connection_id=connection_id,
        next_page=write_cursor(page.next_key),
    )


@router.get("/page/connections/{connection_id}/tools/{key}")
async def show_tool(
    connection_id: ConnectionIdPath, key: str, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    """Show all that a server says of a tool."""
    tool = await _find_tool(deps, caller, connection_id, key)
    return await respond(
        "pages/connection_tool.html",
        display,
        tool=partial(show_details, tool),
        connection_id=connection_id,
    )


@router.get("/page/connections/{connection_id}/tools/{key}/change")
async def show_tool_change(
    connection_id: ConnectionIdPath, key: str, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    tool = await _find_tool(deps, caller, connection_id, key)
    return await respond(
        "pages/connection_change.html",
        display,
        change=lambda: show_change(tool, is_open=True),
        connection_id=connection_id,
    )


@router.get("/page/connections/{connection_id}/sign-in")
async def show_sign_in(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    """Show the step before a browser goes to sign in; the script fills in where that is."""
    connection = (await manage.show(deps, caller.user, connection_id)).connection
    entry = find_by_url(CATALOGUE, connection.url)
    return await respond(
        "pages/connection_sign_in.html",
        display,
        connection=connection,
        host=describe_server(connection),
        entry=entry,
        asks_first=entry is not None and entry.own_client and not connection.scopes,
    )


@router.get("/page/c/{conversation_id}/connections")
async def show_choice(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader, display: Shown
) -> Response:
    """Show which connections a conversation may use, to choose others."""
    row, _ = await browse.conversation(deps, caller.user, conversation_id)
    known = [one.connection for one in await manage.list_connections(deps, caller.user)]
    return await respond(
        "pages/connection_choice.html",
        display,
        conversation=row.conversation,
        choices=list_choices(row.conversation, known),
    )


async def _show(deps: Deps, caller: Caller, connection_id: ConnectionId | None) -> Response:
    found = await overview.load_all(deps, caller.user)
    display = Display(found.now, found.zone)
    rows = sort_rows([show_row(one, display) for one in found.connections])
    which = connection_id or (ConnectionId(rows[0].id) if rows else None)
    detail = None if which is None else await _load_detail(deps, caller, which)
    return await respond(
        "pages/connections.html",
        display,
        rows=rows,
        detail=None if detail is None else partial(detail, display),
        choices=CHOICES,
        at=which or "",
        **({} if detail else _list_offers(deps, found)),
        is_list=connection_id is None,
    )


def _list_offers(deps: Deps, found: AllConnections) -> dict[str, Any]:
    """List what can be connected to besides addresses."""
    known = {one.connection.url: one.connection.id for one in found.connections}

    def find(url: str) -> ConnectionId | None:
        return next((known[one] for one in known if one and is_same_url(one, url)), None)

    return {"services": show_services(CATALOGUE, find), "programs": sorted(deps.mcp_programs)}


async def _load_detail(
    deps: Deps, caller: Caller, connection_id: ConnectionId
) -> Callable[[Display], ConnectionDetail]:
    found = await overview.load_one(deps, caller.user, connection_id)
    titles = await _load_titles(deps, caller, found.waiting)
    return partial(show_detail, found, titles)


async def _load_titles(
    deps: Deps, caller: Caller, conversation_ids: Iterable[ConversationId]
) -> Mapping[ConversationId, str]:
    wanted = list(dict.fromkeys(conversation_ids))
    if not wanted:
        return {}
    return await browse.titles(deps, caller.user, wanted)


async def _find_tool(
    deps: Deps, caller: Caller, connection_id: ConnectionId, key: str
) -> ConnectionTool:
    shown = await manage.show(deps, caller.user, connection_id)
    tool = find_by_key(shown.tools, key)
    if tool is None:
        raise NotFound("This connection has no such tool any more.")
    return tool
