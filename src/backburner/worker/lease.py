"""Renews the leases of active runs, and passes on cancellations and waiting users."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import StoreFailed
from backburner.core.run import RunKind
from backburner.ports import URGENT_DEADLINE
from backburner.runs.stopping import StopReason
from backburner.worker.active_runs import ActiveRun, ActiveRuns

#: A run that cannot renew its lease stops when this fraction of it is left.
LEASE_MARGIN = 0.1
#: Delay before a lease is renewed whose conversation was locked.
LOCK_RETRY_SECONDS = 0.2

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Leases:
    deps: Deps
    lease: timedelta
    active_runs: ActiveRuns

    async def run_once(self) -> bool:
        locked = await self._renew(list(self.active_runs))
        if locked:
            # By somebody who changes the conversation, which takes a moment.
            await asyncio.sleep(LOCK_RETRY_SECONDS)
            await self._renew(locked)
        return False

    async def _renew(self, runs: list[ActiveRun]) -> list[ActiveRun]:
        """Renew leases together; return the runs whose conversation was locked."""
        requested_at = asyncio.get_running_loop().time()
        turns = [run.claim.turn for run in runs]
        try:
            found = await self.deps.store.transact(
                lambda tx: tx.turns.renew(turns, lease=self.lease),
                within=min(URGENT_DEADLINE, self.lease / 3),
            )
        except StoreFailed as error:
            _log.warning("leases.renewal_failed", error=str(error))
            return []
        for run in runs:
            flags = found.get(run.claim.run.id)
            if flags is None:
                # Also for a run that has just been committed; stopping it is harmless.
                run.stop.request(StopReason.FENCED)
                continue
            if flags.renewed:
                run.lease_until = requested_at + self.lease.total_seconds()
            if flags.cancelled:
                run.stop.request(StopReason.CANCELLED)
            if flags.user_waiting and run.claim.turn.kind is RunKind.BACKGROUND:
                run.stop.request(StopReason.USER_WAITING)
        return [run for run in runs if (flags := found.get(run.claim.run.id)) and not flags.renewed]

    def stop_expiring(self) -> float | None:
        """Stop runs whose lease is about to expire; return the seconds until the next one."""
        # Runs need some time to stop.
        limit = asyncio.get_running_loop().time() + self.lease.total_seconds() * LEASE_MARGIN
        left: list[float] = []
        for run in self.active_runs:
            if run.lease_until <= limit:
                run.stop.request(StopReason.FENCED)
            else:
                left.append(run.lease_until - limit)
        return min(left, default=None)
