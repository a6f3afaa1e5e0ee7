"""How long work waits for its model: time counts in which something tries it."""

from collections.abc import Callable
from datetime import timedelta

from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Say, Spend, Wait
from support.stage.make import MATE, NOON, USER
from support.stage.provider import BACK, DOWN, Provider, outages, pass_time
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions.deps import Limits
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core import retry
from backburner.core.conversation import Conversation, EndedAs, Status
from backburner.core.errors import ModelUnavailable
from backburner.core.ids import UserId
from backburner.core.retry import FIRST_REST, MAX_UNTRIED_TIME
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)
#: The provider asks for an hour, so that the model is tried in each.
DOWN_FOR_AN_HOUR = Fail(ModelUnavailable("The model is overloaded.", retry_after=HOUR))


async def start_job(stage: Stage) -> Conversation:
    chat = await stage.chat()
    wish = jobs.JobRequest(description="One", prompt="Look.")
    (started,) = await jobs.start(stage.deps, Origin(chat.user_id, chat.id), [wish])
    return stage.database.run(lambda tx: tx.conversations.load(chat.user_id, started.id))


async def test_others_may_try_after_the_first_answer_of_the_model(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(DOWN)
    await stage.task()
    await stage.work()
    clock.advance(FIRST_REST)
    stage.engine.then(Spend(10), Wait())

    await stage.take_up()
    await until(lambda: outages(stage)[0].until == clock.now)
    await stage.task()
    stage.engine.then(End({"complete": True}))
    await stage.take_up()

    # A run has ended well.
    await until(lambda: not outages(stage))
    stage.kill()


async def test_a_model_that_fails_after_its_first_answer_is_in_one_outage(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=lambda _request: [Spend(10), DOWN])
    await stage.task(EVERY_HOUR)
    await stage.work()

    await pass_time(stage, clock, HOUR / 2, MINUTE / 2)

    assert len(stage.notices()) == 1
    (outage,) = outages(stage)
    assert outage.since == NOON
    assert outage.probes == len(stage.engine.requests) < 12


async def test_work_is_not_ended_for_time_in_which_it_was_paused(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    stage.user(MATE)
    await stage.task(EVERY_HOUR, user=MATE)
    await stage.work()
    pause(stage, USER, paused=True)

    await pass_time(stage, clock, 2 * retry.MAX_OUTAGE_WAIT, HOUR)
    assert len(stage.engine.requests) > 24
    pause(stage, USER, paused=False)
    await pass_time(stage, clock, 2 * HOUR, HOUR)

    assert stage.load(task).status is Status.BACKGROUND


def pause(stage: Stage, user: UserId, *, paused: bool) -> None:
    stage.database.run(lambda tx: tx.users.pause_everything(user, paused=paused))


async def test_work_that_nobody_tries_is_not_ended(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    task, job = await stage.task(), await start_job(stage)
    await stage.work()
    await stage.outage_reporter.run_once()

    # As after the sleep of a machine, whose network is not up yet.
    clock.advance(2 * retry.MAX_OUTAGE_WAIT)
    await stage.work()
    await stage.outage_reporter.run_once()

    assert stage.load(task).status is Status.BACKGROUND
    assert stage.load(job).status is Status.BACKGROUND
    # The next process tries it at once.
    stage.database.run(lambda tx: tx.outages.probe_soon(["scripted"]))
    clock.advance(MAX_UNTRIED_TIME)
    await stage.outage_reporter.run_once()
    assert stage.load(job).status is Status.BACKGROUND


async def test_one_time_work_ends_after_a_day(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    recurring = await stage.task(EVERY_HOUR)
    await stage.work()

    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT - HOUR, HOUR)
    assert stage.load(task).status is Status.BACKGROUND
    await pass_time(stage, clock, 2 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR
    assert "waited too long for its model. The model is overloaded." in stage.said(task)[-1]
    assert stage.history(task)[0].status is RunStatus.CANCELLED
    assert stage.load(recurring).status is Status.BACKGROUND


async def test_a_job_waits_for_as_long_as_it_may_take(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=10 * MINUTE))
    job = await start_job(stage)
    await stage.work()

    await pass_time(stage, clock, 9 * MINUTE, MINUTE)
    assert stage.load(job).status is Status.BACKGROUND
    await pass_time(stage, clock, 2 * MINUTE, MINUTE)

    assert stage.load(job).ended_as is EndedAs.ERROR


async def test_a_job_that_alone_meets_trouble_ends_and_others_are_told_nothing(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(
        otherwise=lambda request: [Say("Hello.") if request.schema is None else DOWN],
        limits=Limits(run_timeout=20 * MINUTE),
    )
    job, chat = await start_job(stage), await stage.chat()
    stage.user(MATE)
    await stage.task(EVERY_HOUR, user=MATE)

    for _ in range(12):
        await stage.work()
        await stage.say(chat, "Hello?")
        await pass_time(stage, clock, 5 * MINUTE, 5 * MINUTE)

    assert stage.load(job).ended_as is EndedAs.ERROR
    assert stage.history(job)[0].status is RunStatus.FAILURE
    assert BACK not in stage.notices()


async def test_one_more_trouble_after_an_outage_costs_a_moment(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider(DOWN_FOR_AN_HOUR)
    stage = set_up(otherwise=provider)
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    await pass_time(stage, clock, 10 * HOUR, HOUR)
    clock.advance(HOUR)
    # The model works for somebody else.
    stage.database.run(lambda tx: tx.outages.end("scripted"))
    provider.trouble = DOWN
    await stage.work()
    provider.trouble = None

    clock.advance(FIRST_REST)
    await stage.work()

    assert RunStatus.SUCCESS in {run.status for run in stage.history(task)}


async def test_nobody_is_told_that_a_model_which_was_removed_is_available(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    await pass_time(stage, clock, 5 * MINUTE, MINUTE)
    assert len(stage.notices()) == 1

    stage.database.run(lambda tx: tx.outages.probe_soon(["another"]))
    await stage.outage_reporter.run_once()

    assert BACK not in stage.notices()
