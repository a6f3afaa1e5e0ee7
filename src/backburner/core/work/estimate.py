"""What work is likely to cost, from what such work has cost; never a guess without anything."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile

from backburner.core import schedule as schedules
from backburner.core.allowance import Amount, Cost
from backburner.core.schedule import Cron, Interval, Schedule

MONTH = timedelta(days=30)
#: Slots that are counted one by one; what comes more often is counted by how often it comes.
_MAX_COUNTED_SLOTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    per_run: Amount
    #: How many runs this is the mean of, and whether they were its own.
    runs: int
    own: bool
    #: False: some of them were done by a model without a price, so money is not known.
    priced: bool
    #: As often as it runs in a month; None: nobody can know, because something else starts it.
    runs_per_month: int | None

    @property
    def per_month(self) -> Amount | None:
        if self.runs_per_month is None:
            return None
        times = self.runs_per_month
        return Amount(self.per_run.micros * times, self.per_run.tokens * times)


def estimate(
    own: Sequence[Cost], alike: Sequence[Cost], *, runs_per_month: int | None
) -> Estimate | None:
    """Take the mean of its own runs, else of those alike; None: there are none of either."""
    costs = own or alike
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
    """Count the runs of the next thirty days; `left`: it may run only so often."""
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
