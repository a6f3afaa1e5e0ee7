"""Times that a clock has computed which ran ahead."""

from datetime import timedelta

import pytest
from support.stage import make

from backburner.core import transitions
from backburner.core.ids import ConversationId
from backburner.core.schedule import (
    After,
    Cron,
    Event,
    Immediate,
    Interval,
    Schedule,
    Scheduled,
    is_too_far_ahead,
)

NOON = make.NOON
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.mark.parametrize("schedule", [Interval(HOUR, anchor=NOON), Cron("0 * * * *", "UTC")])
def test_more_than_one_slot_ahead_is_too_far(schedule: Schedule) -> None:
    now = NOON + HOUR / 2
    far = [is_too_far_ahead(schedule, NOON + count * HOUR, now=now) for count in range(4)]

    assert far == [False, False, False, True]


def test_a_beginning_that_was_asked_for_is_not_too_far() -> None:
    schedule = Interval(HOUR, anchor=NOON + 30 * DAY)

    assert not is_too_far_ahead(schedule, schedule.anchor, now=NOON)
    assert is_too_far_ahead(schedule, schedule.anchor + DAY, now=NOON)


@pytest.mark.parametrize(
    "schedule", [Immediate(), Scheduled(NOON), Event("file", {}), After(ConversationId("c_1"))]
)
def test_what_does_not_recur_by_the_clock_is_never_too_far(schedule: Schedule) -> None:
    assert not is_too_far_ahead(schedule, NOON + DAY, now=NOON)


def test_work_without_a_next_time_gets_none() -> None:
    task = make.conversation(schedule=Interval(HOUR, anchor=NOON), settled_until=NOON + DAY)
    after = transitions.set_clock_back(task, changed_at=NOON + DAY, now=NOON)

    assert (after.next_run_at, after.settled_until) == (None, None)


@pytest.mark.parametrize(
    ("schedule", "due_in", "changed_in", "expected_in"),
    [
        (Interval(HOUR, anchor=NOON), DAY, DAY, HOUR),
        (Interval(HOUR, anchor=NOON), HOUR, DAY, HOUR),
        (Immediate(), DAY + HOUR, DAY, HOUR),
        (Immediate(), DAY - HOUR, DAY, timedelta()),
        (Immediate(), HOUR, -HOUR, HOUR),
        (Immediate(), -HOUR, DAY, -HOUR),
        (Scheduled(NOON + DAY), DAY, DAY, DAY),
        (Scheduled(NOON), DAY + HOUR, DAY, HOUR),
    ],
)
def test_only_times_of_the_clock_are_computed_anew(
    schedule: Schedule, due_in: timedelta, changed_in: timedelta, expected_in: timedelta
) -> None:
    task = make.conversation(schedule=schedule, next_run_at=NOON + due_in)
    after = transitions.set_clock_back(task, changed_at=NOON + changed_in, now=NOON)

    assert after.next_run_at == NOON + expected_in


def test_a_chat_has_no_times() -> None:
    chat = make.conversation()

    assert transitions.set_clock_back(chat, changed_at=NOON + DAY, now=NOON) == chat
