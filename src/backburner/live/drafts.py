"""What is being said, for those who watch: at once in this process, as a draft for the others."""

import asyncio
from dataclasses import dataclass, field

from backburner.actions.deps import Deps
from backburner.actions.watching import DraftClosed, DraftPiece
from backburner.core.run import RunKind, Turn

#: Between two drafts, in seconds.
DRAFT_INTERVAL_SECONDS = 0.5


@dataclass(slots=True)
class DraftWriter:
    """Of one run."""

    deps: Deps
    turn: Turn
    _text: str = ""
    _writing: "asyncio.Task[None] | None" = field(default=None)

    def say(self, text: str) -> None:
        self._text += text
        turn = self.turn
        words = DraftPiece(turn.run_id, text, self._text, is_reply=turn.kind is RunKind.REPLY)
        self.deps.watchers.show(turn.user_id, turn.conversation_id, words)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Say that there is nothing more to come; what was said is in the messages by now."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        turn = self.turn
        self.deps.watchers.show(turn.user_id, turn.conversation_id, DraftClosed(turn.run_id))

    async def _write(self) -> None:
        written = ""
        while True:
            if self._text != written:
                written = self._text
                await self.deps.store.transact(lambda tx: tx.runs.save_draft(self.turn, self._text))
            await asyncio.sleep(DRAFT_INTERVAL_SECONDS)
