"""Follows what changes, for everybody who watches from this process.

One listener and one reader serve them all. The reader is the only one that moves the position up to
which each user's changes were read, so nobody who joins misses anything or gets it twice.
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

#: How often it is looked whether a hint was lost, or a credential has ended.
FEED_POLL_INTERVAL = timedelta(seconds=5)
#: After the database was gone, in seconds.
FEED_RETRY_SECONDS = 1.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Joining:
    """Somebody who begins to follow, and what they have seen already."""

    follower: Subscriber
    after: int | None
    is_in: asyncio.Event = field(default_factory=asyncio.Event)


class Feed:
    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._followers: dict[UserId, tuple[Subscriber, ...]] = {}
        #: Up to where each user's changes have been given out.
        self._positions: dict[UserId, int] = {}
        self._joining: list[_Joining] = []
        #: Where to look: by user the conversations, or all of them.
        self._hinted: dict[UserId, set[ConversationId] | None] = {}
        #: Runs of this process whose words are seen as they are said.
        self._here: dict[ConversationId, RunId] = {}
        self._looked_at: datetime | None = None
        self._look_at = 0.0
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False

    @asynccontextmanager
    async def follow(
        self, user: UserId, credential: str, *, after: int | None
    ) -> AsyncIterator[Subscriber]:
        """Follow a user's changes: those after a number, or from now on."""
        follower = Subscriber(user, credential)
        self._followers[user] = (*self._followers.get(user, ()), follower)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        try:
            if self._closed:
                follower.end()
            else:
                await self._join(follower, after)
            yield follower
        finally:
            self._forget(follower)

    def close(self) -> None:
        """End all there are, and whoever comes; what they have not been told is in the log."""
        self._closed = True
        self._end_all()

    def _end_all(self) -> None:
        for followers in self._followers.values():
            for follower in followers:
                follower.end()
        for one in self._joining:
            one.is_in.set()

    async def _join(self, follower: Subscriber, after: int | None) -> None:
        joining = _Joining(follower, after)
        self._joining.append(joining)
        self._wake.set()
        await joining.is_in.wait()

    def _forget(self, follower: Subscriber) -> None:
        user = follower.user
        left = tuple(one for one in self._followers[user] if one is not follower)
        if left:
            self._followers[user] = left
        else:
            del self._followers[user]
            self._positions.pop(user, None)
        self._joining = [one for one in self._joining if one.follower is not follower]
        if not self._followers and self._task is not None:
            self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        try:
            await self._serve()
        except Exception:  # noqa: BLE001 (they come again, and go on where they were)
            _log.exception("what changes cannot be followed any more")
            self._task = None
            self._end_all()

    async def _serve(self) -> None:
        self._here.clear()
        with ExitStack() as open_:
            open_.enter_context(self._deps.drafts.listen(self._hear_draft))
            bus = self._deps.bus
            # Before the first look, or what changes in between would not be heard of.
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
                    self._look_at = 0
                elif hint.user in self._followers:
                    self._note(hint.user, hint.conversation)
                else:
                    continue
                self._wake.set()

    def _note(self, user: UserId, conversation_id: ConversationId | None) -> None:
        if conversation_id is None:
            self._hinted[user] = None
        elif (noted := self._hinted.setdefault(user, set())) is not None:
            noted.add(conversation_id)

    def _hear_draft(self, user: UserId, conversation_id: ConversationId, event: DraftEvent) -> None:
        """Pass on text of this process as it is produced."""
        if isinstance(event, DraftClosed):
            self._here.pop(conversation_id, None)
        elif event.is_reply:
            self._here[conversation_id] = event.run_id
            piece = ReplyDraft(conversation_id, event.run_id, event.text, event.at)
            for subscriber in self._followers.get(user, ()):
                subscriber.hear(piece)

    async def _wait(self) -> None:
        with suppress(TimeoutError):
            left = self._look_at - asyncio.get_running_loop().time()
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
            _log.warning("what changed cannot be read for now", error=str(error))
            await asyncio.sleep(FEED_RETRY_SECONDS)
            self._wake.set()

    async def _read(
        self, joining: list[_Joining], hinted: dict[UserId, set[ConversationId] | None]
    ) -> None:
        """Read whatever may be new in one transaction, and give it out."""
        clock = asyncio.get_running_loop().time
        looks = clock() >= self._look_at
        concerned = self._followers if looks else {*hinted, *(one.follower.user for one in joining)}
        held = {
            (user, follower.credential)
            for user in concerned
            for follower in self._followers.get(user, ())
        }
        reading = Poll(
            hinted={user: where for user, where in hinted.items() if user in self._positions},
            positions=dict(self._positions),
            joining=[(one.follower.user, one.after) for one in joining],
            held=held,
            since=self._looked_at if looks else None,
        )
        found = await self._deps.store.transact(reading.run)
        if looks:
            self._looked_at = found.at
            self._look_at = clock() + FEED_POLL_INTERVAL.total_seconds()
        self._end_those_without(found.good, held)
        self._give_out(found)
        self._let_in(joining, found.joined)

    def _end_those_without(self, good: frozenset[str], held: Iterable[tuple[UserId, str]]) -> None:
        """End those whose credential has ended, before they are told anything more."""
        for user, credential in held:
            if credential not in good:
                for follower in self._followers.get(user, ()):
                    if follower.credential == credential:
                        follower.end()

    def _give_out(self, found: PollResult) -> None:
        for user, drafts in found.drafts.items():
            self._pass_on(self._followers.get(user, ()), drafts)
        for user, changes in found.changes.items():
            if changes and user in self._positions:
                self._positions[user] = changes[-1].number
            for follower in self._followers.get(user, ()):
                follower.offer(changes)
            if len(changes) == MAX_MISSED_EVENTS:
                self._note(user, None)
                self._wake.set()

    def _let_in(self, joining: list[_Joining], joined: list[NewSubscriber]) -> None:
        for one, (newest, missed, drafts) in zip(joining, joined, strict=True):
            follower = one.follower
            if follower in self._followers.get(follower.user, ()):
                self._positions.setdefault(follower.user, newest)
                follower.begin(newest, missed, is_new=one.after is None)
                self._pass_on((follower,), drafts)
                # Pieces that were published before carry only their own text.
                for reply in self._deps.drafts.replies(follower.user):
                    follower.hear(reply)
            one.is_in.set()

    def _pass_on(self, followers: Iterable[Subscriber], drafts: Iterable[ReplyDraft]) -> None:
        for draft in drafts:
            # What is written down lags behind what is heard here.
            if self._here.get(draft.conversation) != draft.run:
                for follower in followers:
                    follower.hear(draft)
