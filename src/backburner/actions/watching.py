"""Those who watch a conversation from this process, and hear what is said while it is said."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from backburner.core.ids import ConversationId, RunId, UserId

#: A watcher that is so far behind misses what comes; it can look at the draft instead.
MAX_WATCHER_QUEUE = 1000


@dataclass(frozen=True, slots=True)
class DraftPiece:
    """A further piece of what is being said in a run."""

    run_id: RunId
    text: str
    #: Everything that was said in the run, with this.
    so_far: str
    #: It is said to somebody.
    is_reply: bool


@dataclass(frozen=True, slots=True)
class DraftClosed:
    """A run has ended, or goes on somewhere else; what it said is in the messages, if anywhere."""

    run_id: RunId


DraftEvent = DraftPiece | DraftClosed
#: Sees whatever is said, to whomever; it must not wait for anything.
DraftListener = Callable[[UserId, ConversationId, DraftEvent], None]


class DraftBroadcast:
    def __init__(self) -> None:
        self._queues: defaultdict[
            tuple[UserId, ConversationId], tuple[asyncio.Queue[DraftEvent], ...]
        ] = defaultdict(tuple)
        self._onlookers: tuple[DraftListener, ...] = ()

    @contextmanager
    def watch(
        self, user: UserId, conversation_id: ConversationId
    ) -> Iterator[asyncio.Queue[DraftEvent]]:
        """Collect what is said in a conversation from now on."""
        key, queue = (user, conversation_id), asyncio.Queue[DraftEvent](MAX_WATCHER_QUEUE)
        self._queues[key] += (queue,)
        try:
            yield queue
        finally:
            left = tuple(other for other in self._queues[key] if other is not queue)
            if left:
                self._queues[key] = left
            else:
                del self._queues[key]

    @contextmanager
    def look_on(self, onlooker: DraftListener) -> Iterator[None]:
        """Let somebody see all that is said from now on."""
        self._onlookers += (onlooker,)
        try:
            yield
        finally:
            self._onlookers = tuple(one for one in self._onlookers if one != onlooker)

    def show(self, user: UserId, conversation_id: ConversationId, sight: DraftEvent) -> None:
        for onlooker in self._onlookers:
            onlooker(user, conversation_id, sight)
        for queue in self._queues.get((user, conversation_id), ()):
            if not queue.full():
                queue.put_nowait(sight)
