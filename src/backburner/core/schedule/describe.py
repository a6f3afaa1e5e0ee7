"""A schedule and its times in plain English, for people to see what they asked for."""

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

# Not from `strftime`, which follows the machine's language.
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)


def describe(schedule: Schedule, *, zone: str, other: str = "another conversation") -> str:
    """Say it in one phrase; a single time is told in `zone`, a cron expression in its own.

    `other` is what one that it comes after is called.
    """
    match schedule:
        case Immediate():
            return "at once"
        case Scheduled(run_at):
            return f"once, on {_moment_in_words(run_at, zone)} ({zone})"
        case Cron(expression, own_zone):
            words = cron.explain_cron(expression)
            return f"{words[0].lower()}{words[1:]} ({own_zone})"
        case Interval(every):
            return f"every {_duration_in_words(every)}"
        case Event(source):
            return f"whenever {source} reports something"
        case After(on=on, once=once):
            ends = "completes" if on is AfterCondition.SUCCESS else "ends, however it ends"
            return f"{'once, ' if once else ''}after {other} {ends}"
        case _:
            assert_never(schedule)


def describe_times(times: Iterable[datetime], *, zone: str) -> tuple[str, ...]:
    """Give each time like `Mon 16 Nov 2026, 09:00 CET`."""
    local = (moment.astimezone(cron.find_zone(zone)) for moment in times)
    return tuple(
        f"{WEEKDAYS[each.weekday()][:3]} {each.day} {MONTHS[each.month - 1][:3]} {each.year}, "
        f"{_clock(each)} {each.tzname()}"
        for each in local
    )


def join_times(times: Iterable[datetime], *, zone: str) -> str:
    """Put times into one phrase, with their zone, like `Mon 16 Nov 2026, 09:00 CET, then ...`."""
    told = describe_times(times, zone=zone)
    # Some zones are called what their clock times say already.
    named = "" if all(each.endswith(f" {zone}") for each in told) else f" ({zone})"
    return ", then ".join(told) + named


def _moment_in_words(moment: datetime, zone: str) -> str:
    local = moment.astimezone(cron.find_zone(zone))
    day = f"{WEEKDAYS[local.weekday()]} {local.day} {MONTHS[local.month - 1]} {local.year}"
    return f"{day} at {_clock(local)}"


def _clock(local: datetime) -> str:
    return f"{local:%H:%M:%S}" if local.second else f"{local:%H:%M}"


def _duration_in_words(duration: timedelta) -> str:
    hours, rest = divmod(duration, timedelta(hours=1))
    minutes, rest = divmod(rest, timedelta(minutes=1))
    # One day stays 24 hours: "every day" would be taken as by the clock.
    days, hours = divmod(hours, 24) if hours > 24 else (0, hours)
    seconds = f"{rest.total_seconds():.6f}".rstrip("0").rstrip(".")
    parts = [
        ("day", str(days)),
        ("hour", str(hours)),
        ("minute", str(minutes)),
        ("second", seconds),
    ]
    said = [f"{count} {unit}{'s' * (count != '1')}" for unit, count in parts if count != "0"]
    return " ".join(said) if len(said) > 1 else said[0].removeprefix("1 ")
