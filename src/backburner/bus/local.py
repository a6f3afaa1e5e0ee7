"""Hints inside one process, between its threads and its event loop."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock

from backburner.core.ids import ConversationId, UserId
from backburner.ports import EVERYTHING, Hint, HintKind

#: More different hints than this are replaced by `EVERYTHING`.
MAX_PENDING_HINTS = 1000


class Mailbox:
    """Pending hints, taken on the event loop and put in from any thread.

    Each is kept once, and never more than `MAX_PENDING_HINTS`, however slow the reader is.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: dict[Hint, None] = {}
        self._closed = False
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, *hints: Hint) -> None:
        with self._lock:
            was_empty = not self._pending
            gather(self._pending, hints)
            if was_empty and self._pending:
                self._wake()

    async def take(self) -> tuple[Hint, ...]:
        """Wait for hints and take all of them; empty only if the mailbox is closed."""
        while await self.wait():
            with self._lock:
                taken, self._pending = tuple(self._pending), {}
            if taken:
                return taken
        return ()

    async def wait(self) -> bool:
        """Wait for a hint; False if the mailbox is closed and empty."""
        self._loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if self._pending or self._closed:
                    return bool(self._pending)
                self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Stop waiting; the reader takes what is pending and ends."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        # Before the first wait there is no loop to wake; one that has ended needs no hints.
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._arrived.set)


@dataclass(frozen=True, slots=True, eq=False)
class _Subscription:
    kinds: frozenset[HintKind]
    user: UserId | None
    conversation: ConversationId | None
    mailbox: Mailbox = field(default_factory=Mailbox)

    def wants(self, hint: Hint) -> bool:
        of_kind = not self.kinds or hint.kind in self.kinds or hint.kind is HintKind.EVERYTHING
        return of_kind and (
            hint.conversation is None or self.conversation in (None, hint.conversation)
        )


class LocalBus:
    """The bus of a process that has the database to itself."""

    def __init__(self) -> None:
        # By user. Each tuple is replaced, never changed: other threads may iterate over it.
        self._subscriptions: dict[UserId | None, tuple[_Subscription, ...]] = {}

    def hint(self, *hints: Hint) -> None:
        for hint in hints:
            for subscription in self._subscribed_to(hint.user):
                if subscription.wants(hint):
                    subscription.mailbox.put(hint)

    @contextmanager
    def listen(
        self,
        *kinds: HintKind,
        user: UserId | None = None,
        conversation: ConversationId | None = None,
    ) -> Iterator[Mailbox]:
        subscription = _Subscription(frozenset(kinds), user, conversation)
        self._subscriptions[user] = (*self._subscriptions.get(user, ()), subscription)
        try:
            yield subscription.mailbox
        finally:
            self._remove(subscription)

    def _subscribed_to(self, user: UserId | None) -> Iterable[_Subscription]:
        if user is None:
            return chain(*tuple(self._subscriptions.values()))
        return self._subscriptions.get(user, ()) + self._subscriptions.get(None, ())

    def _remove(self, ended: _Subscription) -> None:
        subscriptions = self._subscriptions[ended.user]
        if left := tuple(other for other in subscriptions if other is not ended):
            self._subscriptions[ended.user] = left
        else:
            del self._subscriptions[ended.user]


def gather(pending: dict[Hint, None], hints: Iterable[Hint]) -> None:
    """Add each hint once; too many are replaced by `EVERYTHING`."""
    for hint in hints:
        if EVERYTHING in pending:
            return
        pending[hint] = None
        if hint == EVERYTHING or len(pending) > MAX_PENDING_HINTS:
            pending.clear()
            pending[EVERYTHING] = None
