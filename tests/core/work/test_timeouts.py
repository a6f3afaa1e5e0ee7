"""Timeouts of runs: their limits, how they are written, and which are long."""

from datetime import timedelta

import pytest

from backburner.core.errors import BadRequest
from backburner.core.work.timeouts import (
    MAX_TIMEOUT,
    MIN_TIMEOUT,
    check_timeout,
    describe_timeout,
    is_long,
    parse_timeout,
)


@pytest.mark.parametrize("timeout", [None, MIN_TIMEOUT, timedelta(hours=2), MAX_TIMEOUT])
def test_a_timeout_of_up_to_a_day_is_accepted(timeout: timedelta | None) -> None:
    assert check_timeout(timeout) == timeout


@pytest.mark.parametrize(
    ("timeout", "said"),
    [
        (timedelta(), "0 seconds"),
        (timedelta(seconds=9), "9 seconds"),
        (timedelta(hours=24, seconds=1), "24 hours 1 second"),
    ],
)
def test_any_other_timeout_is_refused_with_what_is_valid(timeout: timedelta, said: str) -> None:
    with pytest.raises(BadRequest) as caught:
        check_timeout(timeout)

    assert str(caught.value) == f"The timeout cannot be {said}. Use 10 seconds to 24 hours."


def test_other_work_has_other_bounds() -> None:
    bounds = timedelta(seconds=5), timedelta(minutes=30)

    assert parse_timeout("5s", *bounds) == check_timeout(bounds[0], *bounds) == bounds[0]
    with pytest.raises(BadRequest, match="Use 5 seconds to 30 minutes"):
        parse_timeout("31m", *bounds)


def test_a_timeout_is_written_as_a_duration() -> None:
    assert parse_timeout("90s") == timedelta(seconds=90)
    for text in ("soon", "25h", "5s"):
        with pytest.raises(BadRequest):
            parse_timeout(text)


@pytest.mark.parametrize(
    ("timeout", "expected"),
    [(None, False), (timedelta(minutes=10), False), (timedelta(minutes=10, seconds=1), True)],
)
def test_a_run_is_long_from_ten_minutes(timeout: timedelta | None, *, expected: bool) -> None:
    assert is_long(timeout) == expected


@pytest.mark.parametrize(
    ("timeout", "text"),
    [
        (timedelta(hours=1), "1 hour"),
        (timedelta(hours=2, minutes=1), "2 hours 1 minute"),
        (timedelta(minutes=30), "30 minutes"),
        (timedelta(seconds=1.5), "1.5 seconds"),
    ],
)
def test_a_timeout_is_described_in_words(timeout: timedelta, text: str) -> None:
    assert describe_timeout(timeout) == text
