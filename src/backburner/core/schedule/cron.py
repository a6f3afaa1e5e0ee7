"""Cron expressions and time zones: what is one, and the slots it has when clocks change.

A fixed time comes once a local day; expressions with a star for the minute or the hour go by
elapsed time. Both are the rules of Debian's cron.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from backburner.core.errors import BadSchedule

SECOND = timedelta(seconds=1)
#: No zone changes its offset and changes it back within this time.
OFFSET_STRIDE = timedelta(days=7)
REFERENCE_TIME = datetime(2000, 1, 1, tzinfo=UTC)
ORDINAL_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}
CRON_HINT = "Five fields are needed: minute hour day month weekday, such as `0 9 * * 1-5`."


def cron_slots(expression: str, zone: tzinfo, *, after: datetime) -> Iterator[datetime]:
    """Yield the slots later than `after`, each later than the one before."""
    minute, hour = expression.split()[:2]
    if minute.startswith("*") or hour.startswith("*"):
        return _slots_by_elapsed_time(expression, zone, after)
    return _slots_at_fixed_times(expression, zone, after)


def check_cron(expression: str) -> None:
    """Refuse what is not a five-field cron expression, or names a day that never comes."""
    fields = expression.split()
    # cronsim works in capitals, and a few letters of other scripts have ASCII ones.
    if len(fields) != 5 or len(expression) > 200 or not expression.isascii():
        raise BadSchedule(f"{expression[:200]!r} is not a cron expression.", hint=CRON_HINT)
    minute, hour, day, month, weekday = fields
    # Day and month apart: both can be right, and yet never come together.
    why = _fault(f"{minute} {hour} {day} * {weekday}") or _fault(f"* * * {month} *")
    if why:
        raise BadSchedule(f"{expression!r} is not a cron expression: {why}.", hint=CRON_HINT)
    if _fault(expression) or next(CronSim(expression, REFERENCE_TIME), None) is None:
        raise BadSchedule(
            f"{expression!r} never comes: no such month has such a day.",
            hint="Choose a day that exists in that month, or `L` for its last.",
        )


def explain_cron(expression: str) -> str:
    words = CronSim(expression, REFERENCE_TIME).explain()
    # cronsim ends every number above nine with "th".
    return re.sub(r"(?<!1)([123])th\b", lambda end: end[1] + ORDINAL_ENDINGS[end[1]], words)


def find_zone(name: str) -> ZoneInfo:
    if name not in _zone_names():
        raise BadSchedule(
            f"There is no time zone {name!r}.",
            hint="Use a name such as `Europe/Berlin`, `America/New_York` or `UTC`.",
        )
    return ZoneInfo(name)


@cache
def _zone_names() -> frozenset[str]:
    # These two are no place's time: the machine's own, whatever that is, and "not set up yet".
    return frozenset(available_timezones() - {"localtime", "Factory"})


def _fault(expression: str) -> str:
    try:
        CronSim(expression, REFERENCE_TIME)
    except CronSimError as error:
        return str(error).lower()
    return ""


def _slots_at_fixed_times(expression: str, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Once a local day: right after a skipped hour, in the first of two doubled ones."""
    for local in CronSim(expression, after.astimezone(zone)):
        slot = local.astimezone(UTC)
        # Within the second of two doubled hours cronsim starts with the first one's slots.
        if slot > after:
            yield slot


def _slots_by_elapsed_time(expression: str, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Every moment whose local time fits, whatever the clocks do.

    cronsim walks in whole hours, which goes wrong where clocks change by half of one. So it only
    ever walks under one fixed offset, and starts anew where the offset changes.
    """
    after = after.astimezone(UTC).replace(microsecond=0)
    while True:
        # At the change itself the new offset holds, and the walk begins with the second after this.
        offset = _offset(after + SECOND, zone)
        # It takes this wall clock for UTC, which spares it thinking about zones.
        for wall in CronSim(expression, after + offset):
            slot = wall - offset
            if change := _change_of_offset(zone, offset, after, slot):
                after = change - SECOND
                break
            yield slot
            after = slot
        else:
            return


def _change_of_offset(
    zone: tzinfo, offset: timedelta, after: datetime, until: datetime
) -> datetime | None:
    """Find the first second later than `after`, and not later than `until`, with another offset."""
    low, high = after, min(after + OFFSET_STRIDE, until)
    while _offset(high, zone) == offset:
        if high == until:
            return None
        low, high = high, min(high + OFFSET_STRIDE, until)
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        low, high = (middle, high) if _offset(middle, zone) == offset else (low, middle)
    return high


def _offset(moment: datetime, zone: tzinfo) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()
