"""Servers of connections that do what they are told: they fail, change their tools, sign out."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from backburner.core.connections.connection import (
    CALL_TIMEOUT,
    Connection,
    ConnectionState,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    ToolNature,
    definition_digest,
)
from backburner.core.connections.inputs.input_request import InputAnswers, InputNeeded
from backburner.core.ids import ConnectionId, UserId, new_connection_id
from backburner.ports import ToolList, ToolResult
from support.stage.make import NOON, USER
from support.stage.stage import Stage

#: What a server does in a call: it answers, or raises.
Handler = Callable[[str, Mapping[str, Any]], "ToolResult | InputNeeded"]
SCHEMA = {"type": "object", "properties": {"words": {"type": "string"}}}


UNDECIDED = Ticks()


def say_done(name: str, arguments: Mapping[str, Any]) -> ToolResult:
    del arguments
    return ToolResult(f"{name} is done.")


def tool(
    name: str, description: str = "", *, ticks: Ticks = UNDECIDED, **nature: bool
) -> ConnectionTool:
    """Make a tool whose owner has accepted it."""
    text = description or f"Does {name}."
    definition = ToolDefinition(name=name, description=text, parameters=SCHEMA)
    digest = definition_digest(definition)
    return ConnectionTool(
        definition=definition,
        digest=digest,
        accepted=digest,
        accepted_definition=definition,
        nature=ToolNature(**nature),
        ticks=ticks,
    )


def changed(before: ConnectionTool, description: str) -> ConnectionTool:
    """Make a tool that its server describes in other words by now."""
    definition = replace(before.definition, description=description)
    return replace(before, definition=definition, digest=definition_digest(definition))


#: `search` only reads, `web` tells others what it looks for, `mark` may be repeated.
TOOLS = (
    tool("search", ticks=Ticks(read_only=True)),
    tool("web", read_only=True, discloses=True),
    tool("mark", ticks=Ticks(repeatable=True)),
    tool("send"),
)


@dataclass
class FakeServer:
    name: str
    listed: Sequence[ToolDefinition]
    handler: Handler = say_done
    tools_changed: bool = False
    #: Calls do not return.
    hangs: bool = False
    #: Calls return once it is set.
    held: asyncio.Event | None = None
    opened: int = 0
    closed: int = 0
    lists: int = 0
    calls: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    answers: list[InputAnswers] = field(default_factory=list)
    #: How long each call might take.
    limits: list[timedelta] = field(default_factory=list)


@dataclass
class FakeSession:
    server: FakeServer

    @property
    def tools_changed(self) -> bool:
        return self.server.tools_changed

    async def list_tools(self) -> ToolList:
        self.server.lists += 1
        self.server.tools_changed = False
        return ToolList(tools=self.server.listed)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        repeatable: bool = False,
        within: timedelta = CALL_TIMEOUT,
        answers: InputAnswers | None = None,
    ) -> ToolResult | InputNeeded:
        del repeatable
        self.server.calls.append((name, arguments))
        self.server.limits.append(within)
        if self.server.hangs:
            await asyncio.Event().wait()
        if self.server.held is not None:
            await self.server.held.wait()
        if answers is not None:
            self.server.answers.append(answers)
        return self.server.handler(name, arguments)

    async def close(self) -> None:
        self.server.closed += 1


@dataclass
class FakeServers:
    """The servers of all connections, by the name of the connection."""

    servers: dict[str, FakeServer] = field(default_factory=dict)

    def open_session(self, connection: Connection) -> FakeSession:
        server = self.servers[connection.name]
        server.opened += 1
        return FakeSession(server)

    def add(
        self,
        stage: Stage,
        name: str = "mail",
        tools: Sequence[ConnectionTool] = TOOLS,
        *,
        user: UserId = USER,
        **fields: Any,
    ) -> Connection:
        """Add a connection with accepted tools, and its server."""
        stage.user(user)
        connection = Connection(
            id=new_connection_id(),
            user_id=user,
            name=name,
            title=name.title(),
            url=f"https://{name}.example/mcp",
            created_at=NOON,
            listed_at=NOON,
        )
        connection = replace(connection, **fields)

        def write(tx: Any) -> None:
            tx.connections.add(connection)
            tx.connections.put_tools(user, connection.id, tools)

        stage.database.run(write)
        self.servers[name] = FakeServer(name, [one.definition for one in tools])
        return connection

    def __getitem__(self, name: str) -> FakeServer:
        return self.servers[name]


def sign_out(stage: Stage, connection: Connection) -> None:
    _set_state(stage, connection.user_id, connection.id, ConnectionState.SIGNED_OUT, 0)


def sign_in(stage: Stage, connection: Connection) -> None:
    """Store that the owner has signed in again; nothing is resumed by that."""
    _set_state(stage, connection.user_id, connection.id, ConnectionState.READY, 1)


def _set_state(
    stage: Stage, user: UserId, which: ConnectionId, state: ConnectionState, more: int
) -> None:
    def write(tx: Any) -> None:
        found = tx.connections.lock(user, which)
        revision = found.sign_in_revision + more
        tx.connections.save(replace(found, state=state, sign_in_revision=revision))

    stage.database.run(write)
