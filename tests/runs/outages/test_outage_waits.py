"""How long work waits for its model: time counts in which something tries it."""

from collections.abc import Callable

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Say, Spend, Wait
from support.stage.make import MATE, NOON, USER
from support.stage.provider import (
    BACK,
    DENIED,
    DOWN,
    DOWN_FOR_AN_HOUR,
    EVERY_HOUR,
    HOUR,
    MINUTE,
    Provider,
    let_probe_hang,
    meet_own_trouble,
    outages,
    pass_time,
    start_job,
)
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions import steps
from backburner.actions.deps import Limits
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core import retry, transitions
from backburner.core.conversation import EndedAs, Status
from backburner.core.ids import UserId
from backburner.core.retry import FIRST_REST, MAX_UNTRIED_TIME
from backburner.core.run import RunKind, RunStatus
from backburner.core.schedule import Scheduled
from backburner.ports import TurnRequest, Tx
from backburner.store import tables


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
    assert stage.history(task)[0].status is RunStatus.FAILURE
    assert stage.load(recurring).status is Status.BACKGROUND


async def test_a_job_waits_for_as_long_as_it_may_take(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(job_timeout=10 * MINUTE))
    job = await start_job(stage)
    await stage.work()

    await pass_time(stage, clock, 9 * MINUTE, MINUTE)
    assert stage.load(job).status is Status.BACKGROUND
    await pass_time(stage, clock, 2 * MINUTE, MINUTE)

    assert stage.load(job).ended_as is EndedAs.ERROR


async def test_a_probe_that_takes_long_counts_as_trying(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(job_timeout=15 * MINUTE))
    job = await start_job(stage)
    await stage.work()
    while clock.now < NOON + 15 * MINUTE:
        assert stage.load(job).status is Status.BACKGROUND
        hung = await let_probe_hang(stage, clock)
        hung.set()
        await stage.idle()

    assert stage.load(job).ended_as is EndedAs.ERROR


@pytest.mark.parametrize("own_trouble", [False, True])
async def test_the_sleep_of_a_machine_during_an_attempt_does_not_count(
    set_up: Callable[..., Stage], clock: SetClock, *, own_trouble: bool
) -> None:
    stage = set_up(otherwise=Provider())
    task, job = await stage.task(), await start_job(stage)
    await (meet_own_trouble(stage, clock) if own_trouble else stage.work())

    def sleep(_request: TurnRequest) -> list[Fail]:
        clock.sleep(2 * retry.MAX_OUTAGE_WAIT)
        return [DOWN]

    for _ in range(2):
        stage.engine.then_as(sleep)
        clock.advance(MINUTE)
        await stage.work()
        await stage.outage_reporter.run_once()

    assert stage.load(task).status is Status.BACKGROUND
    assert stage.load(job).status is Status.BACKGROUND


async def test_late_work_is_not_ended_by_a_probe_that_was_claimed_after_a_sleep(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    tasks = [await stage.task() for _ in range(2)]
    await stage.work()
    clock.sleep(2 * retry.MAX_OUTAGE_WAIT)
    clock.advance(FIRST_REST)
    stage.engine.then(Wait())
    await stage.take_up()
    assert stage.only_run().claim.is_probe

    await stage.outage_reporter.run_once()

    assert [stage.load(task).status for task in tasks] == 2 * [Status.BACKGROUND]
    stage.kill()


async def test_messages_during_a_probe_that_hangs_do_not_prolong_the_waiting(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(job_timeout=15 * MINUTE))
    job, chat = await start_job(stage), await stage.chat()
    await stage.work()
    while clock.now < NOON + 15 * MINUTE:
        assert stage.load(job).status is Status.BACKGROUND
        hung = await let_probe_hang(stage, clock)
        stage.engine.then(DOWN)
        await stage.say(chat, "Hello?")
        await stage.take_up()
        hung.set()
        await stage.idle()

    assert stage.load(job).ended_as is EndedAs.ERROR


async def test_a_job_that_has_worked_since_an_outage_is_not_ended_by_one_more_trouble(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=10 * MINUTE))
    job = await start_job(stage)
    await stage.work()
    await pass_time(stage, clock, 8 * MINUTE, MINUTE)

    hung = await let_probe_hang(stage, clock, Spend(10))
    hung.set()
    await stage.idle()

    assert clock.now > NOON + 10 * MINUTE
    assert stage.load(job).ended_as is None


async def test_resuming_work_does_not_prolong_the_waiting_of_others(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    stage.user(MATE)
    await stage.work()

    for _ in range(25):
        await pass_time(stage, clock, HOUR, HOUR)
        pause(stage, MATE, paused=True)
        pause(stage, MATE, paused=False)

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_a_run_that_was_asked_for_ends_after_a_day_and_its_work_stays(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task(Scheduled(NOON + 100 * HOUR))

    def ask(tx: Tx) -> None:
        steps.save(tx, transitions.run_now(tx.conversations.lock(task.user_id, task.id)))

    stage.database.run(ask)
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + HOUR, HOUR)

    assert RunStatus.FAILURE in {run.status for run in stage.history(task)}
    after = stage.load(task)
    assert (after.ended_as, after.failures) == (None, 0)
    assert (after.schedule, after.next_run_at) == (task.schedule, NOON + 100 * HOUR)


async def test_a_reply_to_a_result_that_waits_too_long_ends_no_work(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    def play(request: TurnRequest) -> list[Say | End | Fail]:
        if request.schema is not None:
            return [End({"complete": True, "message": "Done."})]
        return [DOWN_FOR_AN_HOUR]

    stage = set_up(otherwise=play)
    task = await stage.task(Scheduled(NOON + 100 * HOUR))
    wish = jobs.JobRequest(description="One", prompt="Look.")
    await jobs.start(stage.deps, Origin(USER, task.id), [wish])

    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + HOUR, HOUR)

    replies = [run for run in stage.history(task) if run.kind is RunKind.REPLY]
    assert [run.status for run in replies] == [RunStatus.FAILURE]
    after = stage.load(task)
    assert (after.ended_as, after.next_run_at) == (None, NOON + 100 * HOUR)


async def test_operators_are_told_when_an_outage_becomes_a_refusal(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    stage.user()
    change = tables.users.update().values(role="operator")
    stage.database.run(lambda tx: tx.connection.execute(change))
    await stage.task(EVERY_HOUR)
    await stage.work()
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)

    provider.trouble = DENIED
    await pass_time(stage, clock, HOUR, 5 * MINUTE)

    overloaded, refused = stage.notices()
    assert "overloaded" in overloaded
    assert "The key was refused." in refused


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
