"""Connections to MCP servers: their rows, their secrets, and sessions with the servers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from backburner.core.connections.call import CallCounts, ConnectionCall
from backburner.core.connections.connection import (
    CALL_TIMEOUT,
    Connection,
    ConnectionTool,
    ToolDefinition,
)
from backburner.core.connections.inputs.input_request import InputAnswers, InputNeeded
from backburner.core.connections.program import StdioProgram
from backburner.core.ids import ConnectionId, ConversationId, UserId
from backburner.ports.engine import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolServer:
    """Where the server of a connection is. `title` names it in messages."""

    title: str
    url: str = ""
    program: StdioProgram | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolList:
    tools: Sequence[ToolDefinition]
    #: Why tools were left out, by their names.
    left_out: Mapping[str, str] = field(default_factory=dict)


class Authorization(Protocol):
    """Access to the server of one connection, for one session with it."""

    async def headers(self) -> Mapping[str, str]:
        """Return the headers of a request; tokens that are about to expire are renewed first.

        Raises `SignedOut`, or `ConnectionFailed` if they cannot be renewed now.
        """

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        """Return other headers than those that the server has refused. Raises as `headers`."""

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        """Return headers that hold, because a result reads as if the server refused these.

        Its words may be those of anybody. So they are the same headers, unless somebody else can
        say more: a server that renews tokens. Raises as `headers`.
        """


class ToolSession(Protocol):
    """A session with the server of one connection, in one run. It connects when it is used.

    Calls may be made at the same time. Once it has raised `SignedOut` or a permanent
    `ConnectionFailed`, it raises that again without asking the server, unless it was for scopes.
    """

    @property
    def tools_changed(self) -> bool:
        """Whether the server has said that its tools have changed since they were listed."""

    async def list_tools(self) -> ToolList:
        """List the tools. Raises `SignedOut` or `ConnectionFailed`."""

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        within: timedelta = CALL_TIMEOUT,
        answers: InputAnswers | None = None,
    ) -> ToolResult | InputNeeded:
        """Call a tool; retry what surely was not made, or is `repeatable`.

        `within` limits each attempt. A call that returns `InputNeeded` is not complete: it goes on
        when it is made again, in this session or a later one, with the `answers`. A server whose
        protocol cannot wait is told that the user has cancelled, and the result says so.

        Raises `SignedOut`, `CallInDoubt` if it may have been made, or `ConnectionFailed` if it was
        not made. An error that the server reports is a failed result.
        """

    async def close(self) -> None:
        """End the session: its tasks, its sockets and its program."""


class ToolServers(Protocol):
    def open(self, server: ToolServer, authorization: Authorization) -> ToolSession:
        """Make a session; nothing is connected yet."""


class RunningProgram(Protocol):
    """A program of the operator's that runs in its cage, with pipes to it."""

    async def write(self, data: bytes) -> None:
        """Write to its stdin. Raises `ProcessFailed` if it no longer reads."""

    async def read(self) -> bytes:
        """Read the next bytes of its stdout; empty at the end."""

    def errors(self) -> str:
        """Return the last of what it wrote to stderr, without its secrets."""

    async def end(self) -> str:
        """End it with all its descendants; say how it ended, such as "exited with code 1."."""


#: Starts a program; leaving the context ends it. Raises `ProcessFailed`.
StartProgram = Callable[[StdioProgram], AbstractAsyncContextManager[RunningProgram]]


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool that its owner has accepted, with its connection, as both are now."""

    connection: Connection
    #: Without its definition, but for the name.
    tool: ConnectionTool
    #: Another one after any change of either; None: this database has none.
    version: str | None = None


class Connections(Protocol):
    """The rows of connections and of their tools."""

    def add(self, connection: Connection) -> None:
        """Add a connection. Raises `Conflict` if the user has one of that name."""

    def load(self, user: UserId, connection_id: ConnectionId) -> Connection: ...
    def find(self, user: UserId, name: str) -> Connection | None: ...
    def list(self, user: UserId) -> Sequence[Connection]:
        """List connections by name."""

    def lock(self, user: UserId, connection_id: ConnectionId) -> Connection: ...
    def hold(self, user: UserId, names: Iterable[str]) -> frozenset[str]:
        """Keep others from removing these while this transaction gives them to work or a token.

        Returns those that there are.
        """

    def save(self, connection: Connection) -> None: ...
    def named_in(self, user: UserId, name: str) -> Sequence[ConversationId]:
        """Find the conversations that name a connection, and lock them."""

    def remove(self, user: UserId, connection_id: ConnectionId) -> None:
        """Delete a connection and its tools, and take it from conversations and tokens."""

    def tools(self, user: UserId, connection_id: ConnectionId) -> Sequence[ConnectionTool]: ...
    def tools_of_all(
        self, user: UserId, *, shown: Sequence[ConnectionId] = ()
    ) -> Mapping[ConnectionId, Sequence[ConnectionTool]]:
        """Read all tools; the definitions of those that agents are offered on these connections."""

    def size_of_others(self, user: UserId, connection_id: ConnectionId) -> int:
        """Return how large the definitions of the user's other connections are, about in bytes."""

    def put_tools(
        self, user: UserId, connection_id: ConnectionId, tools: Iterable[ConnectionTool]
    ) -> None:
        """Add or replace these tools of a connection; others stay."""

    def remove_tools(
        self, user: UserId, connection_id: ConnectionId, names: Iterable[str]
    ) -> None: ...
    def find_offered(
        self, user: UserId, connection_id: ConnectionId, tool: str, digest: str
    ) -> OfferedTool | None:
        """Find a tool and what its owner says of it now, if they accept this definition."""

    def note_use(
        self, user: UserId, connection_id: ConnectionId, *, at: datetime, error: str = ""
    ) -> None:
        """Record what went wrong; empty: nothing, and that it was used in this minute."""


class ConnectionCalls(Protocol):
    """Calls that were made on connections, as the journal ends them.

    They outlive their runs and conversations.
    """

    def page(
        self,
        user: UserId,
        connection_id: ConnectionId | None = None,
        *,
        before: str = "",
        limit: int,
    ) -> Sequence[ConnectionCall]:
        """List calls, newest first, of one connection or of all."""

    def count(
        self, user: UserId, connection_ids: Sequence[ConnectionId], *, since: datetime
    ) -> Mapping[ConnectionId, Sequence[CallCounts]]:
        """Count the calls of connections by slots of time, which begin at `since`."""

    def prune(self, *, before: datetime, limit: int) -> int: ...
