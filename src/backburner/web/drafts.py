"""Replies in progress, as blocks: each is rendered once when it closes, once for all who watch."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from backburner.core.ids import ConversationId, RunId
from backburner.ports import ReplyDraft
from backburner.web.markdown import BlockClosed, BlockText, DraftBlocks, DraftReset
from backburner.web.off_loop import run_off_loop

#: Of a process. Older ones are rendered again if somebody still watches them.
MAX_DRAFTS = 200
#: A longer block takes more than milliseconds, and is split and rendered in a thread.
MAX_LOOP_CHARS = 2_000


@dataclass(slots=True)
class Draft:
    """The text of a reply so far, and its blocks."""

    run: RunId
    text: str = ""
    closed: list[str] = field(default_factory=list)
    open_text: str = ""
    #: How often the reply, and the text of the open block, has started over.
    starts: int = 0
    open_starts: int = 0
    #: Held while a piece is added and shown: another watcher may bring the next one.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    _blocks: DraftBlocks = field(default_factory=DraftBlocks)

    def add(self, piece: ReplyDraft) -> None:
        """Add a piece, which may be known already: other watchers were sent it before."""
        is_known = self.text[piece.at : piece.at + len(piece.text)] == piece.text
        # A piece that begins after the text comes again later, as a whole.
        if is_known or piece.at > len(self.text):
            return
        self.text = self.text[: piece.at] + piece.text
        for update in self._blocks.feed(piece.at, piece.text):
            match update:
                case DraftReset():
                    self.starts += 1
                    self.closed, self.open_text = [], ""
                case BlockClosed():
                    self.closed.append(str(update.html))
                    self.open_text = ""
                case BlockText():
                    self.open_starts += update.at == 0
                    self.open_text = self.open_text[: update.at] + update.text


class Drafts:
    """The drafts that this process shows."""

    def __init__(self) -> None:
        self._drafts: OrderedDict[ConversationId, Draft] = OrderedDict()

    async def show(self, piece: ReplyDraft, watcher: "Watcher") -> Mapping[str, Any] | None:
        """Add a piece, and return what the stream of a watcher lacks; None: nothing."""
        draft = self._find(piece)
        async with draft.lock:
            if len(draft.open_text) + len(piece.text) > MAX_LOOP_CHARS:
                await run_off_loop(partial(draft.add, piece))
            else:
                draft.add(piece)
            return watcher.show(piece.conversation, draft)

    def _find(self, piece: ReplyDraft) -> Draft:
        draft = self._drafts.get(piece.conversation)
        if draft is None or draft.run != piece.run:
            draft = self._drafts[piece.conversation] = Draft(piece.run)
        self._drafts.move_to_end(piece.conversation)
        if len(self._drafts) > MAX_DRAFTS:
            self._drafts.popitem(last=False)
        return draft


@dataclass(frozen=True, slots=True)
class _Sent:
    """The part of a draft that a stream was sent."""

    run: RunId
    starts: int
    open_starts: int
    closed: int
    #: Characters of the open block.
    length: int


class Watcher:
    """Knows what one stream was sent of each draft."""

    def __init__(self) -> None:
        self._sent: dict[ConversationId, _Sent] = {}

    def forget(self, conversation_id: ConversationId) -> None:
        self._sent.pop(conversation_id, None)

    def show(self, conversation_id: ConversationId, draft: Draft) -> Mapping[str, Any] | None:
        """Return what the stream lacks; None: nothing."""
        before = self._sent.get(conversation_id)
        now = _Sent(
            draft.run, draft.starts, draft.open_starts, len(draft.closed), len(draft.open_text)
        )
        if now == before:
            return None
        self._sent[conversation_id] = now
        is_new = before is None or (before.run, before.starts) != (now.run, now.starts)
        blocks = 0 if before is None or is_new else before.closed
        at = 0
        if before is not None and replace(before, length=now.length) == now:
            at = before.length
        return {
            "conversation": conversation_id,
            "run": draft.run,
            "fresh": is_new,
            "blocks": draft.closed[blocks:],
            "open": {"block": now.closed, "at": at, "text": draft.open_text[at:]},
        }
