"""Cron slots around every change of clocks of three years, in every zone, against brute force."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, pairwise, takewhile
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement

from backburner.core.schedule import Cron, slots

#: Brute force is slow enough without being measured.
pytestmark = pytest.mark.unmeasured

FIXED = (
    "30 2 * * *",
    "0 0 * * *",
    "15 1 * * *",
    "0 3 * * 0",
    "0,30 2 * * *",
    "30 1 1 * *",
    "45 0,23 * * *",
)
WILDCARD = ("*/15 * * * *", "30 * * * *", "0 */2 * * *", "*/20 1-3 * * *", "*/10 5 * * *")
EXPRESSIONS = FIXED + WILDCARD
BEGIN, END = datetime(2025, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
AROUND = timedelta(hours=36)
MINUTE = timedelta(minutes=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Where to start from, in minutes from the change: before it, at it, and in both doubled halves.
STARTS = (-1500.0, -61.0, -30.001, -1 / 60, 0.0, 0.001, 14.0, 16.5, 29.99, 44.0, 60.0, 75.0, 1500.0)


class Change(NamedTuple):
    """A moment at which the clocks of a zone change; offsets in minutes."""

    at: datetime
    before: int
    after: int


def offset(moment: datetime, zone: ZoneInfo) -> int:
    found = moment.astimezone(zone).utcoffset()
    assert found is not None
    return found // MINUTE


def changes_of(zone: ZoneInfo) -> Iterator[Change]:
    low, before = BEGIN, offset(BEGIN, zone)
    while low < END:
        high = low + timedelta(days=7)
        if (after := offset(high, zone)) != before:
            yield Change(find_change(low, high, zone), before, after)
        low, before = high, after


def find_change(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    before = offset(low, zone)
    while high - low > MINUTE:
        middle = low + (high - low) // MINUTE // 2 * MINUTE
        low, high = (middle, high) if offset(middle, zone) == before else (low, middle)
    return high


@cache
def all_changes() -> tuple[tuple[str, Change], ...]:
    """List the changes of every zone, taking one zone of those that share all of theirs."""
    rules: dict[tuple[Change, ...], str] = {}
    for name in sorted(available_timezones()):
        rules.setdefault(tuple(changes_of(ZoneInfo(name))), name)
    return tuple((name, change) for changes, name in rules.items() for change in changes)


def numbers(field: str, end: int) -> set[int]:
    if "," in field:
        return {number for part in field.split(",") for number in numbers(part, end)}
    if field.startswith("*"):
        return set(range(0, end, int(field[2:] or 1)))
    first, _, last = field.partition("-")
    return set(range(int(first), int(last or first) + 1))


@cache
def minutes_of_day(expression: str) -> frozenset[int]:
    minute, hour = expression.split()[:2]
    return frozenset(h * 60 + m for h in numbers(hour, 24) for m in numbers(minute, 60))


@cache
def is_day(expression: str, days_since_epoch: int) -> bool:
    day = date.fromordinal(EPOCH.toordinal() + days_since_epoch)
    _, _, of_month, _, of_week = expression.split()
    return day.day in numbers(of_month, 32) and day.isoweekday() % 7 in numbers(of_week, 7)


def walls(expression: str, begin: int, end: int) -> Iterator[int]:
    """Yield every wall time that fits the expression, in minutes since the epoch."""
    for day in range(begin // 1440, end // 1440 + 1):
        if is_day(expression, day):
            yield from (day * 1440 + minute for minute in minutes_of_day(expression))


def moments_at(wall: int, change: Change) -> list[int]:
    at = (change.at - EPOCH) // MINUTE
    first, second = wall - change.before, wall - change.after
    return [*([first] if first < at else []), *([second] if second >= at else [])]


@cache
def expected_slots(expression: str, change: Change) -> list[datetime]:
    """Try each time on the clock, from well before the change until well after it."""
    at = (change.at - EPOCH) // MINUTE
    around = AROUND // MINUTE
    found: set[int] = set()
    for wall in walls(expression, at - 2 * around, at + 2 * around):
        moments = moments_at(wall, change)
        found.update(moments if expression in WILDCARD else (moments or [at])[:1])
    inside = (moment for moment in sorted(found) if -around < moment - at <= around)
    return [EPOCH + moment * MINUTE for moment in inside]


@requirement("A-cron")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_slots_around_every_change_of_clocks_are_those_of_brute_force(expression: str) -> None:
    for zone, change in all_changes():
        after, until = change.at - AROUND, change.at + AROUND
        found = slots(Cron(expression, zone), after=after)

        within = list(takewhile(lambda slot: slot <= until, found))  # noqa: B023
        assert (zone, change, within) == (zone, change, expected_slots(expression, change))


@requirement("A-cron")
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_slots_are_the_same_wherever_one_starts(expression: str) -> None:
    for zone, change in all_changes():
        for start in STARTS:
            after = change.at + start * MINUTE
            expected = [slot for slot in expected_slots(expression, change) if slot > after][:4]

            found = list(islice(slots(Cron(expression, zone), after=after), len(expected)))
            assert (zone, change, start, found) == (zone, change, start, expected)


def test_the_zones_of_the_world_are_among_those_tried() -> None:
    zones = {zone for zone, _ in all_changes()}
    jumps = {abs(change.after - change.before) for _, change in all_changes()}

    assert len(zones) > 20
    assert jumps >= {30, 60}


@given(
    expression=st.sampled_from((*EXPRESSIONS, "0 0 29 2 *", "* * L * *", "5 4 * * 5#2")),
    zone=st.sampled_from(("UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca")),
    after=st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)
def test_slots_are_later_than_their_start_and_strictly_increase(
    expression: str, zone: str, after: datetime
) -> None:
    found = list(islice(slots(Cron(expression, zone), after=after), 20))

    assert found[0] > after
    assert all(one < next_one for one, next_one in pairwise(found))
    assert all(slot.tzinfo is UTC for slot in found)


def local(expression: str, zone: str, *, after: datetime, count: int) -> list[str]:
    found = islice(slots(Cron(expression, zone), after=after), count)
    return [slot.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes") for slot in found]


@requirement("A-cron")
def test_a_time_in_the_skipped_hour_comes_right_after_it() -> None:
    found = local("30 2 * * *", "Europe/Berlin", after=datetime(2026, 3, 28, tzinfo=UTC), count=3)

    assert found == ["2026-03-28T02:30+01:00", "2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]


@requirement("A-cron")
def test_a_time_in_the_doubled_hour_comes_once_in_its_first() -> None:
    found = local("30 2 * * *", "Europe/Berlin", after=datetime(2026, 10, 24, tzinfo=UTC), count=3)

    assert found == ["2026-10-24T02:30+02:00", "2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]


@requirement("A-cron")
def test_every_second_hour_goes_by_the_clock_and_may_come_an_hour_early_or_late() -> None:
    found = local(
        "0 */2 * * *", "Europe/Berlin", after=datetime(2026, 10, 24, 22, tzinfo=UTC), count=3
    )

    assert found == ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T04:00+01:00"]


def test_a_yearly_slot_in_the_doubled_hour_is_found_from_the_season_before() -> None:
    found = local(
        "*/30 2 25 10 *", "Europe/Berlin", after=datetime(2026, 1, 5, tzinfo=UTC), count=4
    )

    assert found == [
        "2026-10-25T02:00+02:00",
        "2026-10-25T02:30+02:00",
        "2026-10-25T02:00+01:00",
        "2026-10-25T02:30+01:00",
    ]


@pytest.mark.parametrize("expression", ["0 0 */31 * 1#2", "*/5 * */31 * 1#2"])
def test_slots_end_where_no_day_ever_fits(expression: str) -> None:
    assert list(slots(Cron(expression, "Europe/Berlin"), after=BEGIN)) == []
