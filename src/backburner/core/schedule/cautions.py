"""Warnings about schedules that are valid, and perhaps not what was meant."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from backburner.core.schedule.describe import describe_duration, describe_times
from backburner.core.schedule.due_slots import upcoming
from backburner.core.schedule.kinds import Interval, Schedule

#: Work that runs more often than this is rarely meant to.
FREQUENT = timedelta(minutes=5)
FAR_AHEAD = timedelta(days=366)
_DAY = timedelta(days=1)
#: By which it is seen how often a schedule is due.
_TIMES_LOOKED_AT = 6


def find_cautions(
    schedule: Schedule, *, now: datetime, zone: str, least: timedelta = timedelta()
) -> Sequence[str]:
    """Find what a user should know before they set a schedule; `least` is between two runs."""
    times = upcoming(schedule, now=now, count=_TIMES_LOOKED_AT)
    found = []
    shortest = min((after - before for before, after in pairwise(times)), default=None)
    if shortest is not None and shortest < FREQUENT:
        often = describe_duration(shortest)
        found.append(f"It runs every {often}, up to {_DAY // shortest:,} times a day.")
    if isinstance(schedule, Interval) and schedule.every < least:
        found.append(
            f"Work with a real model runs every {least.total_seconds():.0f} seconds at most: this"
            " would be refused."
        )
    if times and times[0] - now > FAR_AHEAD:
        (first,) = describe_times(times[:1], zone=zone)
        found.append(f"Its first time is more than a year from now: {first}.")
    return found
