"""Followers of the feed, and their queues."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
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
class Follower:
    """Gets drafts, and waits for something to send."""

    user: UserId
    credential: str
    ended: bool = False
    _drafts: dict[ConversationId, ReplyDraft] = field(default_factory=dict)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

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


@dataclass(slots=True, eq=False)
class ReplyFollower(Follower):
    """Waits for a reply in one conversation, and hears when to look for it."""

    conversation: ConversationId = field(kw_only=True)
    #: Set while a hint waits for others; see `Feed`.
    timer: asyncio.TimerHandle | None = None
    _may_be_there: asyncio.Event = field(default_factory=asyncio.Event)

    def look(self) -> None:
        self._may_be_there.set()
        self._wake.set()

    def end(self) -> None:
        Follower.end(self)
        self._may_be_there.set()

    async def gather(self, seconds: float) -> None:
        """Wait a moment for more pieces, but not once the reply may be there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._may_be_there.wait()

    def take(self) -> tuple[Sequence[ReplyDraft], bool]:
        """Take the new pieces of the reply, and whether to look for it."""
        if self.ended:
            return (), False
        taken = tuple(self._drafts.values()), self._may_be_there.is_set()
        self._drafts.clear()
        self._may_be_there.clear()
        return taken


@dataclass(slots=True, eq=False)
class Subscriber(Follower):
    """Gets all changes of a user, each once."""

    #: The last change queued or sent.
    _number: int | None = None
    _begins_at: int | None = None
    _resets: bool = False
    _changes: list[Change] = field(default_factory=list)

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
