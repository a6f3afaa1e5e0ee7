"""The calendar has every time at which work runs, and folds many of them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support.stage.make import NOON

from backburner.core.schedule import Cron, Event, Immediate, Interval, Schedule, Scheduled
from backburner.core.schedule.calendar import (
    MAX_TIMES,
    MAX_TIMES_A_DAY,
    PlannedTimes,
    plan,
)

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
BERLIN = "Europe/Berlin"


def planned(schedule: Schedule, **changes: Any) -> list[PlannedTimes]:
    usual = {"first_at": NOON, "start": NOON, "end": NOON + 31 * DAY, "zone": BERLIN}
    return list(plan(schedule, **{**usual, **changes}))


def one(moment: datetime) -> PlannedTimes:
    return PlannedTimes(1, moment, moment)


def test_each_time_of_rare_work_is_an_entry() -> None:
    weekly = Cron("0 9 * * 1", BERLIN)

    found = planned(weekly, first_at=NOON + 7 * DAY - 4 * HOUR)

    assert found == [one(NOON + number * 7 * DAY - 4 * HOUR) for number in range(1, 5)]


def test_local_times_stay_the_same_when_clocks_change() -> None:
    spring = datetime(2027, 3, 27, 12, tzinfo=UTC)
    daily = Cron("0 9 * * *", BERLIN)
    first = datetime(2027, 3, 28, 7, tzinfo=UTC)

    found = planned(daily, first_at=first, start=spring, end=spring + 3 * DAY)
    before = planned(daily, first_at=first - 2 * DAY + HOUR, start=first - 2 * DAY, end=spring)

    assert [entry.first_at.hour for entry in before] == [8, 8]
    assert [entry.first_at.hour for entry in found] == [7, 7, 7]


def test_many_times_of_a_day_are_folded_by_local_days() -> None:
    found = planned(Interval(HOUR, NOON), end=NOON + DAY)

    # Midnight in Berlin is at 23:00 UTC.
    assert found == [
        PlannedTimes(11, NOON, NOON + 10 * HOUR, HOUR),
        PlannedTimes(13, NOON + 11 * HOUR, NOON + 23 * HOUR, HOUR),
    ]
    few = planned(Interval(4 * HOUR, NOON), end=NOON + DAY)
    assert [entry.count for entry in few] == [1] * MAX_TIMES_A_DAY


def test_very_frequent_work_is_one_entry() -> None:
    end = NOON + 31 * DAY

    assert planned(Interval(SECOND, NOON)) == [
        PlannedTimes(31 * 86_400, NOON, end - SECOND, SECOND)
    ]
    often = Cron("*/5 * * * *", BERLIN)
    assert planned(often) == [
        PlannedTimes(MAX_TIMES + 1, NOON, end - 5 * MINUTE, 5 * MINUTE, or_more=True)
    ]


def test_a_first_time_that_is_no_slot_comes_before_the_slots() -> None:
    retry = NOON + MINUTE

    found = planned(Interval(DAY, NOON), first_at=retry, end=NOON + 2 * DAY)

    assert found == [one(retry), one(NOON + DAY)]


def test_one_time_work_is_there_once_if_it_is_in_the_period() -> None:
    once = Scheduled(NOON + DAY)

    assert planned(once, first_at=NOON + DAY) == [one(NOON + DAY)]
    assert planned(once, first_at=NOON + DAY, end=NOON + DAY) == []
    assert planned(once, first_at=NOON + DAY, start=NOON + 2 * DAY) == []
    assert planned(Immediate()) == [one(NOON)]
    assert planned(Event("file", {}), first_at=NOON - HOUR) == []


def test_work_that_may_run_a_few_times_more_ends_then() -> None:
    daily = Interval(DAY, NOON)

    assert len(planned(daily, left=3)) == 3
    assert planned(daily, left=3, start=NOON + 2 * DAY) == [one(NOON + 2 * DAY)]
    assert planned(daily, left=3, start=NOON + HOUR) == [one(NOON + DAY), one(NOON + 2 * DAY)]
    assert planned(daily, left=3, start=NOON + 5 * DAY) == []
    assert planned(daily, left=1, start=NOON + HOUR, end=NOON + 2 * HOUR) == []
    assert planned(Interval(MINUTE, NOON), left=500) == [
        PlannedTimes(500, NOON, NOON + 499 * MINUTE, MINUTE)
    ]
    assert planned(Interval(MINUTE, NOON), left=10**6)[0].count == 31 * 24 * 60


@given(
    every=st.integers(1, 40).map(lambda hours: hours * HOUR),
    begins=st.integers(-50, 50).map(lambda hours: hours * HOUR),
    days=st.integers(1, 31),
)
def test_no_time_is_lost_or_made_up(every: timedelta, begins: timedelta, days: int) -> None:
    start, end = NOON + begins, NOON + begins + days * DAY
    times = [NOON + number * every for number in range(2_000)]
    expected = [time for time in times if start <= time < end]

    found = planned(Interval(every, NOON), start=start, end=end)

    assert sum(entry.count for entry in found) == len(expected)
    assert [entry.first_at for entry in found] == sorted(entry.first_at for entry in found)
    if expected:
        assert (found[0].first_at, found[-1].last_at) == (expected[0], expected[-1])
