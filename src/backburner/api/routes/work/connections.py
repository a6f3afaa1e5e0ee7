"""`/api/connections`: connections to MCP servers, and their tools."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AfterValidator

from backburner.actions.connections import calls, definitions, manage
from backburner.actions.connections.definitions import Check
from backburner.actions.deps import Deps
from backburner.api.http.auth import Approver, Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import check_id
from backburner.api.schemas.work.connection import (
    AcceptedToolsBody,
    CallsOfDayOut,
    ConnectionCallOut,
    ConnectionChangesBody,
    ConnectionCheckOut,
    ConnectionOut,
    ConnectionSummaryOut,
    HeadersBody,
    NewConnectionBody,
    RemovedConnectionOut,
    TicksBody,
)
from backburner.core.accounts import Caller
from backburner.core.ids import ConnectionId

router = APIRouter(prefix="/api/connections", tags=["connections"], route_class=IdempotentRoute)

ConnectionIdPath = Annotated[
    ConnectionId, Path(description="The connection's id."), AfterValidator(check_id)
]


async def load_connection(deps: Deps, caller: Caller, connection_id: ConnectionId) -> ConnectionOut:
    return ConnectionOut.of(await manage.show(deps, caller.user, connection_id))


@router.get("", summary="List connections")
async def list_connections(deps: AppDeps, caller: Reader) -> PageOut[ConnectionSummaryOut]:
    """List your connections by name, on one page."""
    shown = await manage.list_connections(deps, caller.user)
    return PageOut(items=[ConnectionSummaryOut.of(one) for one in shown], next=None)


@router.post(
    "", summary="Add a connection", status_code=201, responses=error_responses(404, 429, 502)
)
async def add_connection(
    body: NewConnectionBody, deps: AppDeps, caller: Approver
) -> ConnectionCheckOut:
    """Connect to a server, and add the connection with its tools.

    Agents get the tools as they are listed now. Where `state` is `signing_in`, the server wants you
    to sign in first. Nothing is added if the server cannot be reached.
    """
    return await _report(deps, caller, await manage.add(deps, caller, body.connection()))


@router.get("/calls", summary="List calls on connections", responses=error_responses(404))
async def list_connection_calls(
    deps: AppDeps,
    caller: Reader,
    paging: Paging,
    connection: Annotated[
        ConnectionId | None, Query(description="Only of this one."), AfterValidator(check_id)
    ] = None,
) -> PageOut[ConnectionCallOut]:
    """List the calls that your agents made on connections, newest first.

    They are kept for a year, also of connections and conversations that are gone.
    """
    page = await calls.list_calls(
        deps, caller.user, connection, paging.after(str), limit=paging.limit
    )
    return make_page(page, ConnectionCallOut.of)


@router.get("/{connection_id}", summary="Get a connection")
async def get_connection(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader
) -> ConnectionOut:
    """Get a connection with its tools."""
    return await load_connection(deps, caller, connection_id)


@router.get("/{connection_id}/health", summary="Get its health")
async def get_connection_health(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Reader
) -> CallsOfDayOut:
    """Count the calls of the last day: 48 half-hours, with what failed or was slow in each."""
    return CallsOfDayOut.of(await calls.count_day(deps, caller.user, connection_id))


@router.patch("/{connection_id}", summary="Update a connection")
async def update_connection(
    connection_id: ConnectionIdPath, body: ConnectionChangesBody, deps: AppDeps, caller: Approver
) -> ConnectionOut:
    """Change its title, whether chats use it, how long calls may take, or disable it.

    Its name stays.
    """
    await manage.change(deps, caller, connection_id, body.changes())
    return await load_connection(deps, caller, connection_id)


@router.delete("/{connection_id}", summary="Remove a connection")
async def remove_connection(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Approver
) -> RemovedConnectionOut:
    """Remove it with its sign-in, its tools and their grants. Runs in progress lose it."""
    return RemovedConnectionOut(not_ended_at=await manage.remove(deps, caller, connection_id))


@router.post(
    "/{connection_id}/headers", summary="Replace its headers", responses=error_responses(409, 502)
)
async def replace_headers(
    connection_id: ConnectionIdPath, body: HeadersBody, deps: AppDeps, caller: Approver
) -> ConnectionCheckOut:
    """Sign in with other headers. They are stored once the server has accepted them."""
    check = await manage.set_headers(deps, caller, connection_id, body.headers)
    return await _report(deps, caller, check)


@router.post("/{connection_id}/refresh", summary="Check a connection")
async def refresh_connection(
    connection_id: ConnectionIdPath, deps: AppDeps, caller: Writer
) -> ConnectionCheckOut:
    """Connect now and compare the tools, or say what is wrong."""
    check = await definitions.refresh(deps, caller, connection_id)
    return await _report(deps, caller, check)


@router.post("/{connection_id}/accept", summary="Accept tools", responses=error_responses(404, 409))
async def accept_tools(
    connection_id: ConnectionIdPath, body: AcceptedToolsBody, deps: AppDeps, caller: Approver
) -> ConnectionOut:
    """Accept new or changed tools as you have seen them. Your ticks for changed ones end."""
    await definitions.accept(deps, caller, connection_id, body.tools)
    return await load_connection(deps, caller, connection_id)


@router.post("/{connection_id}/ticks", summary="Tick a tool", responses=error_responses(404, 409))
async def tick_tool(
    connection_id: ConnectionIdPath, body: TicksBody, deps: AppDeps, caller: Approver
) -> ConnectionOut:
    """Say what a tool does. That counts more than our catalogue; the server's claims never do."""
    await definitions.tick(deps, caller, connection_id, body.tool, body.ticks)
    return await load_connection(deps, caller, connection_id)


async def _report(deps: Deps, caller: Caller, check: Check) -> ConnectionCheckOut:
    shown = await manage.show(deps, caller.user, check.connection_id)
    return ConnectionCheckOut.of(check, shown)
