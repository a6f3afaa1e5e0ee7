"""Phrases to schedules and back: which are understood, refused, and how schedules are described."""

import re
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given
from hypothesis import strategies as st
from support.requirements import requirement

from backburner.core.errors import BadSchedule
from backburner.core.ids import ConversationId
from backburner.core.schedule import (
    After,
    AfterCondition,
    Cron,
    Event,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
    first_run_at,
    slots,
    upcoming,
)
from backburner.core.schedule.describe import describe, describe_times, join_times
from backburner.core.schedule.phrases import parse_duration, parse_schedule

BERLIN = "Europe/Berlin"
#: A Sunday, 10:00 in Berlin.
NOW = datetime(2026, 11, 15, 9, tzinfo=UTC)
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OTHER = ConversationId("c_other")


def parse(text: str, *, zone: str = BERLIN, now: datetime = NOW) -> Schedule:
    return parse_schedule(text, zone=zone, now=now)


def utc(*parts: int) -> Scheduled:
    return Scheduled(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type, misc]


ONCE: dict[str, Schedule] = {
    "in 2h": Scheduled(NOW + 2 * HOUR),
    "in 20 seconds": Scheduled(NOW + 20 * SECOND),
    "in an hour": Scheduled(NOW + HOUR),
    "in a minute": Scheduled(NOW + MINUTE),
    "in 1 hour 30 minutes": Scheduled(NOW + 90 * MINUTE),
    "in 3d": Scheduled(NOW + 3 * DAY),
    "tomorrow at 9": utc(2026, 11, 16, 8),
    "tomorrow 9am": utc(2026, 11, 16, 8),
    "tomorrow noon": utc(2026, 11, 16, 11),
    "today at 17:00": utc(2026, 11, 15, 16),
    "today at 5:30 p.m.": utc(2026, 11, 15, 16, 30),
    "day after tomorrow at noon": utc(2026, 11, 17, 11),
    "the day after tomorrow at 0:15": utc(2026, 11, 16, 23, 15),
    "at 17:00": utc(2026, 11, 15, 16),
    "at 10:01": utc(2026, 11, 15, 9, 1),
    "at 10:00": utc(2026, 11, 16, 9),
    "at 9": utc(2026, 11, 16, 8),
    "at 12am": utc(2026, 11, 15, 23),
    "at 12pm": utc(2026, 11, 15, 11),
    "at midnight": utc(2026, 11, 15, 23),
    "2026-12-01 at 09:00": utc(2026, 12, 1, 8),
    "on 2027-07-01 at 9pm": utc(2027, 7, 1, 19),
    "2026-12-01T09:00:00+01:00": utc(2026, 12, 1, 8),
    "2026-12-01T09:00:00Z": utc(2026, 12, 1, 9),
    "2026-12-01 09:00-0530": utc(2026, 12, 1, 14, 30),
    "2026-12-01t09:00:00.5z": utc(2026, 12, 1, 9, 0, 0, 500_000),
    "2036-11-20T09:00Z": utc(2036, 11, 20, 9),
}
INTERVALS = {
    "every 30m": 30 * MINUTE,
    "every 2h": 2 * HOUR,
    "every 1d": DAY,
    "every 1w": 7 * DAY,
    "every 10 seconds": 10 * SECOND,
    "every second": SECOND,
    "every minute": MINUTE,
    "every hour": HOUR,
    "every 2 hours": 2 * HOUR,
    "every 2 days": 2 * DAY,
    "every 1.5h": 90 * MINUTE,
    "every 1 hour and 30 minutes": 90 * MINUTE,
    "hourly": HOUR,
}
CRONS = {
    "every day at 9": "0 9 * * *",
    "every day at 9am": "0 9 * * *",
    "every day 9:30": "30 9 * * *",
    "every day at midnight": "0 0 * * *",
    "every day at 12am": "0 0 * * *",
    "every day at 12:30pm": "30 12 * * *",
    "every day at noon": "0 12 * * *",
    "every day at 9 and 17": "0 9,17 * * *",
    "every day at 17:30, 9:30 and 9:30": "30 9,17 * * *",
    "every day at 8am and 8pm": "0 8,20 * * *",
    "every day at noon and midnight": "0 0,12 * * *",
    "every day at 9 and noon": "0 9,12 * * *",
    "daily at 9:30": "30 9 * * *",
    "every weekday at 9": "0 9 * * 1-5",
    "weekdays at 8:30am": "30 8 * * 1-5",
    "on weekdays at 7": "0 7 * * 1-5",
    "monday to friday at 9": "0 9 * * 1-5",
    "every mon-fri at 9": "0 9 * * 1-5",
    "weekends at 10": "0 10 * * 6,0",
    "every monday at 9am": "0 9 * * 1",
    "every sun at 9": "0 9 * * 0",
    "mondays at 9": "0 9 * * 1",
    "on tuesdays and thursdays at 7": "0 7 * * 2,4",
    "mon and thu at 8:30am": "30 8 * * 1,4",
    "every mon, wed and fri at 17:00": "0 17 * * 1,3,5",
    "fri, mon, and wed at 17:00": "0 17 * * 1,3,5",
    "tues,thurs at 6 pm": "0 18 * * 2,4",
    "weekly on wednesday at 9": "0 9 * * 3",
    "every month on the 1st at 9": "0 9 1 * *",
    "monthly on the 15th at 9:00": "0 9 15 * *",
    "on the 2nd of every month at 9": "0 9 2 * *",
    "on the last day of every month at 18:00": "0 18 L * *",
    "every month on the last day at 18:00": "0 18 L * *",
    "0 9 * * 1-5": "0 9 * * 1-5",
    "*/15   9-17 * * mon-fri": "*/15 9-17 * * MON-FRI",
    "0 9 l * *": "0 9 L * *",
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@pytest.mark.parametrize("text", ["now", "at once", "immediately", "  At   ONCE. ", "Now."])
def test_at_once_is_understood(text: str) -> None:
    assert parse(text) == Immediate()


@requirement("A-once")
@pytest.mark.parametrize(("text", "expected"), ONCE.items())
def test_a_single_time_is_understood(text: str, expected: Schedule) -> None:
    assert parse(text) == expected


@requirement("B-kinds")
@pytest.mark.parametrize(("text", "every"), INTERVALS.items())
def test_an_interval_is_understood_and_starts_now(text: str, every: timedelta) -> None:
    assert parse(text) == Interval(every, NOW)


@requirement("A-cron", "B-kinds")
@pytest.mark.parametrize(("text", "expression"), CRONS.items())
def test_times_by_the_clock_are_understood(text: str, expression: str) -> None:
    assert parse(text) == Cron(expression, BERLIN)


@pytest.mark.parametrize(
    "text",
    [
        "every 2 days at 9",
        "every 0m",
        "in -2h",
        "at 25:00",
        "every monday",
        "whenever",
        "next week",
    ],
)
def test_the_examples_of_a_hint_can_be_typed(text: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse(text)

    examples = re.findall(r"`([^`]+)`", refused.value.hint)
    assert [parse(example) is not None for example in examples] == [True] * len(examples)
    assert examples


@pytest.mark.parametrize("text", [*ONCE, *INTERVALS, *CRONS])
def test_capitals_spaces_and_a_full_stop_change_nothing(text: str) -> None:
    assert parse(f"\t {text.upper().replace(' ', '  ')} .\n") == parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a schedule"),
        (" . ", "is not a schedule"),
        ("2", "could mean several things"),
        ("-2", "could mean several things"),
        ("17:00", "could mean several things"),
        ("9am", "could mean several things"),
        ("30 minutes", "could mean several things"),
        ("every 5x", "is not a duration"),
        ("every 5", "is not a duration"),
        ("every 2 days at 9", "is not a duration"),
        ("every 0m", "is zero"),
        ("every -5m", "is not a duration"),
        ("every 500ms", "is not a duration"),
        ("every 0.5s", "at least one second"),
        ("every 999999 weeks", "more than ten years"),
        ("in 11w 9999d", "more than ten years"),
        ("in 0 minutes", "is zero"),
        ("in -2h", "is not a duration"),
        ("in", "is not a schedule"),
        ("in the morning", "is not a schedule"),
        ("every", "is not a schedule"),
        ("every weekend at 10", "is not a schedule"),
        ("every day 9", "is not a schedule"),
        ("on the 1st at 9", "is not a schedule"),
        ("whenever", "is not a schedule"),
        ("every other day", "can be counted in two ways"),
        ("every second day at 9", "can be counted in two ways"),
        ("every day", "lacks a time of day"),
        ("daily", "lacks a time of day"),
        ("weekdays", "lacks a time of day"),
        ("every week", "lacks a time of day"),
        ("every monday", "lacks a time of day"),
        ("on mondays", "lacks a time of day"),
        ("tomorrow", "lacks a time of day"),
        ("day after tomorrow", "lacks a time of day"),
        ("2026-12-01", "lacks a time of day"),
        ("friday at 9", "could mean more than one day"),
        ("on fri at 9", "could mean more than one day"),
        ("tues at 9", "could mean more than one day"),
        ("next monday at 9", "could mean more than one day"),
        ("this friday", "could mean more than one day"),
        ("next week", "is not exact"),
        ("tonight at 8", "is not exact"),
        ("tomorrow at midnight", "either end of a day"),
        ("every monday at midnight", "either end of a day"),
        ("2026-12-01 at midnight", "either end of a day"),
        ("at 13pm", "is not a time of day"),
        ("at 0am", "is not a time of day"),
        ("at 25:00", "is not a time of day"),
        ("at 24:00", "is not a time of day"),
        ("at 9:60", "is not a time of day"),
        ("at 9.30", "is not a time of day"),
        ("at 9 and 17", "is not a time of day"),
        ("at 9 UTC", "is not a time of day"),
        ("every day at 9,", "is not a time of day"),
        ("every day at 8 and 9pm", "am or pm for some times only"),
        ("every day at 9:00 and 17:30", "is more than one schedule"),
        ("every month on the 31st at 9", "Not every month has a day 31"),
        ("every month on the 0th at 9", "Not every month has a day 0"),
        ("today at 9", "is in the past"),
        ("2025-12-01 at 09:00", "is in the past"),
        ("2026-11-15T09:00:00Z", "is in the past"),
        ("2026-02-30 at 9", "There is no day 2026-02-30"),
        ("2026-13-01T09:00Z", "There is no day 2026-13-01"),
        ("2040-01-01T09:00Z", "more than ten years ahead"),
        ("9999-12-31T23:59:59-01:00", "is too far away"),
        ("0001-01-01 at 00:00", "is too far away"),
        ("2026-12-01T09:00", "with an offset"),
        ("2026-12-01 09:00", "with an offset"),
        ("2026-12-01T24:00Z", "with an offset"),
        ("2026-12-01T09:00+25:00", "with an offset"),
        ("2027-03-28 at 02:30", "does not exist"),
        ("2027-10-31 at 02:30", "occurs twice"),
        ("0 0 31 2 *", "is never due"),
        ("* * * *", "is not a cron expression"),
        ("60 * * * *", "is not a cron expression"),
        ("0 0 9 * * 1", "is not a cron expression"),
        ("@reboot", "There is no '@reboot'"),
        ("every day at 9 " * 20, "at most 200 characters"),
        ("every \N{FULLWIDTH DIGIT FIVE}m", "characters that are not allowed"),
        ("every 5m\0", "characters that are not allowed"),
        ("0 9 * * \N{LATIN SMALL LETTER LONG S}un", "characters that are not allowed"),
    ],
)
def test_an_ambiguous_or_unknown_phrase_is_refused_with_a_hint(text: str, why: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse(text)

    assert why in refused.value.message
    assert refused.value.hint


def test_a_skipped_time_is_refused_with_the_one_after_it() -> None:
    with pytest.raises(BadSchedule) as refused:
        parse("2027-03-28 at 02:30")

    assert refused.value.hint == "Use `2027-03-28 at 03:30`."


def test_a_doubled_time_is_refused_with_both_of_its_moments() -> None:
    with pytest.raises(BadSchedule) as refused:
        parse("2027-10-31 at 02:30")

    first, second = "2027-10-31T02:30:00+02:00", "2027-10-31T02:30:00+01:00"
    assert refused.value.hint == f"Use `{first}` or `{second}`."


def test_the_next_time_of_day_is_not_one_of_two_that_are_both_over() -> None:
    after_both = datetime(2027, 10, 31, 2, tzinfo=UTC)

    assert parse("at 02:30", now=after_both) == utc(2027, 11, 1, 1, 30)


def test_the_next_time_of_day_is_refused_while_its_second_is_to_come() -> None:
    between = datetime(2027, 10, 31, 0, 45, tzinfo=UTC)

    with pytest.raises(BadSchedule, match="occurs twice"):
        parse("at 02:30", now=between)


def test_today_is_the_day_it_is_for_the_user() -> None:
    assert parse("today at 23:00", zone="Pacific/Auckland") == utc(2026, 11, 15, 10)
    assert parse("tomorrow at 9", zone="Pacific/Kiritimati") == utc(2026, 11, 15, 19)


def test_an_unknown_zone_is_refused_even_where_none_is_needed() -> None:
    with pytest.raises(BadSchedule, match="no time zone"):
        parse("every 30m", zone="Europe/Atlantis")


@requirement("B-kinds")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("30m", 30 * MINUTE),
        ("2h", 2 * HOUR),
        ("1d", DAY),
        ("1w", 7 * DAY),
        ("90 seconds", 90 * SECOND),
        ("1h30m", 90 * MINUTE),
        ("2 hours 30 minutes", 150 * MINUTE),
        ("2 hours, 30 minutes and 5 secs", 150 * MINUTE + 5 * SECOND),
        ("1.5h", 90 * MINUTE),
        ("0.1 min", 6 * SECOND),
        (" 1 DAY. ", DAY),
    ],
)
def test_a_duration_is_understood(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        *("", "5", "5x", "0m", "0h 0m", "-5m", "500ms", "30m 1h", "1h1h", "1h 30", ".5h", "1,5h"),
        *("1h,", ", 1h", "an hour", "1e3s", "1mo", "PT30M", "600w", "9" * 300 + "s"),
        "\N{ARABIC-INDIC DIGIT FIVE}m",
    ],
)
def test_a_malformed_duration_is_refused(text: str) -> None:
    with pytest.raises(BadSchedule) as refused:
        parse_duration(text)

    assert refused.value.hint


words = st.sampled_from(
    [
        *("every", "other", "next", "day", "week", "month", "monthly", "last", "of", "on", "the"),
        *("at", "in", "and", ",", ".", "-", "a", "now", "noon", "midnight", "today", "tomorrow"),
        *("mon", "friday", "mondays", "weekdays", "1st", "31st", "2", "hours", "30m", "minute"),
        *("9", "9am", "17:00", "02:30", "2026-12-01", "2027-03-28", "2026-12-01T09:00Z"),
        *("*", "*/5", "0", "1-5", "@daily"),
    ]
)
phrases = st.one_of(
    st.text(max_size=40),
    st.text("0123456789:*/,-@ amphdTZ.", max_size=30),
    st.lists(words, max_size=8).map(" ".join),
    st.sampled_from([*ONCE, *INTERVALS, *CRONS]),
)
zones = st.one_of(st.sampled_from([BERLIN, "Australia/Lord_Howe", "Etc/GMT+12"]), st.text())
moments = st.datetimes(datetime(2025, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


@given(phrases, zones, moments)
def test_any_text_is_refused_or_due_from_now_on_and_can_be_told(
    text: str, zone: str, now: datetime
) -> None:
    try:
        schedule = parse(text, zone=zone, now=now)
    except BadSchedule as refused:
        assert refused.hint  # noqa: PT017
        return

    first = first_run_at(schedule, now=now)
    assert first is not None
    assert first >= now
    assert describe(schedule, zone=zone)
    assert describe_times(upcoming(schedule, now=now), zone=zone)


@requirement("A-cron")
@given(
    days=st.sets(st.sampled_from(["mon", "tue", "wed", "thu", "fri", "sat", "sun"]), min_size=1),
    hours=st.sets(st.integers(0, 23), min_size=1, max_size=4),
    minute=st.integers(0, 59),
    now=moments,
)
def test_days_and_times_are_those_of_the_calendar_and_of_cronsim(
    days: set[str], hours: set[int], minute: int, now: datetime
) -> None:
    times = " and ".join(f"{hour}:{minute:02}" for hour in hours)
    schedule = parse(f"every {', '.join(days)} at {times}", zone="Asia/Tokyo", now=now)

    assert isinstance(schedule, Cron)
    local = now.astimezone(ZoneInfo("Asia/Tokyo"))
    found = [slot.astimezone(local.tzinfo) for slot in islice(slots(schedule, after=now), 30)]
    assert {f"{slot:%a}".lower() for slot in found} <= days
    assert {slot.hour for slot in found} <= hours
    assert {slot.minute for slot in found} == {minute}
    assert (found[-1] - found[0]) <= timedelta(weeks=-(-30 // (len(days) * len(hours))))
    assert found == list(islice(CronSim(schedule.expression, local), 30))


@pytest.mark.parametrize("expression", CRONS.values())
def test_an_understood_schedule_has_the_slots_of_cronsim(expression: str) -> None:
    local = NOW.astimezone(ZoneInfo(BERLIN))

    found = list(islice(slots(Cron(expression, BERLIN), after=NOW), 40))
    assert found == list(islice(CronSim(expression, local), 40))


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (Immediate(), "immediately"),
        (utc(2026, 12, 1, 8), "once, on Tuesday 1 December 2026 at 09:00 (Europe/Berlin)"),
        (utc(2027, 7, 3, 22, 0, 20), "once, on Sunday 4 July 2027 at 00:00:20 (Europe/Berlin)"),
        (Cron("0 9 * * 1-5", BERLIN), "at 09:00 on Monday through Friday (Europe/Berlin)"),
        (Cron("0 9 * * 6,0", "UTC"), "at 09:00 on Saturday and Sunday (UTC)"),
        (Cron("0 9 21 * *", BERLIN), "at 09:00 on the 21st day of every month (Europe/Berlin)"),
        (Interval(30 * MINUTE, NOW), "every 30 minutes"),
        (Interval(SECOND, NOW), "every second"),
        (Interval(HOUR, NOW), "every hour"),
        (Interval(DAY, NOW), "every 24 hours"),
        (Interval(14 * DAY, NOW), "every 14 days"),
        (Interval(25 * HOUR + MINUTE, NOW), "every 1 day 1 hour 1 minute"),
        (Interval(1.5 * SECOND, NOW), "every 1.5 seconds"),
        (Event("file", {}), "whenever file reports an event"),
        (After(OTHER), "after another conversation completes"),
        (After(OTHER, AfterCondition.ANY), "after another conversation ends, with any result"),
        (After(OTHER, once=True), "once, after another conversation completes"),
    ],
)
def test_a_schedule_is_told_in_one_phrase(schedule: Schedule, expected: str) -> None:
    assert describe(schedule, zone=BERLIN) == expected


@given(st.timedeltas(SECOND, 3660 * DAY))
def test_an_interval_is_understood_again_as_it_was_told(every: timedelta) -> None:
    schedule = Interval(every, NOW)

    assert parse(describe(schedule, zone=BERLIN)) == schedule


def test_times_are_told_in_the_zone_of_the_user() -> None:
    times = [datetime(2026, 11, 16, 8, tzinfo=UTC), datetime(2027, 6, 1, 22, 30, 5, tzinfo=UTC)]

    assert describe_times(times, zone=BERLIN) == (
        "Mon 16 Nov 2026, 09:00 CET",
        "Wed 2 Jun 2027, 00:30:05 CEST",
    )


def test_next_times_are_told_with_their_zone_where_they_do_not_say_it() -> None:
    times = (datetime(2026, 11, 16, 8, tzinfo=UTC), datetime(2026, 11, 17, 8, tzinfo=UTC))

    assert join_times(times, zone=BERLIN) == (
        "Mon 16 Nov 2026, 09:00 CET, then Tue 17 Nov 2026, 09:00 CET (Europe/Berlin)"
    )
    assert join_times(times[:1], zone="UTC") == "Mon 16 Nov 2026, 08:00 UTC"
