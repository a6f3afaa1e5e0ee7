"""Notes that runs of this process are still trying models in an outage."""

from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.ports import URGENT_DEADLINE
from backburner.worker.active_runs import ActiveRuns


@dataclass(slots=True)
class OutageAttempts:
    deps: Deps
    active_runs: ActiveRuns

    async def run_once(self) -> bool:
        claims = [run.claim for run in self.active_runs if run.claim.in_outage]
        profiles = {claim.profile or self.deps.default_profile for claim in claims}
        if profiles:
            await self.deps.store.transact(
                lambda tx: tx.outages.keep_trying(profiles), within=URGENT_DEADLINE
            )
        return False
