"""Signs of life: extends the leases of the runs under way, and hears what their owners want."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import RunKind
from backburner.runs.stopping import StopReason
from backburner.worker.active_runs import ActiveRun, ActiveRuns

#: The part of a lease that is left when a run that could not renew it stops.
LEASE_MARGIN = 0.1


@dataclass(slots=True)
class Leases:
    deps: Deps
    lease: timedelta
    underway: ActiveRuns

    async def run_once(self) -> bool:
        for run in self.underway:
            await self._renew(run)
        return False

    async def _renew(self, run: ActiveRun) -> None:
        sent_at = asyncio.get_running_loop().time()
        turn = run.claim.turn
        try:
            flags = await self.deps.store.transact(
                lambda tx: tx.turns.renew(turn, lease=self.lease)
            )
        except Fenced:
            # A run that has just been committed has no turn either.
            run.stop.request(StopReason.FENCED)
            return
        except StoreFailed:
            return
        run.lease_until = sent_at + self.lease.total_seconds()
        if flags.cancelled:
            run.stop.request(StopReason.CANCELLED)
        if flags.user_waiting and turn.kind is RunKind.BACKGROUND:
            run.stop.request(StopReason.USER_WAITING)

    def stop_expiring(self) -> float | None:
        """Stop the runs whose lease is about to run out; give the time until the next one's is."""
        # They need some time to stop.
        soon = asyncio.get_running_loop().time() + self.lease.total_seconds() * LEASE_MARGIN
        left: list[float] = []
        for run in self.underway:
            if run.lease_until <= soon:
                run.stop.request(StopReason.FENCED)
            else:
                left.append(run.lease_until - soon)
        return min(left, default=None)
