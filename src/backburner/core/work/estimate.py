"""Cost estimates for work, from the cost of earlier runs; none without earlier runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from backburner.core import schedule as schedules
from backburner.core.allowance import Amount, Cost
from backburner.core.schedule import Cron, Interval, Schedule

MONTH = timedelta(days=30)
#: Slots are counted one by one up to this number; beyond it, the rate is extrapolated.
_MAX_COUNTED_SLOTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    per_run: Amount
    #: The number of runs it is the mean of, and whether they are the task's own.
    runs: int
    own: bool
    #: False if some of them used a model without a price, so that the cost is unknown.
    priced: bool
    #: The expected runs in a month; None if events or other work start it.
    runs_per_month: int | None

    @property
    def per_month(self) -> Amount | None:
        if self.runs_per_month is None:
            return None
        times = self.runs_per_month
        return Amount(self.per_run.micros * times, self.per_run.tokens * times)


def estimate(
    own: Sequence[Cost], similar: Sequence[Cost], *, runs_per_month: int | None
) -> Estimate | None:
    """Return the mean of the task's own runs, else of similar runs; None without either."""
    costs = own or similar
    if not costs:
        return None
    total = sum((cost.amount for cost in costs), Amount())
    count = len(costs)
    return Estimate(
        per_run=Amount(total.micros // count, total.tokens // count),
        runs=count,
        own=bool(own),
        priced=all(cost.priced for cost in costs),
        runs_per_month=runs_per_month,
    )


def runs_per_month(schedule: Schedule, *, left: int | None, now: datetime) -> int | None:
    """Count the runs of the next thirty days; `left` is the number of runs still allowed."""
    count = _count(schedule, now)
    return count if count is None or left is None else min(count, left)


def _count(schedule: Schedule, now: datetime) -> int | None:
    if not schedules.is_recurring(schedule):
        return 1
    if isinstance(schedule, Interval):
        return max(1, MONTH // schedule.every)
    return _count_slots(schedule, now) if isinstance(schedule, Cron) else None


def _count_slots(schedule: Cron, now: datetime) -> int:
    within = takewhile(lambda slot: slot <= now + MONTH, schedules.slots(schedule, after=now))
    slots = tuple(islice(within, _MAX_COUNTED_SLOTS))
    if len(slots) < _MAX_COUNTED_SLOTS:
        return len(slots)
    return round(_MAX_COUNTED_SLOTS * (MONTH / (slots[-1] - now)))
