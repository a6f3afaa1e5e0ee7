"""Schedules and times in plain English."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import assert_never

from backburner.core.schedule import (
    After,
    AfterCondition,
    Cron,
    Event,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
    cron,
)

# Not from `strftime`, which depends on the machine's locale.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)


def describe(schedule: Schedule, *, zone: str, other: str = "another conversation") -> str:
    """Describe a schedule in a phrase; a single time is shown in `zone`, cron in its own zone.

    `other` is the name of the work that an `after` schedule follows.
    """
    match schedule:
        case Immediate():
            return "immediately"
        case Scheduled(run_at):
            return f"once, on {_moment(run_at, zone)} ({zone})"
        case Cron(expression, own_zone):
            text = cron.explain_cron(expression)
            return f"{text[0].lower()}{text[1:]} ({own_zone})"
        case Interval(every):
            return f"every {describe_duration(every)}"
        case Event(source):
            return f"whenever {source} reports an event"
        case After(on=on, once=once):
            ends = "completes" if on is AfterCondition.SUCCESS else "ends, with any result"
            return f"{'once, ' if once else ''}after {other} {ends}"
        case _:
            assert_never(schedule)


def describe_times(times: Iterable[datetime], *, zone: str) -> tuple[str, ...]:
    """Format each time like `Mon 16 Nov 2026, 09:00 CET`."""
    local_times = (moment.astimezone(cron.find_zone(zone)) for moment in times)
    return tuple(
        f"{WEEKDAYS[local.weekday()][:3]} {local.day} {MONTHS[local.month - 1][:3]} {local.year}, "
        f"{_clock(local)} {local.tzname()}"
        for local in local_times
    )


def join_times(times: Iterable[datetime], *, zone: str) -> str:
    """Format times in one phrase with their zone, like `Mon 16 Nov 2026, 09:00 CET, then ...`."""
    texts = describe_times(times, zone=zone)
    # Zones such as UTC are already named by their abbreviation.
    suffix = "" if all(text.endswith(f" {zone}") for text in texts) else f" ({zone})"
    return ", then ".join(texts) + suffix


def _moment(moment: datetime, zone: str) -> str:
    local = moment.astimezone(cron.find_zone(zone))
    day = f"{WEEKDAYS[local.weekday()]} {local.day} {MONTHS[local.month - 1]} {local.year}"
    return f"{day} at {_clock(local)}"


def _clock(local: datetime) -> str:
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


def describe_duration(duration: timedelta) -> str:
    """Describe a duration as it follows "every": `hour`, `30 minutes`, `1 day 2 hours`."""
    hours, rest = divmod(duration, timedelta(hours=1))
    minutes, rest = divmod(rest, timedelta(minutes=1))
    # One day stays "24 hours": "every day" would suggest a fixed clock time.
    days, hours = divmod(hours, 24) if hours > 24 else (0, hours)
    seconds = f"{rest.total_seconds():.6f}".rstrip("0").rstrip(".")
    parts = [
        ("day", str(days)),
        ("hour", str(hours)),
        ("minute", str(minutes)),
        ("second", seconds),
    ]
    texts = [f"{count} {unit}{'s' * (count != '1')}" for unit, count in parts if count != "0"]
    return " ".join(texts) if len(texts) > 1 else texts[0].removeprefix("1 ")
