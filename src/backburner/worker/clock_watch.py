"""Notices when the clock of the database was set back, and corrects the times it had written."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from backburner.actions.deps import Deps

#: A smaller difference may be the time that the database took to answer.
MIN_JUMP = timedelta(seconds=5)
#: Of an answer that took longer, nobody knows when the time in it was read.
MAX_ANSWER_TIME = timedelta(seconds=1)

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class ClockWatch:
    deps: Deps
    lease: timedelta
    delivery_lease: timedelta
    #: Of the clock of the database to that of the event loop.
    _offset: float | None = None
    _jumped: bool = False

    def sees_jump(self, now: datetime, *, asked_at: float, read_at: float) -> bool:
        """Compare both clocks; True: this chore is due, as it is at the start.

        `asked_at` and `read_at` are times of the event loop, before and after `now` was read.
        """
        if read_at - asked_at > MAX_ANSWER_TIME.total_seconds():
            return self._offset is None
        last, self._offset = self._offset, now.timestamp() - read_at
        if last is None:
            return True
        jumped = last - self._offset > MIN_JUMP.total_seconds()
        self._jumped = self._jumped or jumped
        return jumped

    async def run_once(self) -> bool:
        jumped, self._jumped = self._jumped, False
        try:
            count = await self.deps.store.transact(
                lambda tx: tx.queue.correct_times(
                    lease=self.lease, delivery_lease=self.delivery_lease, jumped=jumped
                )
            )
        except BaseException:
            self._jumped = jumped
            raise
        if jumped or count:
            _log.warning("clock.set_back", rescheduled=count)
        return False
