"""Connections to MCP servers, and their tools. Secrets go in and never come out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from backburner.actions.connections.definitions import Check
from backburner.actions.connections.manage import (
    ConnectionChanges,
    NewConnection,
    ShownConnection,
)
from backburner.api.schemas.base import RequestBody, example
from backburner.core.connections.call import (
    MAX_TOLD_CHARS,
    SLOW_CALL,
    CallOutcome,
    CallsOfDay,
    ConnectionCall,
)
from backburner.core.connections.connection import (
    MAX_CALL_TIMEOUT,
    MIN_CALL_TIMEOUT,
    AuthKind,
    ConnectionState,
    ConnectionTool,
    ToolDefinition,
)
from backburner.core.connections.headers import MAX_HEADERS
from backburner.core.connections.listing import MAX_TOOLS
from backburner.core.connections.naming import (
    MAX_NAME_CHARS,
    MAX_TITLE_CHARS,
    MAX_TOOL_NAME_CHARS,
    MAX_URL_CHARS,
)
from backburner.core.connections.scopes import select_named
from backburner.core.errors import BadRequest

_ID = "x_0123456789abcdefghjkmnpqrs"
_NOON = "2026-11-16T12:00:00Z"
_DIGEST = "0" * 64
MAX_CONNECTION_NAMES = 50

ConnectionNames = Annotated[
    list[str] | None,
    Field(
        max_length=MAX_CONNECTION_NAMES,
        description="The names of the connections that it may use, among those of its parent."
        " Null: none, or in a chat all that chats use.",
    ),
]
ConnectionNamesOut = Annotated[
    Sequence[str] | None,
    Field(description="The connections it may use; null: none, or in a chat all that chats use."),
]
SecretHeaders = Annotated[
    dict[str, str],
    Field(max_length=MAX_HEADERS, description="Headers of every request. Their values are sealed."),
]
CallTimeout = Annotated[
    float, Field(ge=MIN_CALL_TIMEOUT.total_seconds(), le=MAX_CALL_TIMEOUT.total_seconds())
]
ToolName = Annotated[str, Field(min_length=1, max_length=MAX_TOOL_NAME_CHARS)]


class NewConnectionBody(RequestBody):
    """A server at an address, or a program that the operator has defined."""

    model_config = example(url="https://mcp.example.com/mcp", name="example")

    url: str = Field(default="", max_length=MAX_URL_CHARS)
    program: str = Field(default="", max_length=100)
    name: str = Field(
        default="", max_length=MAX_NAME_CHARS, description="Left out: made from the address."
    )
    title: str = Field(default="", max_length=MAX_TITLE_CHARS)
    headers: SecretHeaders = Field(default_factory=dict, repr=False)
    auth: AuthKind | None = Field(default=None, description="Left out: found out by connecting.")
    in_chats: bool = Field(default=True, description="Chats use it without being told to.")

    def connection(self) -> NewConnection:
        return NewConnection(
            url=self.url,
            program=self.program,
            name=self.name,
            title=self.title,
            headers=self.headers,
            auth=self.auth,
            in_chats=self.in_chats,
        )


class ConnectionChangesBody(RequestBody):
    """Fields that are left out stay unchanged."""

    model_config = example(title="Mail", in_chats=False)

    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    in_chats: bool | None = None
    disabled: bool | None = Field(default=None, description="Nothing uses it while it is.")
    call_timeout: CallTimeout | None = Field(
        default=None, description="Of each attempt at a call, in seconds."
    )

    def changes(self) -> ConnectionChanges:
        timeout = self.call_timeout
        return ConnectionChanges(
            title=self.title,
            in_chats=self.in_chats,
            disabled=self.disabled,
            call_timeout=None if timeout is None else timedelta(seconds=timeout),
        )


class HeadersBody(RequestBody):
    model_config = example(headers={"Authorization": "Bearer ..."})

    headers: Annotated[SecretHeaders, Field(min_length=1)] = Field(repr=False)


class AcceptedToolsBody(RequestBody):
    model_config = example(tools={"send": _DIGEST})

    tools: Annotated[dict[ToolName, str], Field(min_length=1, max_length=MAX_TOOLS)] = Field(
        description="The `digest` of each definition that you have seen, by the name of the tool."
    )


class TicksBody(RequestBody):
    """Fields that are left out stay unchanged; null: our catalogue counts."""

    model_config = example(tool="search", read_only=True)

    tool: ToolName
    read_only: bool | None = Field(
        default=None, description="It changes nothing, so that calls need no approval."
    )
    repeatable: bool | None = Field(
        default=None, description="A call may be repeated that may have been made."
    )
    off: bool = Field(
        default=False, description="Agents do not get it, whatever its definition becomes."
    )

    @model_validator(mode="after")
    def _check_ticks(self) -> Self:
        if not self.ticks:
            raise BadRequest("Nothing is ticked.", hint="Send `read_only`, `repeatable` or `off`.")
        return self

    @property
    def ticks(self) -> Mapping[str, bool | None]:
        given = self.model_fields_set & {"read_only", "repeatable", "off"}
        return {name: getattr(self, name) for name in given}


class ToolState(StrEnum):
    ACCEPTED = "accepted"
    NEW = "new"  #: Withheld until you accept it.
    CHANGED = "changed"  #: Withheld until you accept it.
    GONE = "gone"  #: The server does not list it any more.


class ToolDefinitionOut(BaseModel):
    description: str
    parameters: Mapping[str, Any] = Field(description="JSON schema of its arguments.")

    @classmethod
    def of(cls, definition: ToolDefinition) -> Self:
        return cls(description=definition.description, parameters=definition.parameters)


class ConnectionToolOut(BaseModel):
    """A tool of a connection. The server has written its name, description and schema."""

    name: str
    state: ToolState = Field(description="New and changed tools are withheld from agents.")
    digest: str = Field(description="Of its definition.")
    definition: ToolDefinitionOut
    accepted_definition: ToolDefinitionOut | None = Field(
        description="The definition that you have accepted, where it differs."
    )
    read_only: bool = Field(description="It changes nothing: calls need no approval.")
    repeatable: bool = Field(description="A call may be repeated that may have been made.")
    discloses: bool = Field(
        description="Its arguments become known to others, so that calls need an approval once the"
        " agent has read outside text. Ticking it read-only ends that."
    )
    ticked_read_only: bool | None = Field(description="Your own tick; null: none.")
    ticked_repeatable: bool | None = Field(description="Your own tick; null: none.")
    off: bool = Field(description="You have taken it away from agents.")
    says_read_only: bool = Field(description="A claim of the server, which has no effect.")

    @classmethod
    def of(cls, tool: ConnectionTool) -> Self:
        before = tool.accepted_definition
        return cls(
            name=tool.name,
            state=_state(tool),
            digest=tool.digest,
            definition=ToolDefinitionOut.of(tool.definition),
            accepted_definition=None
            if before is None or tool.is_accepted
            else ToolDefinitionOut.of(before),
            read_only=tool.read_only,
            repeatable=tool.repeatable,
            discloses=tool.discloses,
            ticked_read_only=tool.ticks.read_only,
            ticked_repeatable=tool.ticks.repeatable,
            off=tool.ticks.off,
            says_read_only=tool.definition.says_read_only,
        )


class ToolCountsOut(BaseModel):
    offered: int = Field(description="Agents get these.")
    read_only: int = Field(description="Of these, as many need no approval.")
    withheld: int = Field(description="New and changed ones, which wait for you.")
    gone: int
    off: int = Field(description="Those that you have taken away from agents.")

    @classmethod
    def of(cls, tools: Sequence[ConnectionTool]) -> Self:
        offered = [tool for tool in tools if tool.is_offered]
        return cls(
            offered=len(offered),
            read_only=sum(tool.read_only for tool in offered),
            withheld=sum(tool.is_withheld for tool in tools),
            gone=sum(tool.gone for tool in tools),
            off=sum(tool.ticks.off and not tool.gone for tool in tools),
        )


_EXAMPLE: dict[str, Any] = {
    "id": _ID,
    "name": "example",
    "title": "Example",
    "url": "https://mcp.example.com/mcp",
    "program": "",
    "auth": "oauth",
    "headers": [],
    "state": "ready",
    "disabled": False,
    "in_chats": True,
    "call_timeout": 60.0,
    "scopes": ["read"],
    "wanted_scopes": [],
    "refused_scopes": [],
    "created_at": _NOON,
    "listed_at": _NOON,
    "expires_at": "2026-11-16T13:00:00Z",
    "last_used_at": _NOON,
    "last_error": "",
    "last_error_at": None,
    "counts": {"offered": 1, "read_only": 1, "withheld": 0, "gone": 0, "off": 0},
}


class ConnectionCallOut(BaseModel):
    """A call that was made on a connection. Its arguments are not kept here."""

    model_config = example(
        id="t_0123456789abcdefghjkmnpqrs",
        connection_id="x_0123456789abcdefghjkmnpqrs",
        server="linear",
        tool="create_issue",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        run_id="r_0123456789abcdefghjkmnpqrs",
        digest=_DIGEST,
        outcome="done",
        started_at="2026-11-16T12:00:00Z",
        ended_at="2026-11-16T12:00:01Z",
        told="",
    )

    id: str
    connection_id: str = Field(description="It may have been removed since.")
    server: str = Field(description="The name of the connection.")
    tool: str
    conversation_id: str
    run_id: str
    digest: str = Field(description="Of server, tool, definition and arguments.")
    outcome: CallOutcome = Field(description="`unknown`: it may have been made, or may not.")
    started_at: datetime
    ended_at: datetime
    told: str = Field(
        description="What the agent was told of a failed call, in a line of at most"
        f" {MAX_TOLD_CHARS} characters. It may be the server's words. Empty once the run is"
        " deleted."
    )

    @classmethod
    def of(cls, call: ConnectionCall) -> Self:
        return cls(**asdict(call))


_SLOW = f"{SLOW_CALL.total_seconds():.0f} seconds"


class CallSlotOut(BaseModel):
    """The calls that began in half an hour."""

    at: datetime = Field(description="When it begins.")
    calls: int
    failed: int
    unknown: int = Field(description="They may have been made, or may not.")
    slow: int = Field(description=f"They took more than {_SLOW}.")


class CallsOfDayOut(BaseModel):
    """How the calls of a connection went in the last day."""

    model_config = example(
        calls=12,
        failed=1,
        unknown=0,
        slow=0,
        average_seconds=0.212,
        slots=[{"at": _NOON, "calls": 12, "failed": 1, "unknown": 0, "slow": 0}],
    )

    calls: int
    failed: int
    unknown: int = Field(description="They may have been made, or may not.")
    slow: int = Field(description=f"They took more than {_SLOW}.")
    average_seconds: float | None = Field(description="Of a call; null: there was none.")
    slots: Sequence[CallSlotOut] = Field(description="Half an hour each, oldest first.")

    @classmethod
    def of(cls, day: CallsOfDay) -> Self:
        average = day.average
        return cls(
            calls=day.calls,
            failed=day.failed,
            unknown=day.unknown,
            slow=day.slow,
            average_seconds=None if average is None else average.total_seconds(),
            slots=[
                CallSlotOut(
                    at=slot.at,
                    calls=slot.calls,
                    failed=slot.failed,
                    unknown=slot.unknown,
                    slow=slot.slow,
                )
                for slot in day.slots
            ],
        )


class ConnectionSummaryOut(BaseModel):
    model_config = example(**_EXAMPLE)

    id: str
    name: str = Field(description="Its tools are `name/tool`.")
    title: str
    url: str
    program: str = Field(description="Of the operator's; empty for an address.")
    auth: AuthKind
    headers: Sequence[str] = Field(description="The names of headers whose values are sealed.")
    state: ConnectionState
    disabled: bool
    in_chats: bool
    call_timeout: float = Field(description="Of each attempt at a call, in seconds.")
    scopes: Sequence[str]
    wanted_scopes: Sequence[str] = Field(
        description="Those that its server wants besides. The next sign-in asks for them."
    )
    refused_scopes: Sequence[str] = Field(
        description="Those that a sign-in asked for and did not get, and later ones do not ask for."
    )
    created_at: datetime
    listed_at: datetime | None = Field(description="When its tools were last compared.")
    expires_at: datetime | None = Field(
        description="When the sign-in ends; null: it renews itself, or it is not known."
    )
    last_used_at: datetime | None
    last_error: str = Field(description="What went wrong at the last use; empty: nothing.")
    last_error_at: datetime | None
    counts: ToolCountsOut

    @classmethod
    def of(cls, shown: ShownConnection) -> Self:
        return cls(**_common_fields(shown))


_WITH_TOOLS = {
    **_EXAMPLE,
    "tools": [
        {
            "name": "search",
            "state": "accepted",
            "digest": _DIGEST,
            "definition": {"description": "Search.", "parameters": {"type": "object"}},
            "accepted_definition": None,
            "read_only": True,
            "repeatable": True,
            "discloses": False,
            "ticked_read_only": True,
            "ticked_repeatable": None,
            "off": False,
            "says_read_only": True,
        }
    ],
}


class ConnectionOut(ConnectionSummaryOut):
    """A connection with its tools."""

    model_config = example(**_WITH_TOOLS)

    tools: Sequence[ConnectionToolOut]

    @classmethod
    def of(cls, shown: ShownConnection) -> Self:
        tools = [ConnectionToolOut.of(tool) for tool in shown.tools]
        return cls(**_common_fields(shown), tools=tools)


class RemovedConnectionOut(BaseModel):
    model_config = example(not_ended_at="")

    not_ended_at: str = Field(
        description="The host that did not end the sign-in, which its owner can end there;"
        " empty: there is none."
    )


class ConnectionCheckOut(BaseModel):
    """The result of connecting to a server."""

    model_config = example(connection=_WITH_TOOLS, error="", hint="", left_out={})

    connection: ConnectionOut
    error: str = Field(description="What is wrong; empty: nothing.")
    hint: str = Field(description="What to do about it.")
    left_out: Mapping[str, str] = Field(description="Why tools were left out, by their names.")

    @classmethod
    def of(cls, check: Check, shown: ShownConnection) -> Self:
        error = check.error
        return cls(
            connection=ConnectionOut.of(shown),
            error="" if error is None else error.message,
            hint="" if error is None else error.hint,
            left_out=check.left_out,
        )


def _common_fields(shown: ShownConnection) -> dict[str, Any]:
    connection = shown.connection
    copied = ConnectionSummaryOut.model_fields.keys() - {"counts", "call_timeout"}
    return {
        **{name: getattr(connection, name) for name in copied},
        "call_timeout": connection.call_timeout.total_seconds(),
        "wanted_scopes": select_named(connection.wanted_scopes),
        "refused_scopes": select_named(connection.refused_scopes),
        "counts": ToolCountsOut.of(shown.tools),
    }


def _state(tool: ConnectionTool) -> ToolState:
    if tool.gone:
        return ToolState.GONE
    if tool.is_accepted:
        return ToolState.ACCEPTED
    return ToolState.CHANGED if tool.accepted else ToolState.NEW
