"""A store for one run: retries while the database is unavailable, until the lease has expired."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import Turn
from backburner.ports import RUN_DEADLINE, Store, Tx
from backburner.runs.stopping import StopReason, StopRequests

T = TypeVar("T")
FIRST_RETRY_SECONDS, MAX_RETRY_SECONDS = 0.1, 2.0

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RetryingStore:
    """Raises `Fenced` once the run has been stopped because its lease has expired."""

    store: Store
    stop: StopRequests

    async def transact(
        self, work: Callable[[Tx], T], *, within: timedelta = RUN_DEADLINE, single: bool = False
    ) -> T:
        return await self._retry(lambda: self.store.transact(work, within=within, single=single))

    async def read(
        self, work: Callable[[Tx], T], *, within: timedelta = RUN_DEADLINE, single: bool = False
    ) -> T:
        return await self._retry(lambda: self.store.read(work, within=within, single=single))

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        await self._retry(lambda: self.store.commit(turn, work, alone=alone))

    async def _retry(self, ask: Callable[[], Awaitable[T]]) -> T:
        delay = FIRST_RETRY_SECONDS
        while True:
            try:
                return await ask()
            except StoreFailed as error:
                if error.permanent:
                    raise
                _log.warning("store.unavailable", error=str(error))
            if self.stop.reason is StopReason.FENCED:
                raise Fenced
            await asyncio.sleep(delay)
            delay = min(2 * delay, MAX_RETRY_SECONDS)


def with_retries(deps: Deps, stop: StopRequests | None = None) -> Deps:
    """Replace the store by one that retries, until the run loses its turn."""
    return replace(deps, store=RetryingStore(deps.store, stop or StopRequests()))
