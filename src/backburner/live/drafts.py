"""Drafts: the text of runs in progress, at once in this process, and as rows for the others."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from backburner.actions.deps import Deps
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import RunKind, Turn
from backburner.ports import (
    DraftClosed,
    DraftEvent,
    DraftListener,
    DraftOpened,
    DraftPiece,
    ReplyDraft,
)

#: Until a draft is written to the database, and between two writes. A short reply needs no draft.
FIRST_DRAFT_SECONDS, DRAFT_INTERVAL_SECONDS = 0.25, 0.5


class Broadcast:
    """Passes pieces to listeners, and keeps the whole text of every reply in progress."""

    def __init__(self) -> None:
        self._listeners: tuple[DraftListener, ...] = ()
        self._replies: dict[UserId, dict[ConversationId, ReplyDraft]] = {}
        #: Runs that give a reply here, whether it has begun or not.
        self._writing: dict[tuple[UserId, ConversationId], RunId] = {}

    @contextmanager
    def listen(self, listener: DraftListener) -> Iterator[None]:
        self._listeners += (listener,)
        try:
            yield
        finally:
            self._listeners = tuple(other for other in self._listeners if other != listener)

    def publish(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        self._keep(user, conversation_id, event)
        for listener in self._listeners:
            listener(user, conversation_id, event)

    def replies(self, user: UserId) -> Sequence[ReplyDraft]:
        return tuple(self._replies.get(user, {}).values())

    def is_writing(self, user: UserId, conversation_id: ConversationId) -> bool:
        return (user, conversation_id) in self._writing

    def _keep(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        if isinstance(event, DraftOpened):
            self._writing[user, conversation_id] = event.run_id
            return
        replies = self._replies.setdefault(user, {})
        if isinstance(event, DraftClosed):
            replies.pop(conversation_id, None)
            if self._writing.get((user, conversation_id)) == event.run_id:
                del self._writing[user, conversation_id]
        elif event.is_reply:
            draft = replies.get(conversation_id)
            before = draft.text if draft and draft.run == event.run_id else ""
            text = before + event.text
            replies[conversation_id] = ReplyDraft(conversation_id, event.run_id, text)
        if not replies:
            del self._replies[user]


@dataclass(slots=True)
class DraftWriter:
    """Publishes the text of one run: pieces at once, the whole to the database now and then."""

    deps: Deps
    turn: Turn
    _text: str = ""
    _writing: "asyncio.Task[None] | None" = field(default=None)

    def open(self) -> None:
        """Announce a reply, before its first piece."""
        turn = self.turn
        if turn.kind is RunKind.REPLY:
            self.deps.drafts.publish(turn.user_id, turn.conversation_id, DraftOpened(turn.run_id))

    def add(self, text: str) -> None:
        turn = self.turn
        is_reply = turn.kind is RunKind.REPLY
        piece = DraftPiece(turn.run_id, len(self._text), text, is_reply=is_reply)
        self._text += text
        self.deps.drafts.publish(turn.user_id, turn.conversation_id, piece)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Announce that no more text follows; by now it is in the messages."""
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait({self._writing})
        turn = self.turn
        self.deps.drafts.publish(turn.user_id, turn.conversation_id, DraftClosed(turn.run_id))

    async def _write(self) -> None:
        written = ""
        await asyncio.sleep(FIRST_DRAFT_SECONDS)
        while True:
            if self._text != written:
                written = self._text
                await self.deps.store.transact(lambda tx: tx.runs.save_draft(self.turn, self._text))
            await asyncio.sleep(DRAFT_INTERVAL_SECONDS)
