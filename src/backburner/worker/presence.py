"""The row of this worker in the database: that it runs, where, and how busy it is."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from socket import gethostname

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.ports import URGENT_DEADLINE, Tx, WorkerReport

REPORT_EVERY = timedelta(seconds=30)
#: How long a worker that stops may take for its row; it goes away by itself later.
FORGET_DEADLINE = timedelta(seconds=1)


@dataclass(slots=True)
class WorkerPresence:
    deps: Deps
    name: str
    #: The seats that are used, and all of them.
    count_seats: Callable[[], tuple[int, int]]
    is_draining: bool = False
    _started_at: datetime | None = field(default=None, init=False)

    async def run_once(self) -> bool:
        await self.deps.store.transact(self._report, within=URGENT_DEADLINE, single=True)
        return False

    async def end(self) -> None:
        """Delete the row."""
        await self.deps.store.transact(
            lambda tx: tx.operations.forget(self.name), within=FORGET_DEADLINE, single=True
        )

    def _report(self, tx: Tx) -> None:
        self._started_at = self._started_at or tx.now
        used, seats = self.count_seats()
        report = WorkerReport(
            name=self.name,
            host=gethostname(),
            version=__version__,
            started_at=self._started_at,
            seats=seats,
            seats_used=used,
            is_draining=self.is_draining,
        )
        tx.operations.report(report)
