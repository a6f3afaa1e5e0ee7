"""Agents: what an engine is asked, what it answers, and the gate between it and everything else."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol

from backburner.core.allowance import Usage
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, ItemId
from backburner.core.run import Item, RunKind, Turn
from backburner.core.tool_policy import Tool


@dataclass(frozen=True, slots=True)
class JobWait:
    """What a run waits for, and how long at most; meanwhile it holds nothing."""

    jobs: tuple[ConversationId, ...]
    timeout: timedelta


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What the agent is told a call gave."""

    text: str
    failed: bool = False
    #: The agent is to end its turn now, without another word.
    stop: bool = False
    #: Items of the inbox that tell what the agent was told here.
    served: tuple[ItemId, ...] = ()
    #: The run is to be handed back until then.
    wait: JobWait | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A tool as the agent is offered it."""

    tool: Tool
    description: str
    #: JSON schema of its arguments.
    parameters: Mapping[str, Any]
    #: It changes nothing, as we or its owner know it to: made again if nobody knows whether it was.
    read_only: bool
    run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
    #: What it gives may hold words of others.
    outside: bool = True


class Gate(Protocol):
    """What stands between an agent and everything it may use. There is no other way."""

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        """Make a call of a tool, or say why not."""

    async def pay(self, model: str, usage: Usage) -> bool:
        """Write down a call of a model that was made; False: no further one may be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRequest:
    """One turn of an agent."""

    conversation: Conversation
    kind: RunKind
    prompt: str
    #: What the prompt is about, as far as an inbox held it.
    items: Sequence[Item]
    #: The agent's own session, and what it remembers of it, oldest first; None: it begins one.
    session_id: str | None
    memory: Sequence[str]
    tools: Sequence[Offer]
    #: JSON schema of what the turn has to end with; None: it ends with text.
    schema: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A further piece of what the agent says."""

    text: str


@dataclass(frozen=True, slots=True)
class SessionEntries:
    """Entries to be kept for the next turn in the same session."""

    session_id: str
    entries: tuple[str, ...]
    #: About how long the session has become, apart from system prompt and tools; None: as before.
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over."""

    text: str
    #: Where a schema was given: what the engine made of the end, to be checked.
    outcome: object = None


EngineEvent = TextDelta | SessionEntries | TurnEnded


class Engine(Protocol):
    def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        """Do one turn. Raises `EngineFailed`, `SessionGone` where the session is no longer there.

        Cancelling whoever iterates ends the turn and everything it started.
        """


class Toolbox(Protocol):
    async def offers(self, turn: Turn, conversation: Conversation) -> Sequence[Offer]:
        """Collect the tools that the agent may be offered in a run."""


class Trouble(StrEnum):
    REFUSED = "refused"  #: It does not take the key or token.
    UNREACHABLE = "unreachable"  #: Nothing answers, or nothing that speaks the protocol.
    MODEL = "model"  #: It does not have that model.
    LIMIT = "limit"  #: It would, but not now, or not without being paid.
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Trial:
    """How a try went, in a sentence without any secret in it."""

    message: str
    #: None: it works.
    trouble: Trouble | None = None
    #: What to do about it, in a sentence.
    hint: str = ""

    @property
    def works(self) -> bool:
        return self.trouble is None
