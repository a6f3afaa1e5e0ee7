"""The record of each run: times, status, result, error and tokens."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Spend, Wait
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.core.errors import EngineFailed
from backburner.core.run import Failure, FailureKind, RunStatus
from backburner.core.schedule import Interval

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)


@requirement("B-runs")
async def test_a_run_is_on_record_with_times_status_result_error_and_tokens(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    go_on = asyncio.Event()
    stage.engine.then(Wait(go_on), Spend(7), End({"complete": True, "result": "green"}))
    await stage.take_up()
    (running,) = stage.history(task)
    clock.advance(timedelta(seconds=20))
    go_on.set()
    await stage.idle()
    clock.advance(MINUTE)
    stage.engine.then(Spend(3), Fail(EngineFailed("Broken.")))
    await stage.work()

    assert (running.status, running.started_at, running.ended_at) == (RunStatus.RUNNING, NOON, None)
    failure, success = stage.history(task)
    assert (success.id, success.status, success.result) == (running.id, RunStatus.SUCCESS, "green")
    assert (success.ended_at, success.tokens) == (NOON + timedelta(seconds=20), 7)
    assert (failure.status, failure.result, failure.tokens) == (RunStatus.FAILURE, None, 3)
    assert failure.failure == Failure(FailureKind.MODEL, "Broken.")


@requirement("B-runs")
@pytest.mark.parametrize(
    ("outcome", "result"),
    [
        ({"complete": True, "message": "All green."}, "All green."),
        ({"complete": True, "message": "All green.", "result": "green"}, "green"),
        ({"complete": True, "message": "All green.", "result": {"ci": 1}}, '{"ci":1}'),
        ({"complete": True, "message": "All green.", "result": ""}, "All green."),
        ({"continue": True, "message": "Half way."}, "Half way."),
        ({"complete": True}, None),
    ],
)
async def test_a_run_keeps_its_result_as_text_or_else_its_message(
    stage: Stage, outcome: dict[str, Any], result: str | None
) -> None:
    task = await stage.task(EVERY_MINUTE)
    stage.engine.then(End(outcome))

    await stage.work()

    assert stage.history(task)[0].result == result
