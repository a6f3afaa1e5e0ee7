"""Engines: turn requests, engine events, tools, and the gate that tool calls pass."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol

from backburner.core.allowance import Usage
from backburner.core.connections.access import NOTHING_LACKING, Lacking
from backburner.core.connections.inputs.input_request import InputNeeded
from backburner.core.content.file import FileReference
from backburner.core.conversation import Conversation
from backburner.core.ids import CallId, ConversationId, ItemId
from backburner.core.run import Item, RunKind, Turn
from backburner.core.tool_policy import Tool, ToolCall


@dataclass(frozen=True, slots=True)
class JobWait:
    """The jobs that a run waits for. A waiting run holds no turn and no seat."""

    jobs: tuple[ConversationId, ...]
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes in a result: an image, a recording or a file."""

    data: bytes
    #: Such as `image/png`.
    media_type: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that a result points to."""

    url: str
    name: str = ""
    description: str = ""
    media_type: str = ""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, as the agent sees it."""

    #: All text of the result; the journal keeps it.
    text: str
    failed: bool = False
    #: It failed in the words of others: its text is outside text all the same.
    outside: bool = False
    #: The agent has to end its turn now, without further output.
    stop: bool = False
    #: Inbox items whose content is in this result.
    served: tuple[ItemId, ...] = ()
    #: Jobs that the run has to be handed back for.
    wait: JobWait | None = None
    #: What the server wants of the user before it completes the call.
    input_needed: InputNeeded | None = None
    #: Calls to ask the user about, with what they are shown of each.
    asks: Sequence[tuple[ToolCall, str]] = ()
    #: Content that is not text, in the order of the server.
    blobs: tuple[Blob, ...] = ()
    links: tuple[Link, ...] = ()
    #: Files for the user, which are stored already.
    handed_over: tuple[FileReference, ...] = ()
    #: The result as JSON, if the tool has one.
    structured: Mapping[str, Any] | None = None
    #: Of the call in the journal; None: the gate made none for this result. No part of its content.
    call_id: CallId | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool that is offered to the agent."""

    tool: Tool
    description: str
    #: JSON schema of its arguments.
    parameters: Mapping[str, Any]
    #: Changes nothing, by our own or the operator's declaration: safe to repeat after a crash.
    read_only: bool
    run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
    #: Results may contain outside text.
    outside: bool = True
    #: Works in the folder of the conversation, if it has one.
    in_folder: bool = False
    #: Waits for something, so that agents call it again and again.
    waits: bool = False
    #: The tool and arguments that a call of this one stands for, or why there are none.
    resolve: "Callable[[Mapping[str, Any]], MeantCall | ToolResult] | None" = None
    #: Describes a call to the user who is asked about it.
    preview: Callable[[Mapping[str, Any]], Awaitable[str]] | None = None
    #: The preview may contain outside text, such as names and lines of files.
    preview_outside: bool = True
    #: Raises a `BackburnerError` for a call that no approval could help.
    check: Callable[[Mapping[str, Any]], Awaitable[None]] | None = None


#: The call that another one stands for.
MeantCall = tuple[Offer, Mapping[str, Any]]


class Gate(Protocol):
    """The only path from an agent to its tools and its budget."""

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool, or explain the refusal."""

    async def pay(self, model: str, usage: Usage) -> bool:
        """Record the cost of a model call; False: the budget is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    conversation: Conversation
    kind: RunKind
    prompt: str
    #: Inbox items that the prompt covers.
    items: Sequence[Item]
    #: The agent's session, with its entries in `memory`, oldest first; None: a new session.
    session_id: str | None
    memory: Sequence[str]
    tools: Sequence[Offer]
    #: JSON schema of the final output; None: plain text.
    schema: Mapping[str, Any] | None
    #: When the folder of the conversation was added; None: it has none.
    folder_added_at: datetime | None = None
    #: Images that the user has attached to the messages that the prompt is about.
    images: Sequence[Blob] = ()
    #: The user's own key or token for the model, instead of the one in the settings.
    own_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the agent's text."""

    text: str


@dataclass(frozen=True, slots=True)
class SessionEntries:
    """Entries to store for the next turn of the same session."""

    session_id: str
    entries: tuple[str, ...]
    #: Estimated session length without system prompt and tools; None: unchanged.
    tokens: int | None = None
    #: Calls whose results are in the entries: an agent that resumes the session knows of them.
    calls: tuple[CallId, ...] = ()


@dataclass(frozen=True, slots=True)
class TurnEnded:
    text: str
    #: Output parsed for the schema, not validated yet.
    outcome: object = None


EngineEvent = TextDelta | SessionEntries | TurnEnded


class Engine(Protocol):
    def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        """Run one turn. Raises `EngineFailed`, or `SessionGone` if the session no longer exists.

        If the model refuses the images of the request before it has done anything, it raises
        `ImagesRefused`, unless the engine has asked again without them.

        Cancelling the iterating task ends the turn and every process it started.
        """


class Connected(Protocol):
    """The connections of one run. Sessions are opened when they are used."""

    async def offers(self) -> Sequence[Offer]:
        """List the tools that the owner has accepted."""

    async def find_lacking(self, *, besides: Collection[str]) -> Lacking:
        """Find what the work lacks of the connections that its brief names, `besides` those."""

    @property
    def note(self) -> str:
        """A note for the agent about connections that it cannot use now; empty: there is none."""


class NoConnections:
    """Of a run that may use none."""

    note = ""

    async def offers(self) -> Sequence[Offer]:
        return ()

    async def find_lacking(self, *, besides: Collection[str]) -> Lacking:
        del besides
        return NOTHING_LACKING


NO_CONNECTIONS = NoConnections()


class Toolbox(Protocol):
    def connect(
        self, turn: Turn, conversation: Conversation, items: Sequence[Item]
    ) -> AbstractAsyncContextManager[Connected]:
        """Offer the connections that a conversation may use; leaving it closes all sessions.

        `items` may answer what servers have asked in an earlier call.
        """

    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        """List the tools to offer to the agent in a run."""

    async def check_folder(self, conversation: Conversation) -> None:
        """Raise a `BackburnerError` unless its folder, if any, is still the one that was added."""

    async def end_run(self, turn: Turn) -> None:
        """Remove what the tools of a run have on this machine for it."""


class Trouble(StrEnum):
    REFUSED = "refused"  #: The key or token was rejected.
    UNREACHABLE = "unreachable"  #: No answer, or not in the expected protocol.
    MODEL = "model"  #: The model does not exist there.
    LIMIT = "limit"  #: Rate limit or billing.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of a trial request to a model. `message` contains no secret."""

    message: str
    #: None: the trial succeeded.
    trouble: Trouble | None = None
    #: How to fix it.
    hint: str = ""

    @property
    def works(self) -> bool:
        return self.trouble is None
