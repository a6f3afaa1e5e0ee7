"""Deletes what nobody will ask for again: records of old runs, the old log, kept answers."""

from dataclasses import dataclass
from datetime import timedelta

from backburner.actions import idempotency
from backburner.actions.deps import Deps
from backburner.ports import Tx

#: Whoever was away for longer loads everything again.
KEEP_EVENTS = timedelta(days=7)
#: In one transaction.
_SOME = 200
_MANY = 2000


@dataclass(slots=True)
class Pruner:
    deps: Deps
    keep: timedelta
    keep_events: timedelta = KEEP_EVENTS

    async def run_once(self) -> bool:
        more = await self.deps.store.transact(self._prune)
        more_answers = await idempotency.prune(self.deps)
        return more or more_answers

    def _prune(self, tx: Tx) -> bool:
        runs = tx.runs.prune(before=tx.now - self.keep, limit=_SOME)
        events = tx.events.prune(before=tx.now - self.keep_events, limit=_MANY)
        return runs == _SOME or events == _MANY
