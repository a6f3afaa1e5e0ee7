"""Schedules in short phrases: what a user would say, and what the parser reads back as the same."""

from datetime import UTC, datetime, timedelta

import pytest
from support.stage.make import NOON, OTHER

from backburner.core.schedule import After, CatchUp, Cron, Event, Interval, Schedule, Scheduled
from backburner.core.schedule.phrases import parse_schedule
from backburner.core.schedule.short_phrases import to_input, to_phrase

BERLIN = "Europe/Berlin"


@pytest.mark.parametrize(
    ("typed", "phrase"),
    [
        ("every weekday at 8", "weekdays at 8:00"),
        ("daily at 9:30 and 17:30", "every day at 9:30 and 17:30"),
        ("weekends at noon", "weekends at 12:00"),
        ("every sunday at 10", "sundays at 10:00"),
        (
            "mon, wed and fri at 8, 12, 17",
            "mondays, wednesdays and fridays at 8:00, 12:00 and 17:00",
        ),
        ("monthly on the 1st at 9", "every month on the 1st at 9:00"),
        ("monthly on the 22nd at 9", "every month on the 22nd at 9:00"),
        ("monthly on the 12th at 9", "every month on the 12th at 9:00"),
        ("every month on the last day at 0:05", "every month on the last day at 0:05"),
        ("every 30m", "every 30 minutes"),
        ("every hour", "every hour"),
        ("every 90 minutes", "every 1 hour 30 minutes"),
    ],
)
def test_what_repeats_is_said_shortly_and_read_back(typed: str, phrase: str) -> None:
    schedule = parse_schedule(typed, zone=BERLIN, now=NOON)

    assert to_phrase(schedule) == phrase
    assert to_input(schedule, zone=BERLIN, now=NOON) == phrase


@pytest.mark.parametrize(
    "expression",
    ["*/10 * * * *", "0 9-17 * * 1-5", "0 0 1 1 *", "0 8 1 * 1", "0 8 2-3 * *", "0 8 * * 1#2"],
)
def test_other_expressions_are_typed_as_they_are(expression: str) -> None:
    schedule = Cron(expression, BERLIN)

    assert to_phrase(schedule) is None
    assert to_input(schedule, zone=BERLIN, now=NOON) == expression


def test_a_phrase_that_would_be_written_otherwise_is_typed_as_an_expression() -> None:
    schedule = Cron("0 8 * * 0,1", BERLIN)

    assert to_phrase(schedule) == "sundays and mondays at 8:00"
    assert to_input(schedule, zone=BERLIN, now=NOON) == "0 8 * * 0,1"


@pytest.mark.parametrize(
    "typed", ["2027-01-31 at 09:00", "2026-10-25T02:30:00+01:00", "2026-12-01T10:00:05+01:00"]
)
def test_a_single_time_is_typed_with_its_date(typed: str) -> None:
    before = datetime(2026, 10, 1, tzinfo=UTC)
    schedule = parse_schedule(typed, zone=BERLIN, now=before)

    assert to_phrase(schedule) is None
    # A local time that occurs twice needs its offset, and one within a minute its seconds.
    assert to_input(schedule, zone=BERLIN, now=before) == typed
    assert to_input(parse_schedule("now", zone=BERLIN, now=NOON), zone=BERLIN, now=NOON) == "now"


@pytest.mark.parametrize(
    "schedule",
    [
        Cron("0 8 * * 1-5", "Asia/Tokyo"),
        Scheduled(NOON - timedelta(days=1)),
        Event("file", {}),
        After(OTHER),
    ],
)
def test_what_cannot_be_typed_has_no_words(schedule: Schedule) -> None:
    assert to_input(schedule, zone=BERLIN, now=NOON) is None


def test_what_is_missed_and_where_it_began_do_not_matter() -> None:
    skipping = Cron("0 8 * * 1-5", BERLIN, CatchUp.SKIP)
    begun = Interval(timedelta(hours=2), NOON - timedelta(days=9), CatchUp.SKIP)

    assert to_input(skipping, zone=BERLIN, now=NOON) == "weekdays at 8:00"
    assert to_input(begun, zone=BERLIN, now=NOON) == "every 2 hours"
