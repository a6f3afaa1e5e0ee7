"""Deletes what is old: runs, records of calls, changes, responses, unused files and secrets."""

from dataclasses import dataclass
from datetime import timedelta

from backburner.actions import idempotency
from backburner.actions.connections import calls, sign_in
from backburner.actions.deps import Deps
from backburner.actions.waits import inputs
from backburner.ports import Tx

#: A client that was offline for longer reloads everything.
KEEP_EVENTS = timedelta(days=7)
#: Files that were stored, and that nothing has used since.
KEEP_UNUSED_FILES = timedelta(days=1)
#: A worker that was not seen for so long is gone.
KEEP_WORKERS = timedelta(hours=1)
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
        more_files = await self.deps.store.transact(self._sweep)
        more_responses = await idempotency.prune(self.deps)
        more_sign_ins = await sign_in.prune(self.deps)
        more_calls = await calls.prune(self.deps)
        await inputs.sweep(self.deps)
        more = (more_rows, more_files, more_responses, more_sign_ins, more_calls)
        return any(more)

    def _sweep(self, tx: Tx) -> bool:
        return tx.files.sweep(before=tx.now - KEEP_UNUSED_FILES)

    def _prune(self, tx: Tx) -> bool:
        tx.operations.prune(before=tx.now - KEEP_WORKERS)
        runs = tx.runs.prune(before=tx.now - self.keep, limit=_RUN_BATCH)
        events = tx.events.prune(before=tx.now - self.keep_events, limit=_EVENT_BATCH)
        return runs == _RUN_BATCH or events == _EVENT_BATCH
