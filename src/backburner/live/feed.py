"""The feed of changes, for all subscribers of this process.

One listener and one reader serve them all. Only the reader advances the position up to which each
user's changes were read, so no subscriber misses a change or gets it twice.

Whoever waits for one reply gets no changes, so nothing is read for them here: a reply of this
process arrives in pieces and its end is heard; for one of another process they look after a hint.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import StoreFailed
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.live.poll import MAX_MISSED_EVENTS, NewSubscriber, Poll, PollResult
from backburner.live.subscriber import Follower, ReplyFollower, Subscriber
from backburner.ports import DraftClosed, DraftEvent, DraftPiece, HintKind, Listener, ReplyDraft

#: Finds changes whose hint was lost, and credentials that have ended.
FEED_POLL_INTERVAL = timedelta(seconds=5)
#: After the database was unavailable.
FEED_RETRY_SECONDS = 1.0
#: From a hint until whoever waits for a reply looks for it: by then a run that began here is known.
LOOK_AFTER_SECONDS = 0.03

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Joining:
    """A new subscriber, and the last change it has seen."""

    subscriber: Subscriber
    after: int | None
    is_in: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    def __init__(self, deps: Deps, poll_interval: timedelta = FEED_POLL_INTERVAL) -> None:
        self._deps = deps
        self._poll_interval = poll_interval.total_seconds()
        self._subscribers: dict[UserId, tuple[Subscriber, ...]] = {}
        self._replies: dict[UserId, tuple[ReplyFollower, ...]] = {}
        #: Number of the last change delivered to each user's subscribers.
        self._positions: dict[UserId, int] = {}
        self._joining: list[_Joining] = []
        #: Hinted conversations by user; None: all of them.
        self._hinted: dict[UserId, set[ConversationId] | None] = {}
        #: Runs of this process, whose text arrives in pieces.
        self._here: dict[ConversationId, RunId] = {}
        self._polled_at: datetime | None = None
        #: By the clock of the event loop.
        self._next_poll = 0.0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        #: Open while there is a task.
        self._listening = ExitStack()
        self._closed = False

    @asynccontextmanager
    async def follow(
        self, user: UserId, credential: str, *, after: int | None
    ) -> AsyncIterator[Subscriber]:
        """Subscribe to a user's changes: those after a number, or from now on."""
        subscriber = Subscriber(user, credential)
        self._subscribers[user] = (*self._subscribers.get(user, ()), subscriber)
        self._start()
        try:
            if self._closed:
                subscriber.end()
            else:
                await self._join(subscriber, after)
            yield subscriber
        finally:
            self._forget(subscriber)

    @contextmanager
    def follow_reply(
        self, user: UserId, credential: str, conversation_id: ConversationId
    ) -> Iterator[ReplyFollower]:
        """Wait for the reply to a message that is stored after this."""
        follower = ReplyFollower(user, credential, conversation=conversation_id)
        self._replies[user] = (*self._replies.get(user, ()), follower)
        self._start()
        try:
            if self._closed:
                follower.end()
            for reply in self._deps.drafts.replies(user):
                if reply.conversation == conversation_id:
                    follower.hear(reply)
            yield follower
        finally:
            self._forget_reply(follower)

    def close(self) -> None:
        """End all subscribers and refuse new ones; the log has what they missed."""
        self._closed = True
        self._end_all()

    def _end_all(self) -> None:
        for user in {*self._subscribers, *self._replies}:
            for follower in self._followers(user):
                follower.end()
        for joining in self._joining:
            joining.is_in.set()

    async def _join(self, subscriber: Subscriber, after: int | None) -> None:
        joining = _Joining(subscriber, after)
        self._joining.append(joining)
        self._wake.set()
        await joining.is_in.wait()

    def _forget(self, subscriber: Subscriber) -> None:
        user = subscriber.user
        left = tuple(other for other in self._subscribers[user] if other is not subscriber)
        if left:
            self._subscribers[user] = left
        else:
            del self._subscribers[user]
            self._positions.pop(user, None)
        self._joining = [new for new in self._joining if new.subscriber is not subscriber]
        self._stop_if_idle()

    def _forget_reply(self, follower: ReplyFollower) -> None:
        user = follower.user
        if follower.timer is not None:
            follower.timer.cancel()
        if left := tuple(other for other in self._replies[user] if other is not follower):
            self._replies[user] = left
        else:
            del self._replies[user]
        self._stop_if_idle()

    def _followers(self, user: UserId) -> tuple[Follower, ...]:
        return (*self._subscribers.get(user, ()), *self._replies.get(user, ()))

    def _start(self) -> None:
        """Listen from now on, before anything is read or sent."""
        if self._task is not None:
            return
        self._here.clear()
        # The first read is a poll; without one it is due after the interval.
        self._polled_at = None
        self._next_poll = asyncio.get_running_loop().time() + self._poll_interval
        self._listening.enter_context(self._deps.drafts.listen(self._hear_draft))
        bus = self._deps.bus
        hints = self._listening.enter_context(bus.listen(HintKind.CHANGED)) if bus else None
        self._task = asyncio.create_task(self._run(hints))

    def _stop_if_idle(self) -> None:
        if not self._subscribers and not self._replies and self._task is not None:
            self._task.cancel()
            self._task = None
            self._listening.close()

    async def _run(self, hints: Listener | None) -> None:
        try:
            await self._serve(hints)
        except Exception:  # noqa: BLE001 (clients reconnect, and continue where they were)
            _log.exception("feed.stopped")
            self._task = None
            self._listening.close()
            self._end_all()

    async def _serve(self, hints: Listener | None) -> None:
        listening = asyncio.create_task(self._listen(hints))
        try:
            while True:
                await self._wait()
                await self._read_if_possible()
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def _listen(self, hints: Listener | None) -> None:
        while hints is not None:
            for hint in await hints.take():
                if hint.user is None:
                    self._next_poll = 0
                    self._wake.set()
                    continue
                for follower in self._replies.get(hint.user, ()):
                    if hint.conversation == follower.conversation:
                        self._look_soon(follower)
                # For a hint without a conversation, to see whether credentials have ended.
                if hint.user in self._subscribers or (
                    hint.conversation is None and hint.user in self._replies
                ):
                    self._note_hint(hint.user, hint.conversation)
                    self._wake.set()

    def _look_soon(self, follower: ReplyFollower) -> None:
        """Make a follower look for its reply soon, unless it is written in this process."""

        def look() -> None:
            follower.timer = None
            if not self._deps.drafts.is_writing(follower.user, follower.conversation):
                follower.look()

        if follower.timer is None:
            loop = asyncio.get_running_loop()
            follower.timer = loop.call_later(LOOK_AFTER_SECONDS, look)

    def _note_hint(self, user: UserId, conversation_id: ConversationId | None) -> None:
        if conversation_id is None:
            self._hinted[user] = None
        elif (hinted := self._hinted.setdefault(user, set())) is not None:
            hinted.add(conversation_id)

    def _hear_draft(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        """Pass on text of this process as it is produced."""
        replies = [
            one for one in self._replies.get(user, ()) if one.conversation == conversation_id
        ]
        if isinstance(event, DraftClosed):
            self._here.pop(conversation_id, None)
            for follower in replies:
                follower.look()
        elif isinstance(event, DraftPiece) and event.is_reply:
            self._here[conversation_id] = event.run_id
            piece = ReplyDraft(conversation_id, event.run_id, event.text, event.at)
            for subscriber in (*self._subscribers.get(user, ()), *replies):
                subscriber.hear(piece)

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            left = self._next_poll - asyncio.get_running_loop().time()
            async with asyncio.timeout(max(left, 0)):
                await self._wake.wait()
        self._wake.clear()

    async def _read_if_possible(self) -> None:
        joining, self._joining = self._joining, []
        hinted, self._hinted = self._hinted, {}
        try:
            await self._read(joining, hinted)
        except Exception as error:
            self._joining = joining + self._joining
            self._hinted = dict.fromkeys([*hinted, *self._hinted])
            if not isinstance(error, StoreFailed):
                raise
            _log.warning("feed.read_failed", error=str(error))
            await asyncio.sleep(FEED_RETRY_SECONDS)
            self._wake.set()

    async def _read(
        self, joining: list[_Joining], hinted: dict[UserId, set[ConversationId] | None]
    ) -> None:
        """Read all new changes in one transaction, and deliver them."""
        clock = asyncio.get_running_loop().time
        is_poll = self._polled_at is None or clock() >= self._next_poll
        concerned = (
            {*self._subscribers, *self._replies}
            if is_poll
            else {*hinted, *(new.subscriber.user for new in joining)}
        )
        credentials = {
            (user, follower.credential) for user in concerned for follower in self._followers(user)
        }
        poll = Poll(
            hinted={user: where for user, where in hinted.items() if user in self._positions},
            positions=dict(self._positions),
            joining=[(new.subscriber.user, new.after) for new in joining],
            credentials=credentials,
            since=self._polled_at if is_poll else None,
        )
        result = await self._deps.store.read(poll.run)
        if is_poll:
            self._polled_at = result.at
            self._next_poll = clock() + self._poll_interval
        self._end_expired(result.good, credentials)
        self._deliver(result)
        self._admit(joining, result.joined)
        if is_poll:
            # A hint may have been lost.
            for followers in self._replies.values():
                for follower in followers:
                    follower.look()

    def _end_expired(self, good: frozenset[str], credentials: Iterable[tuple[UserId, str]]) -> None:
        """End followers whose credential has ended, before they get anything more."""
        for user, credential in credentials:
            if credential not in good:
                for follower in self._followers(user):
                    if follower.credential == credential:
                        follower.end()

    def _deliver(self, result: PollResult) -> None:
        for user, changes in result.changes.items():
            if changes and user in self._positions:
                self._positions[user] = changes[-1].number
            for subscriber in self._subscribers.get(user, ()):
                dropped = subscriber.offer(changes)
                for reply in self._deps.drafts.replies(user) if dropped else ():
                    if reply.conversation in dropped:
                        subscriber.hear(reply)
            if len(changes) == MAX_MISSED_EVENTS:
                self._note_hint(user, None)
                self._wake.set()
        for user, drafts in result.drafts.items():
            self._send_drafts(self._subscribers.get(user, ()), drafts)

    def _admit(self, joining: list[_Joining], joined: list[NewSubscriber]) -> None:
        for new, (newest, missed, drafts) in zip(joining, joined, strict=True):
            subscriber = new.subscriber
            if subscriber in self._subscribers.get(subscriber.user, ()):
                self._positions.setdefault(subscriber.user, newest)
                subscriber.begin(newest, missed, is_new=new.after is None)
                self._send_drafts((subscriber,), drafts)
                # Pieces that were published before carry only their own text.
                for reply in self._deps.drafts.replies(subscriber.user):
                    subscriber.hear(reply)
            new.is_in.set()

    def _send_drafts(self, subscribers: Iterable[Subscriber], drafts: Iterable[ReplyDraft]) -> None:
        for draft in drafts:
            # Drafts in the database lag behind the pieces published here.
            if self._here.get(draft.conversation) != draft.run:
                for subscriber in subscribers:
                    subscriber.hear(draft)
