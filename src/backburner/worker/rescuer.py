"""Frees turns whose holder went silent, and settles what they left."""

from dataclasses import dataclass

import structlog

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.ports import RescuedTurn, Tx

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Rescuer:
    deps: Deps

    async def run_once(self) -> bool:
        """Free one turn; say whether there was any."""
        return await self._rescue(all_of_them=False)

    async def rescue_all(self) -> None:
        """Free every turn there is: where one process owns the database, nobody else has any."""
        while await self._rescue(all_of_them=True):
            pass

    async def _rescue(self, *, all_of_them: bool) -> bool:
        def work(tx: Tx) -> RescuedTurn | None:
            freed = tx.queue.rescue(all_of_them=all_of_them)
            if freed is not None:
                steps.follow(tx, freed.step)
            return freed

        freed = await self.deps.store.transact(work)
        if freed is not None:
            _log.warning("run.rescued", run=freed.turn.run_id)
        return freed is not None
