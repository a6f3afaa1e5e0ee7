"""Schedules: when background work is due, and which slots were missed.

A slot is a time at which a schedule is due. All times are aware and in UTC; local time is used
only to compute cron slots.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice, takewhile
from typing import Any, assert_never

from backburner.core.errors import BadSchedule
from backburner.core.ids import ConversationId
from backburner.core.schedule import cron

#: The smallest difference between two times.
TICK = timedelta.resolution
MIN_INTERVAL = timedelta(seconds=1)
#: A time further ahead is more likely a mistake than intended.
MAX_SCHEDULE_AHEAD = timedelta(days=3660)
#: A slot later than this counts as missed if catch-up is `skip`.
MAX_SLOT_DELAY = timedelta(minutes=5)
#: Slots in a gap are counted up to this number; beyond it, the count is "or more".
MAX_COUNTED_SLOTS = 1000


class CatchUp(StrEnum):
    ONCE = "once"  #: Run once for all missed slots.
    SKIP = "skip"  #: Skip missed slots and wait for the next one.


class AfterCondition(StrEnum):
    SUCCESS = "success"  #: Only when the other work completes.
    ANY = "any"  #: Also when it ends in error, is cancelled or is paused for failures.


@dataclass(frozen=True, slots=True)
class Immediate:
    """Once, immediately."""


@dataclass(frozen=True, slots=True)
class Scheduled:
    """Once, at a given time."""

    run_at: datetime


@dataclass(frozen=True, slots=True)
class Cron:
    """Repeatedly, by the clock of a time zone."""

    expression: str
    zone: str
    catch_up: CatchUp = CatchUp.ONCE


@dataclass(frozen=True, slots=True)
class Interval:
    """Repeatedly, by elapsed time; the first slot is the anchor."""

    every: timedelta
    anchor: datetime
    catch_up: CatchUp = CatchUp.ONCE


@dataclass(frozen=True, slots=True)
class Event:
    """Whenever an external source reports an event."""

    source: str
    config: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class After:
    """Whenever the work of another conversation has ended."""

    conversation: ConversationId
    on: AfterCondition = AfterCondition.SUCCESS
    #: The other work is one-time, so this is too.
    once: bool = False


Schedule = Immediate | Scheduled | Cron | Interval | Event | After


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


def check_schedule(schedule: Schedule, *, now: datetime) -> None:
    """Refuse a schedule that work cannot start with now."""
    match schedule:
        case Scheduled(run_at):
            _check_run_at(run_at, now)
        case Cron(expression, zone):
            cron.find_zone(zone)
            cron.check_cron(expression)
        case Interval(every, anchor):
            _check_interval(every)
            _require_aware(anchor)
            _check_near(anchor, now)
        case Event(source) if not source:
            raise BadSchedule("An event schedule needs a source.", hint="Name one, such as `file`.")
        case Immediate() | Event() | After():
            pass
        case _:
            assert_never(schedule)


def is_recurring(schedule: Schedule) -> bool:
    match schedule:
        case Cron() | Interval() | Event():
            return True
        case After(once=once):
            return not once
        case Immediate() | Scheduled():
            return False
        case _:
            assert_never(schedule)


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
    return Gap(MAX_COUNTED_SLOTS, counted[0], _newest_slot(schedule, until), or_more=True)


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


def upcoming(schedule: Schedule, *, now: datetime, count: int = 3) -> tuple[datetime, ...]:
    """List the next times of a schedule."""
    first = first_run_at(schedule, now=now)
    if first is None:
        return ()
    return (first, *islice(slots(schedule, after=first), count - 1))


def _check_run_at(run_at: datetime, now: datetime) -> None:
    _require_aware(run_at)
    if run_at <= now:
        raise BadSchedule(
            f"{run_at.isoformat()} is in the past.",
            hint=f"It is now {now.isoformat(timespec='seconds')}; choose a later time.",
        )
    _check_near(run_at, now)


def _check_near(moment: datetime, now: datetime) -> None:
    if moment - now > MAX_SCHEDULE_AHEAD:
        raise BadSchedule(
            f"{moment.isoformat()} is more than ten years ahead.", hint="Check the year."
        )


def _check_interval(every: timedelta) -> None:
    if every < MIN_INTERVAL:
        raise BadSchedule(
            "An interval must be at least one second.", hint="Use, for example, `every 30m`."
        )
    if every > MAX_SCHEDULE_AHEAD:
        raise BadSchedule("An interval must be at most ten years.", hint="Check the unit.")


def _require_aware(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise BadSchedule(
            f"{moment.isoformat()} has no time zone.",
            hint="Add an offset, such as `2027-01-31T09:00:00+01:00`, or `Z` for UTC.",
        )


def _interval_gap(schedule: Interval, after: datetime, until: datetime) -> Gap | None:
    first = next(slots(schedule, after=after))
    if first > until:
        return None
    count = (until - first) // schedule.every + 1
    return Gap(count, first, first + (count - 1) * schedule.every)


def _without_newest(schedule: Schedule, passed: Gap) -> Gap | None:
    if passed.first_at == passed.last_at:
        return None
    before = _newest_slot(schedule, passed.last_at - TICK)
    count = passed.count if passed.or_more else passed.count - 1
    return replace(passed, count=count, last_at=before)


def _newest_slot(schedule: Schedule, until: datetime) -> datetime:
    """Find the newest slot not later than `until`; there must be one."""
    if isinstance(schedule, Interval):
        return schedule.anchor + (until - schedule.anchor) // schedule.every * schedule.every
    window = timedelta(minutes=2)
    while True:
        passed = takewhile(lambda slot: slot <= until, slots(schedule, after=until - window))
        if newest := max(passed, default=None):
            return newest
        window *= 2
