"""The kinds of schedules."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from backburner.core.ids import ConversationId


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
