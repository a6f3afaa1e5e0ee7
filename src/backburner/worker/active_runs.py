"""The runs that are active in this process."""

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from backburner.core.ids import ConversationId, RunId
from backburner.core.run import RunKind
from backburner.core.work.timeouts import is_long
from backburner.ports import Claim
from backburner.runs.prepare import PreparedRun
from backburner.runs.stopping import StopReason, StopRequests


@dataclass(slots=True)
class ActiveRun:
    """A run whose turn this process holds."""

    claim: Claim
    #: None: the preparation failed.
    prepared: PreparedRun | None
    #: No other process can claim the turn before this time of the event loop.
    lease_until: float
    stop: StopRequests = field(default_factory=StopRequests)
    task: "asyncio.Task[None] | None" = None

    @property
    def profile(self) -> str:
        return self.claim.profile

    @property
    def is_stopping(self) -> bool:
        return self.stop.reason is not None


#: How long the hint that a run has ended may take.
HINT_SECONDS = 0.5


class ActiveRuns:
    def __init__(self) -> None:
        self._runs: dict[RunId, ActiveRun] = {}
        #: Conversations whose run has ended, and the time of the event loop when it did.
        self._ended: dict[ConversationId, float] = {}
        #: Set when a run has ended.
        self.changed = asyncio.Event()

    def __iter__(self) -> Iterator[ActiveRun]:
        return iter(tuple(self._runs.values()))

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def profiles(self) -> list[str]:
        return [run.profile for run in self]

    @property
    def long_profiles(self) -> list[str]:
        """The profiles of long runs."""
        return [run.profile for run in self if is_long(run.claim.conversation.run_timeout)]

    def add(self, run: ActiveRun) -> None:
        self._runs[run.claim.run.id] = run

    def remove(self, run: ActiveRun) -> None:
        # The same run may have been claimed here again.
        if self._runs.get(run.claim.run.id) is run:
            del self._runs[run.claim.run.id]
        now = asyncio.get_running_loop().time()
        self._ended = {one: at for one, at in self._ended.items() if now - at < HINT_SECONDS}
        self._ended[run.claim.turn.conversation_id] = now
        self.changed.set()

    def had_run_in(self, conversation_id: ConversationId | None) -> bool:
        """See whether a conversation has a run here, or had one a moment ago."""
        if any(run.claim.turn.conversation_id == conversation_id for run in self):
            return True
        ended_at = self._ended.get(conversation_id, -math.inf) if conversation_id else -math.inf
        return asyncio.get_running_loop().time() - ended_at < HINT_SECONDS

    def background_in(self, conversation_id: ConversationId) -> Iterator[ActiveRun]:
        """Find the background runs of a conversation."""
        for run in self:
            turn = run.claim.turn
            if turn.conversation_id == conversation_id and turn.kind is RunKind.BACKGROUND:
                yield run

    def stop_all(self, reason: StopReason) -> None:
        for run in self:
            run.stop.request(reason)
