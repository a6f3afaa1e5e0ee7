"""Programs of chats that are being talked to: kept for a while after a reply, so that the next one
begins at once. Never more than a few, and none that does not remember what its chat does.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from backburner.core.ids import ConversationId
from backburner.engine.claude.program import Program
from backburner.ports import TurnRequest


@dataclass(slots=True)
class _Kept:
    program: Program
    timer: asyncio.TimerHandle


@dataclass(slots=True)
class Warm:
    most: int
    idle: timedelta
    end: Callable[[Program], Awaitable[None]]
    #: Oldest first.
    _kept: dict[ConversationId, _Kept] = field(default_factory=dict)
    _ending: set["asyncio.Task[None]"] = field(default_factory=set)

    def take(self, request: TurnRequest, tools: str) -> Program | None:
        """Take the program of a chat, if what it knows is what the chat has come to."""
        kept = self._kept.pop(request.conversation.id, None)
        if kept is None:
            return None
        kept.timer.cancel()
        if _fits(kept.program, request, tools):
            return kept.program
        self._let_go(kept.program)
        return None

    def keep(self, conversation_id: ConversationId, program: Program) -> None:
        if self.most == 0:
            self._let_go(program)
            return
        while len(self._kept) >= self.most:
            self._drop(next(iter(self._kept)))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.idle.total_seconds(), self._drop, conversation_id)
        self._kept[conversation_id] = _Kept(program, timer)

    async def close(self) -> None:
        for which in list(self._kept):
            self._drop(which)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _drop(self, conversation_id: ConversationId) -> None:
        kept = self._kept.pop(conversation_id)
        kept.timer.cancel()
        self._let_go(kept.program)

    def _let_go(self, program: Program) -> None:
        async def end() -> None:
            await self.end(program)

        task = asyncio.create_task(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _fits(program: Program, request: TurnRequest, tools: str) -> bool:
    return (
        request.schema is None
        and program.session == request.session_id
        and program.tools == tools
        # Another run may have used the session since, or what this one did was not kept.
        and program.memory == list(request.memory)
    )
