"""Waiting for a model while the clock is wrong, and after it was put right."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Spend, Wait
from support.stage.make import NOON, USER
from support.stage.provider import (
    DOWN,
    DOWN_FOR_AN_HOUR,
    EVERY_HOUR,
    HOUR,
    MINUTE,
    Provider,
    note_trouble,
    outages,
    pass_time,
    receive_event,
    set_back,
    start_job,
)
from support.stage.stage import LEASE, Stage
from support.stage.until import until

from backburner.actions.deps import Limits
from backburner.core import retry
from backburner.core.conversation import EndedAs
from backburner.core.run import RunStatus
from backburner.core.schedule import After, Scheduled
from backburner.worker.known_outages import KnownOutages

SECOND, DAY = timedelta(seconds=1), timedelta(days=1)


async def test_work_that_began_to_wait_by_a_clock_that_ran_ahead_ends(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    ahead = timedelta(days=300)
    clock.now += ahead
    await stage.work()
    set_back(stage, clock, ahead)
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 6 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR


@pytest.mark.parametrize("back", [timedelta(), 10 * MINUTE])
@pytest.mark.parametrize("what", ["answered", "resumed"])
async def test_work_is_not_ended_because_the_clock_was_set_back_a_little(
    set_up: Callable[..., Stage], clock: SetClock, what: str, back: timedelta
) -> None:
    stage = set_up()
    task = await stage.task()
    if what == "resumed":
        stage.database.run(lambda tx: tx.users.pause_everything(USER, paused=True))
    for _ in range(26):
        note_trouble(stage)
        clock.advance(HOUR)
    if what == "resumed":
        stage.database.run(lambda tx: tx.users.pause_everything(USER, paused=False))
    else:
        stage.database.run(lambda tx: tx.outages.note_answer("scripted"))
    clock.advance(SECOND)
    set_back(stage, clock, back)
    note_trouble(stage)
    await stage.outage_reporter.run_once()

    assert stage.load(task).ended_as is None


async def test_a_model_is_tried_soon_after_the_clock_was_set_back_a_little(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    await pass_time(stage, clock, 2 * HOUR, MINUTE)

    set_back(stage, clock, 50 * MINUTE)

    (outage,) = outages(stage)
    assert max(outage.until, outage.tried_until) == clock.now


async def test_own_trouble_that_a_clock_noted_which_ran_ahead_ends_work(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(
        otherwise=lambda _request: [Spend(10), DOWN], limits=Limits(run_timeout=HOUR / 2)
    )
    job = await start_job(stage)
    clock.now += 300 * DAY
    await stage.work()
    clock.advance(MINUTE)
    await stage.work()
    assert stage.history(job)[0].own_trouble_since == clock.now
    set_back(stage, clock, 300 * DAY)
    await pass_time(stage, clock, 2 * HOUR, 5 * MINUTE)

    assert stage.load(job).ended_as is EndedAs.ERROR


async def test_work_ends_whose_run_began_by_a_clock_that_ran_ahead(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    clock.now += 300 * DAY
    await stage.work()
    hung = asyncio.Event()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Wait(hung), DOWN_FOR_AN_HOUR)
    await stage.take_up()
    set_back(stage, clock, 300 * DAY)
    hung.set()
    await stage.idle()
    assert stage.history(task)[0].waits_since == clock.now
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 6 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_work_ends_that_crashed_by_a_clock_that_ran_ahead(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up()
    task = await stage.task()
    clock.now += 300 * DAY
    stage.engine.then(Wait())
    await stage.take_up()
    stage.kill()
    clock.advance(2 * LEASE)
    assert await stage.rescuer.run_once()
    set_back(stage, clock, 300 * DAY)
    for _ in range(26):
        note_trouble(stage)
        clock.advance(HOUR)
    note_trouble(stage)
    await stage.outage_reporter.run_once()

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_work_ends_whose_event_came_by_a_clock_that_ran_ahead(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    first = await stage.task(Scheduled(NOON + 400 * DAY))
    task = await stage.task(After(first.id, once=True))
    clock.now += 300 * DAY
    receive_event(stage, task)
    set_back(stage, clock, 300 * DAY)
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_a_model_is_tried_soon_after_the_clock_was_set_back_during_an_attempt(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=2 * HOUR))
    await stage.task(EVERY_HOUR)
    await stage.work()
    hung = asyncio.Event()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Wait(hung), DOWN)
    await stage.take_up()
    for _ in range(50 * MINUTE // (LEASE / 3)):
        clock.advance(LEASE / 3)
        await stage.renew()
    set_back(stage, clock, 40 * MINUTE)
    hung.set()
    await stage.idle()

    assert outages(stage)[0].until - clock.now <= retry.MAX_REST


async def test_a_run_waits_on_after_the_clock_was_set_back_while_it_worked(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR), limits=Limits(run_timeout=30 * MINUTE))
    job = await start_job(stage)
    stage.engine.then(Spend(10), DOWN)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Spend(10), DOWN_FOR_AN_HOUR)
    await stage.work()
    assert stage.history(job)[0].own_trouble_since == clock.now
    begun = clock.now
    # The clock runs ahead, and a process starts.
    clock.now += HOUR
    stage.claiming.outages = KnownOutages(lambda: 0)
    going = asyncio.Event()
    stage.engine.then(Spend(10), Wait(going), DOWN)
    await stage.take_up()
    await until(lambda: outages(stage)[0].answered_at == clock.now)
    set_back(stage, clock, HOUR - MINUTE)
    going.set()
    await stage.idle()

    assert clock.now == begun + MINUTE
    assert stage.history(job)[0].status is RunStatus.QUEUED
