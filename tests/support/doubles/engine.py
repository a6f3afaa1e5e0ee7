"""An agent that does what it is told beforehand, and remembers what it was asked."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

from backburner.core.allowance import Usage
from backburner.core.errors import BackburnerError
from backburner.core.ids import CallId
from backburner.ports import (
    EngineEvent,
    Gate,
    Offer,
    SessionEntries,
    TextDelta,
    ToolResult,
    TurnEnded,
    TurnRequest,
)

MODEL = "scripted-model"
COMPLETE = {"complete": True, "message": "Done."}


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


class AtOnce(tuple[Call, ...]):
    """Calls that are made together."""

    __slots__ = ()

    def __new__(cls, *calls: Call) -> Self:
        return super().__new__(cls, calls)


@dataclass(frozen=True, slots=True)
class Spend:
    tokens: int


@dataclass(frozen=True, slots=True)
class Wait:
    """Until something is set; without it, for ever."""

    until: asyncio.Event | None = None


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float


@dataclass(frozen=True, slots=True)
class Ignore:
    """Everything, for some time; also that the turn is to end."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Fail:
    error: BackburnerError


@dataclass(frozen=True, slots=True)
class End:
    """With an outcome where one is asked for, else with all that was said."""

    outcome: object = None
    text: str = ""


Step = Say | Call | AtOnce | Spend | Wait | Sleep | Ignore | Fail | End
#: What is done in a turn, as a function of what it is asked for.
Script = Callable[[TurnRequest], Iterable[Step]]


class ScriptedEngine:
    """Plays one script a turn, in the order given; then whatever `otherwise` says."""

    def __init__(self, *scripts: Iterable[Step] | Script, otherwise: Script | None = None) -> None:
        self._scripts = deque(scripts)
        self._otherwise = otherwise or _answer
        self.requests: list[TurnRequest] = []
        self.results: list[ToolResult] = []
        #: The model that it says it has called.
        self.model = MODEL
        #: How long it says its sessions are, or how it measures them.
        self.tokens: int | Callable[[TurnRequest], int] | None = None
        #: Set once there is a request.
        self.began = asyncio.Event()
        #: How many turns are under way, and the most there ever were.
        self.underway = 0
        self.most_underway = 0

    def then(self, *steps: Step) -> None:
        self._scripts.append(steps)

    def then_as(self, script: Script) -> None:
        self._scripts.append(script)

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        self.requests.append(request)
        self.began.set()
        script = self._scripts.popleft() if self._scripts else self._otherwise
        self.underway += 1
        self.most_underway = max(self.most_underway, self.underway)
        try:
            async for event in self._play(request, gate, script):
                yield event
        finally:
            self.underway -= 1

    async def _play(
        self, request: TurnRequest, gate: Gate, script: Iterable[Step] | Script
    ) -> AsyncGenerator[EngineEvent, None]:
        session = request.session_id or f"session-{len(self.requests)}"
        tokens = self.tokens(request) if callable(self.tokens) else self.tokens
        yield SessionEntries(session, (f"asked: {request.prompt}",), tokens)
        said = ""
        offers = {offer.tool.name: offer for offer in request.tools}
        for step in script(request) if callable(script) else script:
            match step:
                case Say(text):
                    said += text
                    yield TextDelta(text)
                case Call() | AtOnce():
                    results = await self._call(gate, offers, step)
                    gave = tuple(f"a call gave: {result.text}" for result in results)
                    yield SessionEntries(session, gave, calls=ids_of(results))
                    if any(result.stop for result in results):
                        return
                case Spend(tokens):
                    if not await gate.pay(self.model, Usage(output=tokens)):
                        return
                case Wait() | Sleep() | Ignore():
                    await _let_time_pass(step)
                case Fail(error):
                    raise error
                case End(outcome, text):
                    yield SessionEntries(session, (f"said: {said or text}",))
                    yield TurnEnded(said or text, outcome)
                    return
        yield SessionEntries(session, (f"said: {said}",))
        yield TurnEnded(said, COMPLETE if request.schema is not None else None)

    async def _call(
        self, gate: Gate, offers: Mapping[str, Offer], step: Call | AtOnce
    ) -> list[ToolResult]:
        calls = (step,) if isinstance(step, Call) else step
        results = await asyncio.gather(
            *(gate.call(offers[one.tool], one.arguments) for one in calls)
        )
        self.results += results
        return results


def ids_of(results: Iterable[ToolResult]) -> tuple[CallId, ...]:
    """Name the calls that gave results."""
    return tuple(result.call_id for result in results if result.call_id is not None)


async def _let_time_pass(step: Wait | Sleep | Ignore) -> None:
    match step:
        case Wait(until):
            await (until or asyncio.Event()).wait()
        case Sleep(seconds):
            await asyncio.sleep(seconds)
        case Ignore(seconds):
            loop = asyncio.get_running_loop()
            until_then = loop.time() + seconds
            while (left := until_then - loop.time()) > 0:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(left)


def _answer(request: TurnRequest) -> Iterable[Step]:
    return () if request.schema is not None else (Say("Hello."),)
