"""Hints inside one process, between its threads and its event loop."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from threading import Lock

from backburner.core.ids import ConversationId, UserId
from backburner.ports import EVERYTHING, Hint, HintKind, NotifyStatement

#: More different hints than this are not kept apart: everything has to be looked at.
MOST_WAITING = 1000


class Mailbox:
    """Hints that wait to be taken on the event loop. They may be put in from any thread.

    Each waits once, and there are never more than `MOST_WAITING`, however slow the reader is.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[Hint, None] = {}
        self._closed = False
        self._arrived = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def put(self, *hints: Hint) -> None:
        with self._lock:
            was_empty = not self._waiting
            gather(self._waiting, hints)
            if was_empty and self._waiting:
                self._wake()

    async def take(self) -> tuple[Hint, ...]:
        """Take all there are; none only from a closed mailbox."""
        while await self.wait():
            with self._lock:
                taken, self._waiting = tuple(self._waiting), {}
            if taken:
                return taken
        return ()

    async def wait(self) -> bool:
        """Wait until there is something; False if there will be nothing any more."""
        self._loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                if self._waiting or self._closed:
                    return bool(self._waiting)
                self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """Let the reader take the rest and end."""
        with self._lock:
            self._closed = True
            self._wake()

    def _wake(self) -> None:
        # Before the first wait there is nobody to wake; a loop that has ended needs no hints.
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
    """All there is where one process has the database to itself."""

    def __init__(self) -> None:
        # By the user they are for. Each tuple is replaced, never changed: other threads may be
        # going through it.
        self._subscriptions: dict[UserId | None, tuple[_Subscription, ...]] = {}

    def hint(self, *hints: Hint) -> None:
        for hint in hints:
            for subscription in self._concerned(hint.user):
                if subscription.wants(hint):
                    subscription.mailbox.put(hint)

    def statement(self, hints: Iterable[Hint]) -> NotifyStatement | None:  # noqa: ARG002 (no others)
        return None

    def committed(self, *hints: Hint) -> None:
        self.hint(*hints)

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
            self._forget(subscription)

    def _concerned(self, user: UserId | None) -> Iterable[_Subscription]:
        if user is None:
            return chain(*tuple(self._subscriptions.values()))
        return self._subscriptions.get(user, ()) + self._subscriptions.get(None, ())

    def _forget(self, gone: _Subscription) -> None:
        if left := tuple(one for one in self._subscriptions[gone.user] if one is not gone):
            self._subscriptions[gone.user] = left
        else:
            del self._subscriptions[gone.user]


def gather(waiting: dict[Hint, None], hints: Iterable[Hint]) -> None:
    """Add each hint once; too many become the one that covers them all."""
    for hint in hints:
        if EVERYTHING in waiting:
            return
        waiting[hint] = None
        if hint == EVERYTHING or len(waiting) > MOST_WAITING:
            waiting.clear()
            waiting[EVERYTHING] = None
