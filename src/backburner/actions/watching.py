"""Those who watch a conversation from this process, and hear what is said while it is said."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backburner.core.ids import ConversationId, RunId, UserId

#: A watcher that is so far behind misses what comes; it can look at the draft instead.
MOST_WAITING = 1000


@dataclass(frozen=True, slots=True)
class Words:
    """A further piece of what is being said in a run."""

    run_id: RunId
    text: str


@dataclass(frozen=True, slots=True)
class Over:
    """A run has ended, or goes on somewhere else; what it said is in the messages, if anywhere."""

    run_id: RunId


Sight = Words | Over


class Watchers:
    def __init__(self) -> None:
        self._queues: defaultdict[
            tuple[UserId, ConversationId], tuple[asyncio.Queue[Sight], ...]
        ] = defaultdict(tuple)

    @contextmanager
    def watch(self, user: UserId, which: ConversationId) -> Iterator[asyncio.Queue[Sight]]:
        """Collect what is said in a conversation from now on."""
        key, queue = (user, which), asyncio.Queue[Sight](MOST_WAITING)
        self._queues[key] += (queue,)
        try:
            yield queue
        finally:
            left = tuple(other for other in self._queues[key] if other is not queue)
            if left:
                self._queues[key] = left
            else:
                del self._queues[key]

    def show(self, user: UserId, which: ConversationId, sight: Sight) -> None:
        for queue in self._queues.get((user, which), ()):
            if not queue.full():
                queue.put_nowait(sight)
