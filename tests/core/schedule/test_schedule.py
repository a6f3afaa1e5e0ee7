"""The kinds of schedule: first and next times, missed slots, and invalid schedules."""

from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice, takewhile
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement

from backburner.core.errors import BadSchedule
from backburner.core.ids import ConversationId
from backburner.core.schedule import (
    MAX_COUNTED_SLOTS,
    MAX_SCHEDULE_AHEAD,
    MAX_SLOT_DELAY,
    After,
    CatchUp,
    Cron,
    Due,
    Event,
    Gap,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
    check_event_source,
    check_frequency,
    check_schedule,
    cron,
    due,
    first_run_at,
    gap,
    is_recurring,
    next_run_at,
    slots,
    upcoming,
)

NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OTHER = ConversationId("c_other")
DAILY = Cron("0 9 * * *", "Europe/Berlin")
HALF_HOURLY = Interval(30 * MINUTE, NOW)
CRONS = ("* * * * *", "*/7 * * * *", "0 */3 * * *", "30 2 * * *", "0 9 * * 1-5", "0 0 1 * *")

moments = st.datetimes(datetime(2025, 1, 1), datetime(2028, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
waits = st.timedeltas(timedelta(), 5 * DAY)
catch_ups = st.sampled_from(CatchUp)
crons = st.builds(Cron, st.sampled_from(CRONS), st.just("Europe/Berlin"), catch_ups)
intervals = st.builds(Interval, st.timedeltas(10 * MINUTE, 2 * DAY), moments, catch_ups)
recurring = st.one_of(crons, intervals)


def passed(schedule: Schedule, after: datetime, until: datetime) -> list[datetime]:
    return list(takewhile(lambda slot: slot <= until, slots(schedule, after=after)))


def test_immediate_work_is_due_at_once_and_never_again() -> None:
    assert first_run_at(Immediate(), now=NOW) == NOW
    assert next_run_at(Immediate(), after=NOW) is None


@requirement("A-once")
def test_scheduled_work_is_due_at_its_time_and_never_again() -> None:
    schedule = Scheduled(NOW + HOUR)

    assert first_run_at(schedule, now=NOW) == NOW + HOUR
    assert next_run_at(schedule, after=NOW) == NOW + HOUR
    assert next_run_at(schedule, after=NOW + HOUR) is None


@requirement("A-once")
def test_scheduled_work_whose_time_went_by_is_due_at_once() -> None:
    assert first_run_at(Scheduled(NOW - DAY), now=NOW) == NOW


@requirement("A-cron")
def test_cron_work_is_due_by_the_clock_of_its_zone() -> None:
    assert first_run_at(DAILY, now=NOW) == datetime(2026, 11, 16, 8, tzinfo=UTC)
    assert first_run_at(Cron("0 9 * * *", "Asia/Tokyo"), now=NOW) == NOW + 15 * HOUR


@requirement("A-cron")
def test_a_slot_that_is_just_now_is_not_the_next_one() -> None:
    eight = datetime(2026, 11, 16, 8, tzinfo=UTC)

    assert next_run_at(DAILY, after=eight - SECOND) == eight
    assert next_run_at(DAILY, after=eight) == eight + DAY


@requirement("A-cron")
def test_a_fixed_time_comes_once_on_the_days_when_clocks_change() -> None:
    night = Cron("30 2 * * *", "Europe/Berlin")
    skipped = datetime(2026, 3, 29, 1, tzinfo=UTC)
    doubled = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)

    assert passed(night, skipped - 2 * HOUR, skipped + 2 * HOUR) == [skipped]
    assert passed(night, doubled - HOUR, doubled + 2 * HOUR) == [doubled]
    assert next_run_at(night, after=doubled + 50 * MINUTE) == doubled + 25 * HOUR


@requirement("A-cron")
def test_a_starred_hour_goes_by_elapsed_time_also_where_clocks_change_by_half_of_one() -> None:
    hourly = Cron("0 * * * *", "Australia/Lord_Howe")
    change = datetime(2026, 10, 3, 15, 30, tzinfo=UTC)

    assert passed(hourly, change - 2 * HOUR, change + HOUR) == [
        change - HOUR,
        change + 30 * MINUTE,
    ]
    assert passed(Cron("*/30 2 25 10 *", "Europe/Berlin"), NOW - 320 * DAY, NOW) == [
        datetime(2026, 10, 25, 0, tzinfo=UTC) + half * 30 * MINUTE for half in range(4)
    ]


def test_an_expression_that_never_comes_has_no_slots() -> None:
    assert next_run_at(Cron("0 0 */31 * 1#2", "UTC"), after=NOW) is None
    assert next_run_at(Cron("* 0 */31 * 1#2", "UTC"), after=NOW) is None


@requirement("B-kinds")
def test_an_interval_is_due_at_once_and_then_by_elapsed_time() -> None:
    assert passed(HALF_HOURLY, NOW - SECOND, NOW + HOUR) == [NOW, NOW + 30 * MINUTE, NOW + HOUR]
    assert first_run_at(HALF_HOURLY, now=NOW) == NOW
    assert next_run_at(HALF_HOURLY, after=NOW) == NOW + 30 * MINUTE
    assert next_run_at(HALF_HOURLY, after=NOW + 31 * MINUTE) == NOW + HOUR


def test_an_interval_that_starts_again_keeps_its_anchor() -> None:
    assert first_run_at(HALF_HOURLY, now=NOW + 70 * MINUTE) == NOW + 90 * MINUTE


def test_an_interval_with_a_later_anchor_waits_for_it() -> None:
    schedule = Interval(HOUR, NOW + DAY)

    assert first_run_at(schedule, now=NOW) == NOW + DAY
    assert next_run_at(schedule, after=NOW) == NOW + DAY


@requirement("B-kinds")
@pytest.mark.parametrize("schedule", [Event("file", {}), After(OTHER)])
def test_work_that_waits_for_something_has_no_time(schedule: Schedule) -> None:
    assert first_run_at(schedule, now=NOW) is None
    assert next_run_at(schedule, after=NOW) is None
    assert upcoming(schedule, now=NOW) == ()


@requirement("B-kinds")
@pytest.mark.parametrize("schedule", [DAILY, HALF_HOURLY, Event("file", {}), After(OTHER)])
def test_recurring_kinds_of_schedule_recur(schedule: Schedule) -> None:
    assert is_recurring(schedule)


@requirement("B-kinds")
@pytest.mark.parametrize("schedule", [Immediate(), Scheduled(NOW), After(OTHER, once=True)])
def test_one_time_kinds_of_schedule_do_not_recur(schedule: Schedule) -> None:
    assert not is_recurring(schedule)


@given(every=st.timedeltas(SECOND, 2 * DAY), anchor=moments, after=moments)
def test_interval_slots_are_whole_steps_from_the_anchor(
    every: timedelta, anchor: datetime, after: datetime
) -> None:
    first, second = islice(slots(Interval(every, anchor), after=after), 2)

    assert first > after
    assert first >= anchor
    assert first == anchor or first - every <= after
    assert (first - anchor) % every == timedelta()
    assert second == first + every


@given(every=st.integers(1, 90), anchor=st.integers(0, 300), after=st.integers(0, 300), size=waits)
def test_an_interval_gap_is_that_of_brute_force(
    every: int, anchor: int, after: int, size: timedelta
) -> None:
    schedule = Interval(every * MINUTE, NOW + anchor * MINUTE)
    begin, end = NOW + after * MINUTE, NOW + after * MINUTE + size
    tried = [schedule.anchor + step * schedule.every for step in range(8000)]
    inside = [slot for slot in tried if begin < slot <= end]

    found = gap(schedule, after=begin, until=end)
    assert found == (Gap(len(inside), inside[0], inside[-1]) if inside else None)


@given(schedule=recurring, after=moments, size=waits)
def test_a_gap_tells_how_many_slots_went_by(
    schedule: Cron | Interval, after: datetime, size: timedelta
) -> None:
    inside = passed(schedule, after, after + size)
    found = gap(schedule, after=after, until=after + size)

    if not inside:
        assert found is None
    else:
        assert found is not None
        assert (found.first_at, found.last_at) == (inside[0], inside[-1])
        assert found.or_more == (len(inside) > MAX_COUNTED_SLOTS and isinstance(schedule, Cron))
        assert found.count == (MAX_COUNTED_SLOTS if found.or_more else len(inside))


def test_a_scheduled_time_that_went_by_is_a_gap_of_one() -> None:
    assert gap(Scheduled(NOW), after=NOW - HOUR, until=NOW) == Gap(1, NOW, NOW)
    assert gap(Scheduled(NOW), after=NOW, until=NOW + HOUR) is None


@requirement("A-cron")
@given(schedule=recurring, settled=moments, size=waits)
def test_every_due_slot_is_either_run_for_or_missed(
    schedule: Cron | Interval, settled: datetime, size: timedelta
) -> None:
    inside, now = passed(schedule, settled, settled + size), settled + size
    found = due(schedule, next_run_at=settled + SECOND, settled_until=settled, now=now)

    late = bool(inside) and now - inside[-1] > MAX_SLOT_DELAY
    assert found.runs is not (schedule.catch_up is CatchUp.SKIP and late)
    assert found.slot_at == (inside[-1] if inside and found.runs else None)
    missed = inside[:-1] if found.runs else inside
    whole = Gap(len(missed), missed[0], missed[-1]) if missed else None
    if found.missed and found.missed.or_more:
        assert (found.missed.count, len(missed) >= MAX_COUNTED_SLOTS) == (MAX_COUNTED_SLOTS, True)
        assert (found.missed.first_at, found.missed.last_at) == (missed[0], missed[-1])
    else:
        assert found.missed == whole


def test_a_slot_in_time_is_run_for_and_nothing_was_missed() -> None:
    slot = datetime(2026, 11, 16, 8, tzinfo=UTC)

    found = due(DAILY, next_run_at=slot, settled_until=None, now=slot + SECOND)
    assert found == Due(runs=True, slot_at=slot, missed=None)


def test_catching_up_runs_once_for_all_that_was_missed() -> None:
    first = datetime(2026, 11, 16, 8, tzinfo=UTC)

    found = due(DAILY, next_run_at=first, settled_until=NOW, now=first + 3 * DAY + HOUR)
    missed = Gap(3, first, first + 2 * DAY)
    assert found == Due(runs=True, slot_at=first + 3 * DAY, missed=missed)


def test_skipping_runs_for_a_slot_that_is_only_a_little_late() -> None:
    schedule = Interval(HOUR, NOW, CatchUp.SKIP)

    found = due(schedule, next_run_at=NOW, settled_until=None, now=NOW + 2 * HOUR + MAX_SLOT_DELAY)
    missed = Gap(2, NOW, NOW + HOUR)
    assert found == Due(runs=True, slot_at=NOW + 2 * HOUR, missed=missed)


def test_skipping_does_not_run_for_a_slot_that_is_late() -> None:
    schedule = Interval(HOUR, NOW, CatchUp.SKIP)

    now = NOW + HOUR + MAX_SLOT_DELAY + SECOND
    found = due(schedule, next_run_at=NOW, settled_until=None, now=now)
    assert found == Due(runs=False, slot_at=None, missed=Gap(2, NOW, NOW + HOUR))


@pytest.mark.parametrize("schedule", [Immediate(), Event("file", {}), After(OTHER), DAILY])
def test_a_time_that_is_no_slot_is_always_run_for(schedule: Schedule) -> None:
    found = due(schedule, next_run_at=NOW, settled_until=NOW - HOUR, now=NOW)

    assert found == Due(runs=True, slot_at=None, missed=None)


@requirement("A-cron")
def test_every_minute_of_forty_days_is_sorted_out_within_a_second() -> None:
    schedule = Cron("* * * * *", "Europe/Berlin")

    begun = process_time()
    found = due(schedule, next_run_at=NOW, settled_until=NOW, now=NOW + 40 * DAY)
    took = process_time() - begun
    missed = Gap(MAX_COUNTED_SLOTS, NOW + MINUTE, NOW + 40 * DAY - MINUTE, or_more=True)
    assert found == Due(runs=True, slot_at=NOW + 40 * DAY, missed=missed)
    assert took < 1


def test_the_next_times_start_with_the_first() -> None:
    assert upcoming(Immediate(), now=NOW) == (NOW,)
    assert upcoming(Scheduled(NOW + HOUR), now=NOW) == (NOW + HOUR,)
    assert upcoming(HALF_HOURLY, now=NOW, count=2) == (NOW, NOW + 30 * MINUTE)
    assert upcoming(DAILY, now=NOW) == tuple(NOW + n * DAY - HOUR for n in (1, 2, 3))


@requirement("A-cron", "A-once", "B-kinds")
@pytest.mark.parametrize(
    "schedule",
    [
        Immediate(),
        Scheduled(NOW + SECOND),
        Scheduled(NOW + MAX_SCHEDULE_AHEAD),
        DAILY,
        Cron("0 9 1-7 * mon", "UTC"),
        Cron("0 0 29 2 *", "America/New_York"),
        Cron("0 18 L * *", "Australia/Lord_Howe"),
        HALF_HOURLY,
        Interval(SECOND, NOW - 40 * DAY),
        Event("file", {"path": "notes"}),
        After(OTHER),
    ],
)
def test_a_sound_schedule_is_accepted(schedule: Schedule) -> None:
    check_schedule(schedule, now=NOW)


EARLIEST, LATEST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
WEST, EAST = timezone(-12 * HOUR), timezone(14 * HOUR)


@pytest.mark.parametrize(
    ("schedule", "why"),
    [
        (Scheduled(NOW), "is in the past"),
        (Scheduled(NOW - SECOND), "is in the past"),
        (Scheduled(EARLIEST), "is in the past"),
        (Scheduled(EARLIEST.replace(tzinfo=EAST)), "is in the past"),
        (Scheduled(NOW.replace(tzinfo=None)), "has no time zone"),
        (Scheduled(NOW + MAX_SCHEDULE_AHEAD + SECOND), "more than ten years ahead"),
        (Scheduled(LATEST), "more than ten years ahead"),
        (Scheduled(LATEST.replace(tzinfo=WEST)), "more than ten years ahead"),
        (Interval(timedelta(), NOW), "at least one second"),
        (Interval(-HOUR, NOW), "at least one second"),
        (Interval(SECOND / 2, NOW), "at least one second"),
        (Interval(MAX_SCHEDULE_AHEAD + SECOND, NOW), "at most ten years"),
        (Interval(timedelta.max, NOW), "at most ten years"),
        (Interval(HOUR, NOW.replace(tzinfo=None)), "has no time zone"),
        (Interval(HOUR, LATEST.replace(tzinfo=WEST)), "more than ten years ahead"),
        (Event("", {}), "needs a source"),
        (Cron("0 9 * * *", "Europe/Atlantis"), "no time zone 'Europe/Atlantis'"),
        (Cron("0 9 * * *", "localtime"), "no time zone 'localtime'"),
        (Cron("0 9 * * *", "../etc/passwd"), "no time zone '../etc/passwd'"),
        (Cron("0 9 * * *", "europe/berlin"), "no time zone 'europe/berlin'"),
        (Cron("0 9 * * *", ""), "no time zone ''"),
        (Cron("", "UTC"), "is not a cron expression."),
        (Cron("0 9 * *", "UTC"), "is not a cron expression."),
        (Cron("0 0 9 * * *", "UTC"), "is not a cron expression."),
        (Cron("0 9 * * " + "1," * 100 + "1", "UTC"), "is not a cron expression."),
        (Cron("0 9 * * \N{LATIN SMALL LETTER LONG S}un", "UTC"), "is not a cron expression."),
        (Cron("60 9 * * *", "UTC"), "is not a cron expression: bad minute."),
        (Cron("0 9 0 * *", "UTC"), "is not a cron expression: bad day-of-month."),
        (Cron("0 9 * 13 *", "UTC"), "is not a cron expression: bad month."),
        (Cron("0 9 * * MON#1/2", "UTC"), "is not a cron expression: bad day-of-week."),
        (Cron("0 9 * * \0", "UTC"), "is not a cron expression: bad day-of-week."),
        (Cron("0 0 31 2 *", "UTC"), "is never due"),
        (Cron("0 0 31 4,6 *", "UTC"), "is never due"),
        (Cron("0 0 */31 * 1#2", "UTC"), "is never due"),
    ],
)
def test_an_unsound_schedule_is_refused_with_what_would_do(schedule: Schedule, why: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        check_schedule(schedule, now=NOW)

    assert why in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("name", ["localtime", "Factory"])
def test_zones_that_are_no_place_are_refused(name: str) -> None:
    # Read anew: another test may have asked for them before, unmeasured.
    cron._zone_names.cache_clear()

    with pytest.raises(BadSchedule, match=name):
        cron.find_zone(name)


parts = st.sampled_from(("*", "*/7", "*/31", "0", "1-5", "7", "29,31", "2", "L", "LW", "1#2", "5L"))
fields = st.one_of(parts, parts, st.text("0123456789*/,-#LW", min_size=1, max_size=6))


@given(st.one_of(st.text(max_size=40), st.lists(fields, min_size=5, max_size=5).map(" ".join)))
def test_every_accepted_cron_expression_has_a_description_and_a_next_slot(text: str) -> None:
    schedule = Cron(text, "Europe/Berlin")
    try:
        check_schedule(schedule, now=NOW)
    except BadSchedule:
        return

    assert cron.explain_cron(text)
    assert next_run_at(schedule, after=NOW) is not None


def test_day_numbers_in_words_end_as_they_are_spoken() -> None:
    words = cron.explain_cron("0 9 10,11,12,13,21,22,23,31 * *")

    assert "the 10th, the 11th, the 12th, the 13th, the 21st, the 22nd, the 23rd" in words
    assert "the 31st day" in words


@pytest.mark.parametrize(
    ("schedule", "is_refused"),
    [
        (Interval(timedelta(seconds=59), anchor=NOW), True),
        (Interval(timedelta(seconds=60), anchor=NOW), False),
        (Cron("* * * * *", "UTC"), False),
        (Immediate(), False),
    ],
)
def test_only_an_interval_can_be_too_short(schedule: Schedule, *, is_refused: bool) -> None:
    refusal: AbstractContextManager[object] = nullcontext()
    if is_refused:
        refusal = pytest.raises(BadSchedule, match="min_interval")

    with refusal:
        check_frequency(schedule, timedelta(minutes=1))


def test_work_waits_only_for_events_that_something_reports() -> None:
    event = Event("pigeon", {})
    check_event_source(DAILY)
    check_event_source(event, sources=("file", "pigeon"))

    with pytest.raises(BadSchedule, match="Events cannot start work yet"):
        check_event_source(event, sources=())
    with pytest.raises(BadSchedule, match="Nothing reports events of 'pigeon'") as refused:
        check_event_source(event, sources=("file", "github"))
    assert refused.value.hint == "Use one of: file, github."
