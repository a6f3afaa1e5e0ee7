"""A subscriber of the feed, and its queue."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from backburner.core.ids import ConversationId, UserId
from backburner.ports import Change, ReplyDraft

#: A subscriber that is further behind reloads everything.
MAX_SUBSCRIBER_QUEUE = 500


@dataclass(frozen=True, slots=True)
class FeedItem:
    """Updates for one client, sent in this order."""

    #: The number it starts at, and whether everything has to be reloaded.
    begins_at: int | None = None
    resets: bool = False
    changes: tuple[Change, ...] = ()
    #: None of them is older than a change of the same conversation.
    drafts: tuple[ReplyDraft, ...] = ()


@dataclass(slots=True, eq=False)
class Subscriber:
    user: UserId
    credential: str
    ended: bool = False
    #: The last change queued or sent.
    _number: int | None = None
    _begins_at: int | None = None
    _resets: bool = False
    _changes: list[Change] = field(default_factory=list)
    _drafts: dict[ConversationId, ReplyDraft] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, newest: int, missed: list[Change] | None, *, is_new: bool) -> None:
        """Start with the changes that were missed; None: with a reload of everything."""
        if is_new or missed is None:
            self._number = self._begins_at = newest
            self._resets = not is_new
        else:
            self._number = missed[-1].number if missed else newest
            self._changes = missed
        self._wake.set()

    def offer(self, changes: Iterable[Change]) -> Collection[ConversationId]:
        """Queue changes; return the conversations whose queued draft was dropped.

        Such a draft may be a message by now. If not, it has to be added again, as a whole.
        """
        dropped = list[ConversationId]()
        if self._number is None:
            # Not started yet: it will start at these changes or after them.
            return dropped
        for change in changes:
            if change.number > self._number:
                self._number = change.number
                self._changes.append(change)
                if change.conversation in self._drafts:
                    del self._drafts[change.conversation]
                    dropped.append(change.conversation)
        if len(self._changes) > MAX_SUBSCRIBER_QUEUE:
            self._changes.clear()
            self._begins_at, self._resets = self._number, True
        self._wake.set()
        return dropped

    def hear(self, draft: ReplyDraft) -> None:
        """Keep one draft for each conversation; a piece that continues it is added to it."""
        queued = self._drafts.get(draft.conversation)
        if queued is not None and queued.run == draft.run:
            overlap = draft.at - queued.at
            if 0 <= overlap <= len(queued.text) <= overlap + len(draft.text):
                draft = replace(queued, text=queued.text[:overlap] + draft.text)
        self._drafts[draft.conversation] = draft
        self._wake.set()

    def end(self) -> None:
        self.ended = True
        self._wake.set()

    async def wait(self, seconds: float) -> bool:
        """Wait for something to send, or for the end; False: there was nothing."""
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        self._wake.clear()
        return True

    def take(self) -> FeedItem:
        if self.ended or self._number is None:
            return FeedItem()
        news = FeedItem(
            self._begins_at, self._resets, tuple(self._changes), tuple(self._drafts.values())
        )
        self._begins_at, self._resets = None, False
        self._drafts.clear()
        self._changes.clear()
        return news
