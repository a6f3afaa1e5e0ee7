"""Deletes old runs, old changes of the feed and stored responses."""

from dataclasses import dataclass
from datetime import timedelta

from backburner.actions import idempotency
from backburner.actions.deps import Deps
from backburner.ports import Tx

#: A client that was offline for longer reloads everything.
KEEP_EVENTS = timedelta(days=7)
#: Rows per transaction.
_RUN_BATCH = 200
_EVENT_BATCH = 2000


@dataclass(slots=True)
class Pruner:
    deps: Deps
    keep: timedelta
    keep_events: timedelta = KEEP_EVENTS

    async def run_once(self) -> bool:
        more_rows = await self.deps.store.transact(self._prune)
        more_responses = await idempotency.prune(self.deps)
        return more_rows or more_responses

    def _prune(self, tx: Tx) -> bool:
        runs = tx.runs.prune(before=tx.now - self.keep, limit=_RUN_BATCH)
        events = tx.events.prune(before=tx.now - self.keep_events, limit=_EVENT_BATCH)
        return runs == _RUN_BATCH or events == _EVENT_BATCH
