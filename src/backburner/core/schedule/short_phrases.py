"""Schedules as short phrases that `parse_schedule` reads back: `weekdays at 8:00`."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime

from backburner.core.errors import BadSchedule
from backburner.core.schedule import Cron, Immediate, Interval, Schedule, Scheduled, cron
from backburner.core.schedule.describe import describe_duration
from backburner.core.schedule.kinds import CatchUp
from backburner.core.schedule.phrases import DAY_NAMES, parse_schedule

_CLOCK_TIMES = re.compile(r"(\d{1,2}) (\d{1,2}(?:,\d{1,2})*) (\S+) \* (\S+)")
_DAYS = {("*", "*"): "every day", ("*", "1-5"): "weekdays", ("*", "6,0"): "weekends"}


def to_phrase(schedule: Schedule) -> str | None:
    """Write a repeated schedule as people say it; None: there are no such words for it."""
    if isinstance(schedule, Interval):
        return f"every {describe_duration(schedule.every)}"
    match = _CLOCK_TIMES.fullmatch(schedule.expression) if isinstance(schedule, Cron) else None
    if match is None:
        return None
    minute, hours, day, weekdays = match.groups()
    days = _DAYS.get((day, weekdays)) or _name_weekdays(day, weekdays) or _name_day(day, weekdays)
    times = [f"{int(hour)}:{int(minute):02}" for hour in hours.split(",")]
    return None if days is None else f"{days} at {_join(times)}"


def to_input(schedule: Schedule, *, zone: str, now: datetime) -> str | None:
    """Write what a user would type to get the same schedule; None: it cannot be typed."""
    for typed in _list_texts(schedule, zone):
        with suppress(BadSchedule):
            if _is_same(parse_schedule(typed, zone=zone, now=now), schedule):
                return typed
    return None


def _list_texts(schedule: Schedule, zone: str) -> Sequence[str]:
    """List texts that could mean a schedule, the best first."""
    if isinstance(schedule, Immediate):
        return ["now"]
    if isinstance(schedule, Scheduled):
        local = schedule.run_at.astimezone(cron.find_zone(zone))
        return [f"{local:%Y-%m-%d at %H:%M}", local.isoformat()]
    texts = [to_phrase(schedule), schedule.expression if isinstance(schedule, Cron) else None]
    return [text for text in texts if text is not None]


def _is_same(parsed: Schedule, schedule: Schedule) -> bool:
    if isinstance(parsed, Interval) and isinstance(schedule, Interval):
        return parsed.every == schedule.every
    if isinstance(schedule, Cron):
        schedule = replace(schedule, catch_up=CatchUp.ONCE)
    return parsed == schedule


def _name_weekdays(day: str, weekdays: str) -> str | None:
    """Name days of the week by their numbers, Sunday first."""
    if day != "*" or not re.fullmatch(r"[0-6](?:,[0-6])*", weekdays):
        return None
    return _join([f"{DAY_NAMES[int(number) - 1]}s" for number in weekdays.split(",")])


def _name_day(day: str, weekdays: str) -> str | None:
    if weekdays != "*" or not re.fullmatch(r"\d{1,2}|L", day):
        return None
    if day == "L":
        return "every month on the last day"
    teens = day in ("11", "12", "13")
    end = "th" if teens else cron.ORDINAL_ENDINGS.get(day[-1], "th")
    return f"every month on the {day}{end}"


def _join(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
