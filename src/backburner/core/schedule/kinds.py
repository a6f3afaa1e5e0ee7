"""The kinds of schedules, and checks of new ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from backburner.core.errors import BadSchedule
from backburner.core.ids import ConversationId
from backburner.core.schedule import cron

MIN_INTERVAL = timedelta(seconds=1)
#: A time further ahead is more likely a mistake than intended.
MAX_SCHEDULE_AHEAD = timedelta(days=3660)
#: The sources that report events: each trigger adds its own.
EVENT_SOURCES: tuple[str, ...] = ()


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


def check_event_source(schedule: Schedule, *, sources: Sequence[str] = EVENT_SOURCES) -> None:
    """Refuse to wait for events of a source that reports none: such work would never start."""
    if not isinstance(schedule, Event) or schedule.source in sources:
        return
    if not sources:
        raise BadSchedule(
            "Events cannot start work yet.",
            hint="Give a time instead, such as `every 5m`, or a task that it runs after.",
        )
    raise BadSchedule(
        f"Nothing reports events of {schedule.source[:80]!r}.",
        hint=f"Use one of: {', '.join(sources)}.",
    )


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


def check_frequency(schedule: Schedule, least: timedelta) -> None:
    """Refuse an interval below the least that there may be between two runs."""
    if isinstance(schedule, Interval) and schedule.every < least:
        raise BadSchedule(
            f"Work with this model runs every {least.total_seconds():.0f} seconds at most.",
            hint="Choose a longer interval. The operator can change `min_interval`.",
        )


def _require_aware(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise BadSchedule(
            f"{moment.isoformat()} has no time zone.",
            hint="Add an offset, such as `2027-01-31T09:00:00+01:00`, or `Z` for UTC.",
        )
