"""Renews the leases of active runs, and passes on cancellations and waiting users."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import RunKind
from backburner.runs.stopping import StopReason
from backburner.worker.active_runs import ActiveRun, ActiveRuns

#: A run that cannot renew its lease stops when this fraction of it is left.
LEASE_MARGIN = 0.1


@dataclass(slots=True)
class Leases:
    deps: Deps
    lease: timedelta
    active_runs: ActiveRuns

    async def run_once(self) -> bool:
        for run in self.active_runs:
            await self._renew(run)
        return False

    async def _renew(self, run: ActiveRun) -> None:
        requested_at = asyncio.get_running_loop().time()
        turn = run.claim.turn
        try:
            flags = await self.deps.store.transact(
                lambda tx: tx.turns.renew(turn, lease=self.lease)
            )
        except Fenced:
            # Also raised for a run that has just been committed; stopping it is harmless.
            run.stop.request(StopReason.FENCED)
            return
        except StoreFailed:
            return
        run.lease_until = requested_at + self.lease.total_seconds()
        if flags.cancelled:
            run.stop.request(StopReason.CANCELLED)
        if flags.user_waiting and turn.kind is RunKind.BACKGROUND:
            run.stop.request(StopReason.USER_WAITING)

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
