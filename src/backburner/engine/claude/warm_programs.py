"""Warm programs: kept for a while after a reply, so that the next reply of the chat starts at once.

Never more than a few, and none whose memory differs from that of its chat, or whose folder was
removed, even if it was added again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

from backburner.core.ids import ConversationId
from backburner.engine.claude.program import FolderIdentity, Program
from backburner.ports import TurnRequest


@dataclass(slots=True)
class _WarmProgram:
    program: Program
    timer: asyncio.TimerHandle


@dataclass(slots=True)
class WarmPrograms:
    limit: int
    idle_limit: timedelta
    end: Callable[[Program], Awaitable[None]]
    #: Oldest first.
    _kept: dict[ConversationId, _WarmProgram] = field(default_factory=dict)
    _ending: set["asyncio.Task[None]"] = field(default_factory=set)

    def take(
        self, request: TurnRequest, tools: str, place: FolderIdentity | None
    ) -> Program | None:
        """Take the program of a chat, if its memory, tools and folder are still those of it."""
        kept = self._kept.pop(request.conversation.id, None)
        if kept is None:
            return None
        kept.timer.cancel()
        if _is_current(kept.program, request, tools) and kept.program.place == place:
            return kept.program
        self._end_soon(kept.program)
        return None

    def keep(self, conversation_id: ConversationId, program: Program) -> None:
        if self.limit == 0:
            self._end_soon(program)
            return
        while len(self._kept) >= self.limit:
            self._drop(next(iter(self._kept)))
        loop = asyncio.get_running_loop()
        timer = loop.call_later(self.idle_limit.total_seconds(), self._drop, conversation_id)
        self._kept[conversation_id] = _WarmProgram(program, timer)

    async def close(self) -> None:
        for conversation_id in list(self._kept):
            self._drop(conversation_id)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _drop(self, conversation_id: ConversationId) -> None:
        kept = self._kept.pop(conversation_id)
        kept.timer.cancel()
        self._end_soon(kept.program)

    def _end_soon(self, program: Program) -> None:
        async def end() -> None:
            await self.end(program)

        task = asyncio.create_task(end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _is_current(program: Program, request: TurnRequest, tools: str) -> bool:
    return (
        request.schema is None
        and program.session == request.session_id
        and program.tools_digest == tools
        # Another run may have used the session since, or the last turn was not stored.
        and program.memory == list(request.memory)
    )
