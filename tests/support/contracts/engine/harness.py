"""A harness for engines: a gate that records calls, and a caller that keeps the session."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from backburner.core.allowance import Usage
from backburner.core.errors import StoreFailed
from backburner.core.outcome import OUTCOME_SCHEMA
from backburner.core.run import RunKind
from backburner.ports import (
    Engine,
    EngineEvent,
    Offer,
    SessionEntries,
    TextDelta,
    ToolResult,
    TurnEnded,
    TurnRequest,
)
from support.doubles.tools import TestTools
from support.model_api import ModelApi
from support.stage import make

#: Of a turn; only a broken engine takes as long.
TURN_SECONDS = 30.0
#: Of a turn that was cancelled, until it has ended.
END_SECONDS = 10.0
#: How long a model may be silent, unless a promise is about that.
STALL_LIMIT = timedelta(seconds=20)


class Subject(Protocol):
    """An engine under test."""

    def engine(self, *, stall: timedelta = STALL_LIMIT) -> Engine:
        """Make a new engine. `stall`: how long its model may be silent during a response."""


class ModelSubject(Subject, Protocol):
    """An engine whose model is `api`."""

    @property
    def api(self) -> ModelApi: ...

    @property
    def model(self) -> str:
        """The name under which the model is paid for."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One engine for all turns, instead of a new one for each."""

    made: Engine

    def engine(self, *, stall: timedelta = STALL_LIMIT) -> Engine:
        del stall
        return self.made


class RecordingGate:
    """Makes every call that it has no answer for."""

    def __init__(self) -> None:
        self.calls: list[tuple[Offer, Mapping[str, Any]]] = []
        self.paid: list[tuple[str, Usage]] = []
        #: The results of the next calls, which are not made.
        self.answers = deque[ToolResult]()
        self.has_allowance = True
        #: Usage cannot be stored.
        self.fails = False
        self.stops = False

    @property
    def called(self) -> list[tuple[str, Mapping[str, Any]]]:
        return [(offer.tool.name, arguments) for offer, arguments in self.calls]

    async def call(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        self.calls.append((offer, arguments))
        if self.answers:
            return self.answers.popleft()
        result = await offer.run(arguments)
        return ToolResult(result.text, failed=result.failed, stop=self.stops)

    async def pay(self, model: str, usage: Usage) -> bool:
        if self.fails:
            raise StoreFailed("The database does not answer.")
        self.paid.append((model, usage))
        return self.has_allowance


@dataclass(slots=True)
class TurnResult:
    """The events of a turn."""

    texts: list[str] = field(default_factory=list)
    ended: TurnEnded | None = None

    @property
    def end(self) -> TurnEnded:
        assert self.ended is not None, "The turn did not end."
        return self.ended


@dataclass(slots=True)
class EngineHarness:
    """A session with an engine, kept by the caller as a run does it."""

    subject: Subject
    gate: RecordingGate = field(default_factory=RecordingGate)
    tools: TestTools = field(default_factory=TestTools)
    #: Offered instead of the usual ones.
    offers: Iterable[Offer] | None = None
    session_id: str | None = None
    memory: list[str] = field(default_factory=list)
    #: Of the session, as last reported.
    tokens: int | None = None
    #: Of the user, for the model.
    own_key: str | None = None

    async def turn(
        self,
        prompt: str = "Please.",
        *,
        ends_with_outcome: bool = False,
        stall: timedelta = STALL_LIMIT,
    ) -> TurnResult:
        """Run a whole turn, with a new engine."""
        result = TurnResult()
        async with (
            asyncio.timeout(TURN_SECONDS),
            self.events(prompt, ends_with_outcome=ends_with_outcome, stall=stall) as events,
        ):
            async for event in events:
                match event:
                    case TextDelta(text):
                        result.texts.append(text)
                    case TurnEnded():
                        assert result.ended is None, "The turn ended twice."
                        result.ended = event
                    case SessionEntries():
                        pass
        return result

    @asynccontextmanager
    async def events(
        self, prompt: str, *, ends_with_outcome: bool = False, stall: timedelta = STALL_LIMIT
    ) -> AsyncIterator[AsyncIterator[EngineEvent]]:
        """Run a turn event by event."""
        engine = self.subject.engine(stall=stall)
        request = self._request(prompt, ends_with_outcome=ends_with_outcome)
        async with aclosing(engine.run(request, self.gate)) as events:
            yield self._remembering(events)

    async def _remembering(self, events: AsyncIterator[EngineEvent]) -> AsyncIterator[EngineEvent]:
        async for event in events:
            if isinstance(event, SessionEntries):
                assert self.session_id in (None, event.session_id), "The session id changed."
                self.session_id = event.session_id
                self.memory += event.entries
                self.tokens = self.tokens if event.tokens is None else event.tokens
            yield event

    def _request(self, prompt: str, *, ends_with_outcome: bool) -> TurnRequest:
        usual = [
            self.tools.offer("look", free=True, read_only=True),
            self.tools.offer("send"),
            self.tools.offer("slow", free=True),
        ]
        return TurnRequest(
            conversation=make.conversation(),
            kind=RunKind.BACKGROUND if ends_with_outcome else RunKind.REPLY,
            prompt=prompt,
            items=(),
            session_id=self.session_id,
            memory=tuple(self.memory),
            tools=usual if self.offers is None else list(self.offers),
            schema=OUTCOME_SCHEMA if ends_with_outcome else None,
            own_key=self.own_key,
        )


async def ends_soon(task: "asyncio.Task[Any]") -> None:
    """Wait for a task that was cancelled."""
    await asyncio.wait({task}, timeout=END_SECONDS)
    assert task.done(), "The task does not end."
