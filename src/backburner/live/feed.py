"""The feed of changes, for all subscribers of this process.

One listener and one reader serve them all. Only the reader advances the position up to which each
user's changes were read, so no subscriber misses a change or gets it twice.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import StoreFailed
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.live.poll import MAX_MISSED_EVENTS, NewSubscriber, Poll, PollResult
from backburner.live.subscriber import Subscriber
from backburner.ports import DraftClosed, DraftEvent, HintKind, Listener, ReplyDraft

#: Finds changes whose hint was lost, and credentials that have ended.
FEED_POLL_INTERVAL = timedelta(seconds=5)
#: After the database was unavailable.
FEED_RETRY_SECONDS = 1.0

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
        self._closed = False

    @asynccontextmanager
    async def follow(
        self, user: UserId, credential: str, *, after: int | None
    ) -> AsyncIterator[Subscriber]:
        """Subscribe to a user's changes: those after a number, or from now on."""
        subscriber = Subscriber(user, credential)
        self._subscribers[user] = (*self._subscribers.get(user, ()), subscriber)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            if self._closed:
                subscriber.end()
            else:
                await self._join(subscriber, after)
            yield subscriber
        finally:
            self._forget(subscriber)

    def close(self) -> None:
        """End all subscribers and refuse new ones; the log has what they missed."""
        self._closed = True
        self._end_all()

    def _end_all(self) -> None:
        for subscribers in self._subscribers.values():
            for subscriber in subscribers:
                subscriber.end()
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
        if not self._subscribers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception:  # noqa: BLE001 (clients reconnect, and continue where they were)
            _log.exception("feed.stopped")
            self._task = None
            self._end_all()

    async def _serve(self) -> None:
        self._here.clear()
        with ExitStack() as open_:
            open_.enter_context(self._deps.drafts.listen(self._hear_draft))
            bus = self._deps.bus
            # Before the first read, or changes in between would go unnoticed.
            hints = open_.enter_context(bus.listen(HintKind.CHANGED)) if bus else None
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
                elif hint.user in self._subscribers:
                    self._note_hint(hint.user, hint.conversation)
                else:
                    continue
                self._wake.set()

    def _note_hint(self, user: UserId, conversation_id: ConversationId | None) -> None:
        if conversation_id is None:
            self._hinted[user] = None
        elif (hinted := self._hinted.setdefault(user, set())) is not None:
            hinted.add(conversation_id)

    def _hear_draft(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        """Pass on text of this process as it is produced."""
        if isinstance(event, DraftClosed):
            self._here.pop(conversation_id, None)
        elif event.is_reply:
            self._here[conversation_id] = event.run_id
            piece = ReplyDraft(conversation_id, event.run_id, event.text, event.at)
            for subscriber in self._subscribers.get(user, ()):
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
        is_poll = clock() >= self._next_poll
        concerned = (
            self._subscribers if is_poll else {*hinted, *(new.subscriber.user for new in joining)}
        )
        credentials = {
            (user, subscriber.credential)
            for user in concerned
            for subscriber in self._subscribers.get(user, ())
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

    def _end_expired(self, good: frozenset[str], credentials: Iterable[tuple[UserId, str]]) -> None:
        """End subscribers whose credential has ended, before they get anything more."""
        for user, credential in credentials:
            if credential not in good:
                for subscriber in self._subscribers.get(user, ()):
                    if subscriber.credential == credential:
                        subscriber.end()

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
