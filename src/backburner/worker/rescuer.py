"""Rescues turns whose lease has expired."""

from dataclasses import dataclass

import structlog

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.actions.waits import inputs
from backburner.ports import RUN_DEADLINE, RescuedTurn, Tx

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Rescuer:
    deps: Deps

    async def run_once(self) -> bool:
        """Rescue one turn; True: there was one."""
        return await self._rescue(all_of_them=False)

    async def rescue_all(self) -> None:
        """Rescue every turn and delivery. Only for a process that owns the database alone.

        Their leases may be those of the clock before a reboot.
        """
        while await self._rescue(all_of_them=True):
            pass
        await self.deps.store.transact(lambda tx: tx.deliveries.release_all())

    async def _rescue(self, *, all_of_them: bool) -> bool:
        def work(tx: Tx) -> RescuedTurn | None:
            rescued = tx.queue.rescue(all_of_them=all_of_them)
            if rescued is not None:
                steps.propagate(tx, rescued.step)
                inputs.forget_unused(tx, rescued.turn.user_id, rescued.turn.conversation_id)
            return rescued

        rescued = await self.deps.store.transact(work, within=RUN_DEADLINE)
        if rescued is not None:
            _log.warning("run.rescued", run=rescued.turn.run_id)
        return rescued is not None
