"""Points at which a process waits to be killed: what the actions are given, wrapped."""

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from backburner.core.ids import UserId
from backburner.core.run import Turn
from backburner.ports import (
    Channel,
    ChannelMessage,
    Claim,
    Engine,
    EngineEvent,
    Gate,
    Offer,
    Store,
    TextDelta,
    ToolResult,
    TurnRequest,
    Tx,
)
from backburner.tools.workspace import CommandTerms

T = TypeVar("T")


class Point(StrEnum):
    AFTER_CLAIM = "after_claim"
    IN_WORDS = "in_words"  #: Something was said, and more is to come.
    IN_TOOL = "in_tool"  #: What it does is done, and nobody knows yet.
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    AFTER_SEND = "after_send"


@dataclass(frozen=True, slots=True)
class Halt:
    """Says when the point is reached, and waits there until SIGUSR1 lets it go on."""

    point: Point | None
    _released: asyncio.Event = field(default_factory=asyncio.Event)

    async def at(self, point: Point) -> None:
        if point is self.point and not self._released.is_set():
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGUSR1, self._released.set)
            say(f"halted at {point}")
            await self._released.wait()


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


@dataclass(frozen=True, slots=True)
class HaltingStore:
    store: Store
    halt: Halt

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        result = await self.store.transact(work, **limits)
        if isinstance(result, list) and any(_has_claim(part) for part in result):
            await self.halt.at(Point.AFTER_CLAIM)
        return result

    async def read(self, work: Callable[[Tx], T], **limits: Any) -> T:
        return await self.store.read(work, **limits)

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        await self.halt.at(Point.BEFORE_COMMIT)
        await self.store.commit(turn, work, alone=alone)
        await self.halt.at(Point.AFTER_COMMIT)


def _has_claim(found: object) -> bool:
    return isinstance(found, tuple) and any(isinstance(part, Claim) for part in found)


@dataclass(frozen=True, slots=True)
class HaltingEngine:
    engine: Engine
    halt: Halt

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        async with aclosing(self.engine.run(request, gate)) as events:
            async for event in events:
                yield event
                if isinstance(event, TextDelta):
                    await self.halt.at(Point.IN_WORDS)


@dataclass(frozen=True, slots=True)
class HaltingTools:
    tools: Callable[[UserId, CommandTerms], Sequence[Offer]]
    halt: Halt

    def __call__(self, user: UserId, terms: CommandTerms) -> Sequence[Offer]:
        return [replace(offer, run=self._halting(offer.run)) for offer in self.tools(user, terms)]

    def _halting(
        self, run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]
    ) -> Callable[[Mapping[str, Any]], Awaitable[ToolResult]]:
        async def halting(arguments: Mapping[str, Any]) -> ToolResult:
            result = await run(arguments)
            await self.halt.at(Point.IN_TOOL)
            return result

        return halting


@dataclass(frozen=True, slots=True)
class HaltingChannel:
    channel: Channel
    halt: Halt

    async def send(self, message: ChannelMessage) -> str | None:
        receipt = await self.channel.send(message)
        await self.halt.at(Point.AFTER_SEND)
        return receipt

    async def close(self) -> None:
        await self.channel.close()
