"""The runs that are under way in this process."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field

from backburner.core.ids import ConversationId, RunId
from backburner.core.run import RunKind
from backburner.ports import Claim
from backburner.runs.prepare import PreparedRun
from backburner.runs.stopping import StopReason, StopRequests


@dataclass(slots=True)
class ActiveRun:
    """A run that this process has the turn for."""

    claim: Claim
    #: None: it could not be prepared.
    prepared: PreparedRun | None
    #: Until then, by the clock of the event loop, nobody else can have its turn.
    lease_until: float
    stop: StopRequests = field(default_factory=StopRequests)
    task: "asyncio.Task[None] | None" = None

    @property
    def is_stopping(self) -> bool:
        return self.stop.reason is not None


class ActiveRuns:
    def __init__(self) -> None:
        self._runs: dict[RunId, ActiveRun] = {}
        #: Set whenever a run has ended.
        self.changed = asyncio.Event()

    def __iter__(self) -> Iterator[ActiveRun]:
        return iter(tuple(self._runs.values()))

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def profiles(self) -> list[str]:
        return [run.claim.conversation.profile for run in self]

    def add(self, run: ActiveRun) -> None:
        self._runs[run.claim.run.id] = run

    def remove(self, run: ActiveRun) -> None:
        # The same run may go on here already.
        if self._runs.get(run.claim.run.id) is run:
            del self._runs[run.claim.run.id]
        self.changed.set()

    def background_in(self, conversation_id: ConversationId) -> Iterator[ActiveRun]:
        """Find background work in a conversation in which somebody waits for a reply."""
        for run in self:
            turn = run.claim.turn
            if turn.conversation_id == conversation_id and turn.kind is RunKind.BACKGROUND:
                yield run

    def stop_all(self, reason: StopReason) -> None:
        for run in self:
            run.stop.request(reason)
