"""What an engine is tried with: a gate that keeps what passes it, and a caller that remembers."""

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

#: How long a turn may take, in seconds; only what is broken takes as long.
BOUND = 30.0
#: How long one may take to end that is to end.
SOON = 10.0
#: How long a model may say nothing, unless a promise is about just that.
PATIENCE = timedelta(seconds=20)


class Subject(Protocol):
    """An engine to be tried."""

    def engine(self, *, stall: timedelta = PATIENCE) -> Engine:
        """Make a new one. `stall`: how long its model may say nothing in the middle of a reply."""


class ModelSubject(Subject, Protocol):
    """An engine that works with a model, which is `api`."""

    @property
    def api(self) -> ModelApi: ...

    @property
    def model(self) -> str:
        """What it calls the model when it pays for it."""


@dataclass(frozen=True, slots=True)
class Shared:
    """One engine for all turns, instead of a new one for each."""

    made: Engine

    def engine(self, *, stall: timedelta = PATIENCE) -> Engine:
        del stall
        return self.made


class TrialGate:
    """Lets every call pass that it has no answer for."""

    def __init__(self) -> None:
        self.calls: list[tuple[Offer, Mapping[str, Any]]] = []
        self.paid: list[tuple[str, Usage]] = []
        #: What the next calls are answered with, instead of being made.
        self.answers = deque[ToolResult]()
        self.has_money = True
        #: Nothing can be written down.
        self.breaks = False
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
        if self.breaks:
            raise StoreFailed("The database does not answer.")
        self.paid.append((model, usage))
        return self.has_money


@dataclass(slots=True)
class Heard:
    """What came of a turn."""

    said: list[str] = field(default_factory=list)
    ended: TurnEnded | None = None

    @property
    def end(self) -> TurnEnded:
        assert self.ended is not None, "The turn did not end."
        return self.ended


@dataclass(slots=True)
class Trial:
    """A session with an engine, remembered by the one who asks as the real one does it."""

    subject: Subject
    gate: TrialGate = field(default_factory=TrialGate)
    tools: TestTools = field(default_factory=TestTools)
    #: Offered instead of the usual ones.
    offers: Iterable[Offer] | None = None
    session_id: str | None = None
    memory: list[str] = field(default_factory=list)
    #: What was remembered last about its length.
    tokens: int | None = None

    async def turn(
        self,
        prompt: str = "Please.",
        *,
        ends_with_outcome: bool = False,
        stall: timedelta = PATIENCE,
    ) -> Heard:
        """Do a whole turn, with an engine that knows nothing yet."""
        heard = Heard()
        async with (
            asyncio.timeout(BOUND),
            self.events(prompt, ends_with_outcome=ends_with_outcome, stall=stall) as events,
        ):
            async for event in events:
                match event:
                    case TextDelta(text):
                        heard.said.append(text)
                    case TurnEnded():
                        assert heard.ended is None, "It ended twice."
                        heard.ended = event
                    case SessionEntries():
                        pass
        return heard

    @asynccontextmanager
    async def events(
        self, prompt: str, *, ends_with_outcome: bool = False, stall: timedelta = PATIENCE
    ) -> AsyncIterator[AsyncIterator[EngineEvent]]:
        """Do a turn event by event."""
        engine = self.subject.engine(stall=stall)
        request = self._request(prompt, ends_with_outcome=ends_with_outcome)
        async with aclosing(engine.run(request, self.gate)) as events:
            yield self._remembering(events)

    async def _remembering(self, events: AsyncIterator[EngineEvent]) -> AsyncIterator[EngineEvent]:
        async for event in events:
            if isinstance(event, SessionEntries):
                assert self.session_id in (None, event.session_id), "It changed its session."
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
        )


async def ends_soon(task: "asyncio.Task[Any]") -> None:
    """Wait for something that was told to end."""
    await asyncio.wait({task}, timeout=SOON)
    assert task.done(), "It does not end."
