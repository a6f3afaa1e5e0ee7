"""Work that meets trouble again and again though its model answers in between."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta

from support.doubles.clock import SetClock
from support.doubles.engine import Fail, Say, Spend, Wait
from support.stage.make import MATE, NOON, USER
from support.stage.provider import (
    BACK,
    DOWN,
    DOWN_FOR_AN_HOUR,
    EVERY_HOUR,
    HOUR,
    MINUTE,
    Provider,
    keep_in_outage,
    meet_own_trouble,
    outages,
    pass_time,
    receive_event,
    start_job,
    stop_following,
)
from support.stage.stage import LEASE, Stage
from support.stage.until import until

from backburner.actions.deps import Limits
from backburner.core import retry
from backburner.core.conversation import EndedAs, Status
from backburner.core.errors import ModelUnavailable
from backburner.core.run import RunStatus
from backburner.core.schedule import After, AfterCondition, Scheduled
from backburner.ports import TurnRequest
from backburner.runs.stopping import StopReason
from backburner.worker.seats import Seats

DAY = timedelta(days=1)


async def test_a_job_that_alone_meets_trouble_ends_and_users_are_told_once(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(
        otherwise=lambda request: [Say("Hello.") if request.schema is None else DOWN],
        limits=Limits(job_timeout=20 * MINUTE),
    )
    job, chat = await start_job(stage), await stage.chat()
    stage.user(MATE)
    await stage.task(EVERY_HOUR, user=MATE)

    for _ in range(12):
        await stage.work()
        await stage.say(chat, "Hello?")
        await pass_time(stage, clock, 5 * MINUTE, MINUTE)

    assert stage.load(job).ended_as is EndedAs.ERROR
    assert stage.history(job)[0].status is RunStatus.FAILURE
    # Before the model worked for others, it was an outage for all that anybody knew.
    assert stage.notices().count(BACK) == len({USER, MATE})


async def test_own_trouble_is_forgotten_when_nothing_tries_the_model(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    task = await stage.task()
    await meet_own_trouble(stage, clock)
    assert stage.history(task)[0].own_trouble_since == clock.now

    clock.advance(2 * retry.MAX_OUTAGE_WAIT)
    await stage.work()

    assert stage.load(task).status is Status.BACKGROUND


async def test_own_trouble_is_forgotten_when_a_run_has_worked_since(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    job = await start_job(stage)
    await meet_own_trouble(stage, clock)
    provider.trouble = None
    stage.engine.then(Spend(10), Wait())
    clock.advance(MINUTE)
    await stage.take_up()
    await until(lambda: outages(stage)[0].until == clock.now)
    stage.underway.stop_all(StopReason.USER_WAITING)
    await stage.idle()
    assert stage.history(job)[0].own_trouble_since is None

    clock.advance(10 * MINUTE)
    provider.trouble = DOWN
    await stage.work()

    assert stage.load(job).status is Status.BACKGROUND


async def test_own_trouble_with_long_rests_ends(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    busy = Fail(ModelUnavailable("Too many requests.", retry_after=20 * MINUTE))
    stage = set_up(
        otherwise=lambda request: [Say("Hello.") if request.schema is None else busy],
        limits=Limits(run_timeout=30 * MINUTE),
    )
    job, chat = await start_job(stage), await stage.chat()
    await stage.work()

    for _ in range(6):
        await pass_time(stage, clock, 25 * MINUTE, MINUTE)
        await stage.say(chat, "Hello?")
        await stage.work()

    assert stage.load(job).ended_as is EndedAs.ERROR


async def test_work_ends_whose_model_fails_after_its_first_answer_for_a_day(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=lambda _request: [Spend(10), DOWN_FOR_AN_HOUR])
    task = await stage.task()
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT - HOUR, HOUR)
    assert stage.load(task).ended_as is None

    await pass_time(stage, clock, 4 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_work_that_fails_for_a_day_while_the_model_answers_others_ends(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    def play(request: TurnRequest) -> Sequence[Spend | Fail]:
        is_of_mate = request.conversation.user_id == MATE
        return [Spend(10), DOWN_FOR_AN_HOUR] if is_of_mate else [DOWN_FOR_AN_HOUR]

    stage = set_up(otherwise=play)
    task = await stage.task()
    await keep_in_outage(stage)
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 6 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_a_job_that_works_nearly_all_the_time_is_not_ended(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=10 * MINUTE))
    job = await start_job(stage)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Spend(10), DOWN)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    answers = [asyncio.Event() for _ in range(19)]
    stage.engine.then(*(step for each in answers for step in (Spend(10), Wait(each))), DOWN)
    await stage.take_up()
    for each in answers:
        await until(lambda: outages(stage)[0].answered_at == clock.now)
        for _ in range(3):
            clock.advance(LEASE / 3)
            await stage.renew()
        each.set()
    await stage.idle()

    assert clock.now > NOON + 10 * MINUTE
    assert stage.load(job).ended_as is None


async def test_a_short_sleep_after_own_trouble_ends_no_job(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    job = await start_job(stage)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    stage.engine.then(Spend(10), DOWN)
    await stage.work()
    assert stage.history(job)[0].own_trouble_since == clock.now

    clock.sleep(10 * MINUTE)
    clock.advance(MINUTE)
    await stage.work()
    await stage.outage_reporter.run_once()

    assert stage.load(job).ended_as is None


async def test_jobs_end_whose_model_fails_after_its_first_answer_though_each_is_tried_rarely(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(
        otherwise=lambda _request: [Spend(10), DOWN],
        limits=Limits(run_timeout=HOUR / 2),
        seats=Seats(total=1),
    )
    jobs = [await start_job(stage) for _ in range(6)]
    await stage.work()
    await pass_time(stage, clock, 4 * HOUR, 5 * MINUTE)

    assert {stage.load(job).ended_as for job in jobs} == {EndedAs.ERROR}


async def test_the_last_event_of_work_with_own_trouble_waits_for_a_day(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=lambda _request: [Spend(10), DOWN_FOR_AN_HOUR])
    first = await stage.task(Scheduled(NOON + 400 * HOUR))
    task = await stage.task(After(first.id, on=AfterCondition.ANY))
    receive_event(stage, task)
    await stage.work()
    await pass_time(stage, clock, 30 * HOUR, HOUR)
    assert stage.history(task)[0].own_trouble_since is not None
    stop_following(stage, task)
    await pass_time(stage, clock, 3 * HOUR, HOUR)

    assert stage.load(task).ended_as is None
