"""What is shown of a failed call, and the calls of a day together."""

from datetime import UTC, datetime, timedelta

import pytest

from backburner.core.connections.call import (
    DAY_SLOTS,
    MAX_TOLD_CHARS,
    SLOT,
    CallCounts,
    cut_told,
    fill_day,
    start_of_day,
)

LONG = "x" * MAX_TOLD_CHARS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("No.\n\nSorry", "No. Sorry"),
        ("a\u202eb", "a\\u202eb"),
        (LONG, LONG),
        (f"{LONG}y", f"{LONG}…"),
    ],
)
def test_it_is_one_line_that_can_be_shown(text: str, shown: str) -> None:
    assert cut_told(text) == shown


def test_the_present_is_in_the_last_slot_of_a_day() -> None:
    since = start_of_day(datetime(2026, 11, 16, 12, 10, tzinfo=UTC))

    assert since == datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
    slots = fill_day((), since).slots
    assert slots[0].at == since
    assert slots[-1].at == datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
    assert len(slots) == DAY_SLOTS


def test_the_calls_of_a_day_are_counted_together() -> None:
    since = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
    took = timedelta(seconds=6)

    day = fill_day(
        [
            CallCounts(at=since + SLOT, calls=3, failed=1, slow=1, took=took),
            CallCounts(at=since + 4 * SLOT, calls=1, unknown=1, slow=1, took=took),
        ],
        since,
    )

    assert [slot.calls for slot in day.slots[:6]] == [0, 3, 0, 0, 1, 0]
    assert (day.calls, day.failed, day.unknown, day.slow) == (4, 1, 1, 2)
    assert day.average == timedelta(seconds=3)


@pytest.mark.parametrize(("calls", "slow"), [(0, 0), (2, 1), (3, 2)])
def test_a_connection_is_slow_if_most_of_its_calls_are(calls: int, slow: int) -> None:
    since = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)

    day = fill_day([CallCounts(at=since, calls=calls, slow=slow)], since)

    assert day.is_slow == (slow > calls / 2)
    assert (day.average is None) == (calls == 0)
