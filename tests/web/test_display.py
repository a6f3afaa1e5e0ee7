"""Times, durations, money and numbers as people say them."""

from datetime import UTC, datetime, timedelta

import pytest

from backburner.web.display import (
    Display,
    format_count,
    format_duration,
    format_money,
    format_size,
)

NBSP = "\N{NO-BREAK SPACE}"
#: A Tuesday; it is 8:48 in Berlin.
NOW = datetime(2026, 11, 17, 7, 48, tzinfo=UTC)
BERLIN = Display(NOW, "Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-17T08:00", "today 9:00"),
        ("2026-11-17T23:30", "tomorrow 0:30"),
        ("2026-11-16T07:00", "yesterday 8:00"),
        ("2026-11-23T07:00", "Mon 23 Nov, 8:00"),
        ("2027-01-04T07:00", "Mon 4 Jan 2027, 8:00"),
    ],
)
def test_a_moment_is_named_in_the_zone_of_its_user(moment: str, words: str) -> None:
    assert BERLIN.moment(at(moment)) == words.replace(" Nov", f"{NBSP}Nov").replace(
        " Jan 2027", f"{NBSP}Jan{NBSP}2027"
    ).replace("Mon ", f"Mon{NBSP}")


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("2026-11-17T07:47:30", "now"),
        ("2026-11-17T06:31", "7:31"),
        ("2026-11-16T06:31", "Mon"),
        ("2026-11-11T06:31", "Wed"),
        ("2026-11-04T06:31", "4 Nov"),
        ("2025-11-04T06:31", "Nov 2025"),
    ],
)
def test_a_past_time_takes_a_few_letters(moment: str, words: str) -> None:
    assert BERLIN.short(at(moment)) == words.replace(" ", NBSP)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (0.5, "in a moment"),
        (12, "in 12 min"),
        (59.9, "in 59 min"),
        (60 * 4, "in 4 h"),
        (60 * 11, "in 11 h"),
        (60 * 30, "tomorrow"),
        (60 * 24 * 6, "in 6 days"),
    ],
)
def test_what_is_left_is_said_in_the_largest_unit_that_matters(minutes: float, words: str) -> None:
    said = BERLIN.until(NOW + timedelta(minutes=minutes))
    assert said == (words if "moment" in words else words.replace(" ", NBSP))


def test_beside_its_name_tomorrow_is_said_in_hours() -> None:
    hours = [BERLIN.distance(NOW + timedelta(hours=hours)) for hours in (4, 30, 150)]
    assert hours == [f"in{NBSP}4{NBSP}h", f"in{NBSP}30{NBSP}h", f"in{NBSP}6{NBSP}days"]


def test_what_has_waited_is_never_nothing() -> None:
    assert BERLIN.since(NOW + timedelta(seconds=5)) == f"1{NBSP}min"
    assert BERLIN.since(NOW - timedelta(minutes=17)) == f"17{NBSP}min"
    assert BERLIN.since(NOW - timedelta(hours=30)) == f"1{NBSP}day"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.0 s"),
        (0.04, "under 0.1 s"),
        (0.84, "0.8 s"),
        (42, "42 s"),
        (108, "1 min 48 s"),
        (120, "2 min"),
        (9.97, "10 s"),
        (59.7, "1 min"),
        (11100, "3 h 5 min"),
        (3_000_000, "35 days"),
    ],
)
def test_a_number_and_its_unit_never_part(seconds: float, words: str) -> None:
    said = format_duration(timedelta(seconds=seconds))
    assert said.replace(NBSP, " ") == words
    assert len(said.split(" ")) == len(words.split(" ")) // 2


@pytest.mark.parametrize(
    ("micros", "words"),
    [
        (0, "$0.00"),
        (200, "under $0.001"),
        (2_000, "$0.002"),
        (94_000, "$0.094"),
        (1_840_000, "$1.84"),
        (1_234_560_000, "$1,234.56"),
    ],
)
def test_money_has_three_digits_below_ten_cents(micros: int, words: str) -> None:
    assert format_money(micros) == words


def test_large_numbers_are_short() -> None:
    counts = [format_count(number) for number in (950, 1_200, 2_000, 312_400, 4_120_000, 10**15)]
    assert counts == ["950", "1.2k", "2k", "312k", "4.1M", "1,000,000B"]
    assert format_size(184_000) == f"184{NBSP}KB"
