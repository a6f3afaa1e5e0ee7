"""Slots: when a schedule is due, which slot a run is for, and which slots were missed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import assert_never

from backburner.core.schedule import cron
from backburner.core.schedule.kinds import (
    After,
    CatchUp,
    Cron,
    Event,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
)

#: The smallest difference between two times.
TICK = timedelta.resolution
#: A slot later than this counts as missed if catch-up is `skip`.
MAX_SLOT_DELAY = timedelta(minutes=5)
#: Slots in a gap are counted up to this number; beyond it, the count is "or more".
MAX_COUNTED_SLOTS = 1000


@dataclass(frozen=True, slots=True)
class Gap:
    """Consecutive slots without a run."""

    count: int
    first_at: datetime
    last_at: datetime
    #: `count` is a lower bound.
    or_more: bool = False


@dataclass(frozen=True, slots=True)
class Due:
    """The slot to run for, and the slots missed before it."""

    #: False if all slots that are due were missed.
    runs: bool
    slot_at: datetime | None
    missed: Gap | None


def first_run_at(schedule: Schedule, *, now: datetime) -> datetime | None:
    """Return when work that starts or resumes now is first due; None if an event starts it.

    Slots before now do not count, but a one-time run whose time has passed is due immediately.
    """
    match schedule:
        case Immediate():
            return now
        case Scheduled(run_at):
            return max(run_at, now)
        case Interval(anchor=anchor) if anchor >= now:
            return anchor
        case Cron() | Interval() | Event() | After():
            return next_run_at(schedule, after=now)
        case _:
            assert_never(schedule)


def next_run_at(schedule: Schedule, *, after: datetime) -> datetime | None:
    """Find the first slot later than `after`."""
    return next(slots(schedule, after=after), None)


def slots(schedule: Schedule, *, after: datetime) -> Iterator[datetime]:
    """Yield the slots later than `after`, in order."""
    match schedule:
        case Scheduled(run_at):
            yield from (run_at,) if run_at > after else ()
        case Cron(expression, zone):
            yield from cron.cron_slots(expression, cron.find_zone(zone), after=after)
        case Interval(every, anchor):
            passed = max(0, (after - anchor) // every + 1)
            while True:
                yield anchor + passed * every
                passed += 1
        case Immediate() | Event() | After():
            return
        case _:
            assert_never(schedule)


def gap(schedule: Schedule, *, after: datetime, until: datetime) -> Gap | None:
    """Count the slots later than `after` and not later than `until`."""
    if isinstance(schedule, Interval):
        return _interval_gap(schedule, after, until)
    passed = takewhile(lambda slot: slot <= until, slots(schedule, after=after))
    counted = tuple(islice(passed, MAX_COUNTED_SLOTS + 1))
    if not counted:
        return None
    if len(counted) <= MAX_COUNTED_SLOTS:
        return Gap(len(counted), counted[0], counted[-1])
    return Gap(MAX_COUNTED_SLOTS, counted[0], newest_slot(schedule, until), or_more=True)


def due(
    schedule: Schedule, *, next_run_at: datetime, settled_until: datetime | None, now: datetime
) -> Due:
    """Divide the slots due at `now` into the one to run for and those missed before it.

    Slots up to `settled_until` are accounted for; if it is None, slots before `next_run_at` are.
    A `next_run_at` that is not a slot (a retry, an answer) always runs.
    """
    settled = settled_until or next_run_at - TICK
    passed = gap(schedule, after=settled, until=now)
    if passed is None:
        return Due(runs=True, slot_at=None, missed=None)
    skips = isinstance(schedule, Cron | Interval) and schedule.catch_up is CatchUp.SKIP
    if skips and now - passed.last_at > MAX_SLOT_DELAY:
        return Due(runs=False, slot_at=None, missed=passed)
    return Due(runs=True, slot_at=passed.last_at, missed=_without_newest(schedule, passed))


def is_too_far_ahead(schedule: Schedule, moment: datetime, *, now: datetime) -> bool:
    """Decide whether a time of recurring work was computed by a clock that ran ahead.

    It is so if more than one slot lies between. After a smaller correction of the clock, the slots
    that have had a run are not repeated.
    """
    if not isinstance(schedule, Cron | Interval):
        return False
    coming = tuple(islice(slots(schedule, after=now), 2))
    return bool(coming) and moment > coming[-1]


def upcoming(schedule: Schedule, *, now: datetime, count: int = 3) -> tuple[datetime, ...]:
    """List the next times of a schedule."""
    first = first_run_at(schedule, now=now)
    if first is None:
        return ()
    return (first, *islice(slots(schedule, after=first), count - 1))


def _interval_gap(schedule: Interval, after: datetime, until: datetime) -> Gap | None:
    first = next(slots(schedule, after=after))
    if first > until:
        return None
    count = (until - first) // schedule.every + 1
    return Gap(count, first, first + (count - 1) * schedule.every)


def _without_newest(schedule: Schedule, passed: Gap) -> Gap | None:
    if passed.first_at == passed.last_at:
        return None
    before = newest_slot(schedule, passed.last_at - TICK)
    count = passed.count if passed.or_more else passed.count - 1
    return replace(passed, count=count, last_at=before)


def newest_slot(schedule: Schedule, until: datetime) -> datetime:
    """Find the newest slot not later than `until`; there must be one."""
    if isinstance(schedule, Interval):
        return schedule.anchor + (until - schedule.anchor) // schedule.every * schedule.every
    window = timedelta(minutes=2)
    while True:
        passed = takewhile(lambda slot: slot <= until, slots(schedule, after=until - window))
        if newest := max(passed, default=None):
            return newest
        window *= 2
