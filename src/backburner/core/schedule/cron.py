"""Cron expressions and time zones, and the slots they have when clocks change.

A fixed time is due once a local day; expressions with a star for the minute or the hour follow
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
#: No zone changes its offset and back within this time.
OFFSET_STRIDE = timedelta(days=7)
REFERENCE_TIME = datetime(2000, 1, 1, tzinfo=UTC)
ORDINAL_ENDINGS = {"1": "st", "2": "nd", "3": "rd"}
CRON_HINT = "Use five fields: minute hour day month weekday, such as `0 9 * * 1-5`."


def cron_slots(expression: str, zone: tzinfo, *, after: datetime) -> Iterator[datetime]:
    """Yield the slots later than `after`, in order."""
    minute, hour = expression.split()[:2]
    if minute.startswith("*") or hour.startswith("*"):
        return _slots_by_elapsed_time(expression, zone, after)
    return _slots_at_fixed_times(expression, zone, after)


def check_cron(expression: str) -> None:
    """Refuse an invalid cron expression, or one for a day that does not exist."""
    fields = expression.split()
    # cronsim converts to upper case, which turns a few letters of other scripts into ASCII.
    if len(fields) != 5 or len(expression) > 200 or not expression.isascii():
        raise BadSchedule(f"{expression[:200]!r} is not a cron expression.", hint=CRON_HINT)
    minute, hour, day, month, weekday = fields
    # Day and month separately: each can be valid although they never coincide.
    fault = _fault(f"{minute} {hour} {day} * {weekday}") or _fault(f"* * * {month} *")
    if fault:
        raise BadSchedule(f"{expression!r} is not a cron expression: {fault}.", hint=CRON_HINT)
    if _fault(expression) or next(CronSim(expression, REFERENCE_TIME), None) is None:
        raise BadSchedule(
            f"{expression!r} is never due: no such month has that day.",
            hint="Choose a day that exists in that month, or `L` for its last day.",
        )


def explain_cron(expression: str) -> str:
    text = CronSim(expression, REFERENCE_TIME).explain()
    # cronsim ends every number above nine with "th".
    return re.sub(r"(?<!1)([123])th\b", lambda end: end[1] + ORDINAL_ENDINGS[end[1]], text)


def find_zone(name: str) -> ZoneInfo:
    if name not in _zone_names():
        raise BadSchedule(
            f"There is no time zone {name!r}.",
            hint="Use a name such as `Europe/Berlin`, `America/New_York` or `UTC`.",
        )
    return ZoneInfo(name)


@cache
def _zone_names() -> frozenset[str]:
    # Not the time of any place: the machine's own zone, and the placeholder for "not set up".
    return frozenset(available_timezones() - {"localtime", "Factory"})


def _fault(expression: str) -> str:
    try:
        CronSim(expression, REFERENCE_TIME)
    except CronSimError as error:
        return str(error).lower()
    return ""


def _slots_at_fixed_times(expression: str, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Yield one slot a local day: right after a skipped hour, in the first of a repeated hour."""
    for local in CronSim(expression, after.astimezone(zone)):
        slot = local.astimezone(UTC)
        # Within the second pass of a repeated hour, cronsim starts with the slots of the first.
        if slot > after:
            yield slot


def _slots_by_elapsed_time(expression: str, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Yield every moment whose local time matches, also when clocks change.

    cronsim advances in whole hours, which is wrong where clocks change by half an hour. So it
    runs under one fixed offset at a time, and restarts where the offset changes.
    """
    after = after.astimezone(UTC).replace(microsecond=0)
    while True:
        # The new offset holds from the change on, and cronsim begins with the second after `after`.
        offset = _offset(after + SECOND, zone)
        # cronsim treats this wall clock as UTC and so needs no zone.
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
    """Find the first second in (after, until] that has another offset."""
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
