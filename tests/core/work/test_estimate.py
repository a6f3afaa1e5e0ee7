"""Cost estimates come from earlier runs, or there are none."""

from datetime import timedelta

import pytest
from support.stage.make import NOON

from backburner.core.allowance import Amount, Cost
from backburner.core.ids import ConversationId
from backburner.core.schedule import After, Cron, Event, Immediate, Interval, Schedule, Scheduled
from backburner.core.work.estimate import estimate, runs_per_month

HOUR = timedelta(hours=1)
OWN = [Cost(Amount(100, 10), priced=True), Cost(Amount(201, 31), priced=True)]
ALIKE = [Cost(Amount(7, 7), priced=False)]
OTHER = ConversationId("c_other")


def test_an_estimate_is_the_mean_of_the_tasks_own_runs() -> None:
    found = estimate(OWN, ALIKE, runs_per_month=10)

    assert found is not None
    assert (found.per_run, found.per_month) == (Amount(150, 20), Amount(1500, 200))
    assert (found.runs, found.own, found.priced) == (2, True, True)


def test_an_estimate_without_own_runs_uses_similar_ones() -> None:
    found = estimate([], ALIKE, runs_per_month=None)

    assert found is not None
    assert (found.per_run, found.per_month) == (Amount(7, 7), None)
    assert (found.runs, found.own, found.priced) == (1, False, False)


def test_without_any_runs_there_is_no_estimate() -> None:
    assert estimate([], [], runs_per_month=10) is None


@pytest.mark.parametrize(
    ("schedule", "left", "count"),
    [
        (Immediate(), None, 1),
        (Scheduled(NOON + HOUR), None, 1),
        (Interval(timedelta(minutes=30), NOON), None, 1440),
        (Interval(timedelta(minutes=30), NOON), 30, 30),
        (Interval(timedelta(days=60), NOON), None, 1),
        (Cron("0 9 * * *", "UTC"), None, 30),
        (Cron("0 9 * * *", "UTC"), 0, 0),
        (Cron("0 9 1 1 *", "UTC"), None, 0),
        (Cron("* * * * *", "UTC"), None, 43_200),
        (Event("file", {}), None, None),
        (Event("file", {}), 5, None),
        (After(OTHER), None, None),
        (After(OTHER, once=True), None, 1),
    ],
)
def test_the_runs_of_a_month_follow_from_the_schedule(
    schedule: Schedule, left: int | None, count: int | None
) -> None:
    assert runs_per_month(schedule, left=left, now=NOON) == count
