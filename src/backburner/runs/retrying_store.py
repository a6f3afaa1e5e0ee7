"""A store that is asked again when it is gone for a while, as long as the run may still go on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeVar

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import Turn
from backburner.ports import Store, Tx
from backburner.runs.stopping import StopReason, StopRequests

T = TypeVar("T")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RetryingStore:
    """For one run. It gives up when the run's lease has run out."""

    store: Store
    signals: StopRequests

    async def transact(self, work: Callable[[Tx], T]) -> T:
        return await self._insist(lambda: self.store.transact(work))

    async def commit(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        await self._insist(lambda: self.store.commit(turn, work))

    async def _insist(self, ask: Callable[[], Awaitable[T]]) -> T:
        pause = FIRST_PAUSE
        while True:
            try:
                return await ask()
            except StoreFailed as error:
                if error.permanent:
                    raise
                _log.warning("the database is gone for now", error=str(error))
            if self.signals.reason is StopReason.FENCED:
                raise Fenced
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)


def with_retries(deps: Deps, stop: StopRequests | None = None) -> Deps:
    """Give a run dependencies whose store is asked again; a run that loses its turn gives up."""
    return replace(deps, store=RetryingStore(deps.store, stop or StopRequests()))
