"""The calendar: the times in a period at which work will run.

Many times of a day are folded into one entry, and those of very frequent work into one for all of
the period, so that the calendar of a month stays small and is computed quickly.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, groupby, islice, pairwise, takewhile

from backburner.core.schedule.cron import find_zone
from backburner.core.schedule.due_slots import TICK, gap, newest_slot, slots
from backburner.core.schedule.kinds import Interval, Schedule

#: Times of one work that are looked at one by one; if there are more, all are one entry.
MAX_TIMES = 200
#: Times of one work on one day that are entries of their own.
MAX_TIMES_A_DAY = 6


@dataclass(frozen=True, slots=True)
class PlannedTimes:
    """One time, or several that are folded."""

    count: int
    first_at: datetime
    last_at: datetime
    #: The usual time between two of them; None: it is one.
    every: timedelta | None = None
    #: `count` is a lower bound.
    or_more: bool = False


def plan(
    schedule: Schedule,
    *,
    first_at: datetime,
    start: datetime,
    end: datetime,
    zone: str,
    left: int | None = None,
) -> Sequence[PlannedTimes]:
    """List when work runs from `start` to before `end`; days begin at midnight in `zone`.

    It runs at `first_at`, which may be no slot, and at its slots from then on; `left` times at
    most.
    """
    left = _left_at_start(schedule, first_at, start, left)
    found = takewhile(lambda time: time < end, _times(schedule, first_at, start))
    times = list(islice(found, MAX_TIMES + 1 if left is None else min(left, MAX_TIMES + 1)))
    if len(times) > MAX_TIMES:
        return [_fold_all(schedule, times, end, left)]
    tz = find_zone(zone)
    entries = list[PlannedTimes]()
    for _, of_day in groupby(times, key=lambda time: time.astimezone(tz).date()):
        day = list(of_day)
        folded = [day] if len(day) > MAX_TIMES_A_DAY else [[time] for time in day]
        entries += [PlannedTimes(len(some), some[0], some[-1], _usual(some)) for some in folded]
    return entries


def _times(schedule: Schedule, first_at: datetime, start: datetime) -> Iterator[datetime]:
    first = (first_at,) if first_at >= start else ()
    return chain(first, slots(schedule, after=max(first_at, start - TICK)))


def _left_at_start(
    schedule: Schedule, first_at: datetime, start: datetime, left: int | None
) -> int | None:
    """Count how often it may still run at the start of the period."""
    if left is None or first_at >= start:
        return left
    passed = gap(schedule, after=first_at, until=start - TICK)
    used = 1 if passed is None else 1 + passed.count
    return max(0, left - used)


def _fold_all(
    schedule: Schedule, times: Sequence[datetime], end: datetime, left: int | None
) -> PlannedTimes:
    """Fold more times than are looked at; only those of an interval can be counted at once."""
    last_at = newest_slot(schedule, end - TICK)
    if not isinstance(schedule, Interval):
        return PlannedTimes(len(times), times[0], last_at, _usual(times), or_more=True)
    count = 2 + (last_at - times[1]) // schedule.every
    if left is not None and left < count:
        count, last_at = left, times[1] + (left - 2) * schedule.every
    return PlannedTimes(count, times[0], last_at, schedule.every)


def _usual(times: Sequence[datetime]) -> timedelta | None:
    """Find the most frequent distance between two times; None: there is only one."""
    distances = Counter(after - before for before, after in pairwise(times))
    return distances.most_common(1)[0][0] if distances else None
