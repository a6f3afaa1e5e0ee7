"""A schedule that may not be meant is pointed out before it is set."""

from datetime import timedelta
from typing import Any

import pytest
from support.stage.make import NOON

from backburner.core.schedule import Cron, Event, Interval, Schedule, Scheduled
from backburner.core.schedule.cautions import find_cautions

SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("schedule", "warning"),
    [
        (Interval(10 * SECOND, NOON), "It runs every 10 seconds, up to 8,640 times a day."),
        (Cron("* * * * *", "UTC"), "It runs every minute, up to 1,440 times a day."),
        (Cron("*/2 9 * * 1", "UTC"), "It runs every 2 minutes, up to 720 times a day."),
        (
            Scheduled(NOON + timedelta(days=400)),
            "Its first time is more than a year from now: Tue 21 Dec 2027, 13:00 CET.",
        ),
    ],
)
def test_frequent_work_and_a_far_time_are_pointed_out(schedule: Schedule, warning: str) -> None:
    assert find_cautions(schedule, now=NOON, zone="Europe/Berlin") == [warning]


@pytest.mark.parametrize(
    "schedule",
    [
        Interval(HOUR, NOON),
        Cron("*/5 * * * *", "UTC"),
        Cron("0 9 * * 1-5", "UTC"),
        Scheduled(NOON + HOUR),
        Event("file", {}),
    ],
)
def test_usual_schedules_have_no_warnings(schedule: Schedule) -> None:
    assert find_cautions(schedule, now=NOON, zone="UTC") == []


def test_an_interval_that_would_be_refused_says_so() -> None:
    usual: dict[str, Any] = {"now": NOON, "zone": "UTC"}

    refused = find_cautions(Interval(HOUR, NOON), least=2 * HOUR, **usual)

    assert refused == [
        "Work with a real model runs every 7200 seconds at most: this would be refused."
    ]
    assert find_cautions(Interval(HOUR, NOON), least=HOUR, **usual) == []
