"""The sessions of one run with the servers of its connections: opened when used, closed with it."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from backburner.core.connections.connection import Connection, ConnectionTool, ToolDefinition
from backburner.core.connections.inputs.input_request import InputAnswers, InputNeeded
from backburner.core.connections.scopes import describe_missing
from backburner.core.errors import ConnectionFailed, SignedOut
from backburner.core.ids import ConnectionId
from backburner.ports import ToolResult, ToolSession

#: How long closing a session may take; what is left then is cancelled.
CLOSE_SECONDS = 5.0

#: Compares the tools that a server lists with the accepted ones; returns all as they are now.
RecordListing = Callable[
    [Connection, Sequence[ToolDefinition]], Awaitable[Sequence[ConnectionTool]]
]
#: Records that a server refuses the sign-in; False: for scopes that another would not bring.
RecordSignedOut = Callable[[Connection, SignedOut], Awaitable[bool]]

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class RunSession:
    """A session with one server. Its tools are compared with the accepted ones before the first
    call, and again when it says that they have changed."""

    connection: Connection
    session: ToolSession
    record_listing: RecordListing
    record_signed_out: RecordSignedOut
    _accepted: Mapping[str, str] | None = None
    _listing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def call(
        self,
        tool: ConnectionTool,
        arguments: Mapping[str, Any],
        answers: InputAnswers | None = None,
    ) -> ToolResult | InputNeeded:
        """Call a tool, if its server lists it as its owner has accepted it."""
        try:
            accepted = await self._list()
            if accepted.get(tool.name) != tool.accepted:
                return ToolResult(self._describe_change(tool, accepted), failed=True)
            return await self.session.call(
                tool.name,
                arguments,
                repeatable=tool.repeatable,
                within=self.connection.call_timeout,
                answers=answers,
            )
        except SignedOut as error:
            if await self.record_signed_out(self.connection, error):
                raise
            # The names are those of the server.
            text = describe_missing(self.connection, error.scopes)
            return ToolResult(text, failed=True, outside=True)

    async def _list(self) -> Mapping[str, str]:
        """Return the accepted digests of the tools that the server lists as they were accepted."""
        async with self._listing:
            if self._accepted is None or self.session.tools_changed:
                listed = await self.session.list_tools()
                tools = await self.record_listing(self.connection, listed.tools)
                self._accepted = {tool.name: tool.accepted for tool in tools if tool.is_offered}
            return self._accepted

    def _describe_change(self, tool: ConnectionTool, accepted: Mapping[str, str]) -> str:
        name = f"{self.connection.name}/{tool.name}"
        if tool.name in accepted:
            return f"{name} was not called: its owner has accepted another definition of it since."
        return (
            f"{name} was not called: its server has changed or removed it. The user is told, and"
            " has to accept the change first. Do without it."
        )


@dataclass(slots=True)
class RunSessions:
    """One session for each connection that the run uses."""

    open_session: Callable[[Connection], ToolSession]
    record_listing: RecordListing
    record_signed_out: RecordSignedOut
    _opened: dict[ConnectionId, RunSession] = field(default_factory=dict)
    _closed: bool = False

    def find(self, connection: Connection) -> RunSession:
        if self._closed:
            raise ConnectionFailed("The run has ended.", permanent=True)
        if connection.id not in self._opened:
            self._opened[connection.id] = RunSession(
                connection,
                self.open_session(connection),
                self.record_listing,
                self.record_signed_out,
            )
        return self._opened[connection.id]

    async def close(self) -> None:
        """Close all sessions, also if closing one fails or takes too long."""
        self._closed = True
        opened = list(self._opened.values())
        self._opened.clear()
        await asyncio.gather(*(self._close(one) for one in opened))

    async def _close(self, opened: RunSession) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await opened.session.close()
        except Exception as error:  # noqa: BLE001 (the run has ended, whatever a server does)
            _log.warning(
                "connection.close_failed", connection=opened.connection.name, error=repr(error)
            )
