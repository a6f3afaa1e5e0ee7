"""When one-time work is ended because it has waited too long for its model."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Spend, Wait
from support.stage.make import MATE, NOON, USER
from support.stage.provider import (
    DOWN,
    DOWN_FOR_AN_HOUR,
    EVERY_HOUR,
    HOUR,
    MINUTE,
    Provider,
    ask_for_run,
    keep_in_outage,
    let_probe_hang,
    note_trouble,
    outages,
    pass_time,
    receive_event,
    start_job,
    stop_following,
    wait_for_jobs,
)
from support.stage.stage import LEASE, Stage
from support.stage.until import until
from support.statements import watched

from backburner.actions import steps
from backburner.actions.deps import Limits
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core import retry, transitions
from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.conversation import Conversation, EndedAs, Status
from backburner.core.ids import new_call_id
from backburner.core.routing import ProfileFilter
from backburner.core.run import Failure, FailureKind, RunStatus
from backburner.core.schedule import After, AfterCondition, Scheduled
from backburner.core.tool_policy import Tool, ToolCall
from backburner.core.transitions import RAISE_ALLOWANCE
from backburner.ports import LateWork, TurnRequest, Tx
from backburner.runs.stopping import StopReason
from backburner.worker.seats import Seats

SECOND = timedelta(seconds=1)


async def test_a_job_that_has_worked_is_not_ended_by_the_next_look(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=10 * MINUTE))
    job = await start_job(stage)
    await stage.work()
    await pass_time(stage, clock, 8 * MINUTE, MINUTE)
    hung = await let_probe_hang(stage, clock, Spend(10))
    hung.set()
    await stage.idle()

    clock.advance(SECOND)
    await stage.outage_reporter.run_once()

    assert stage.load(job).ended_as is None


async def test_time_in_which_work_waits_for_its_user_does_not_count(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    spends = (Allowance(AllowanceScope.RUN, tokens=100),)
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR), allowances=spends)
    stage.engine.then(Spend(120))
    task = await stage.task()
    await stage.work()
    assert stage.load(task).status is Status.WAITING_INPUT
    await keep_in_outage(stage)
    await pass_time(stage, clock, 30 * HOUR, HOUR)

    await stage.answer(task, RAISE_ALLOWANCE)
    await pass_time(stage, clock, 3 * HOUR, HOUR)
    assert stage.load(task).ended_as is None

    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT, HOUR)
    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_time_in_which_work_waits_for_its_jobs_does_not_count(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    await wait_for_jobs(stage, 30 * HOUR)
    await keep_in_outage(stage)
    await pass_time(stage, clock, 33 * HOUR, HOUR)
    assert stage.load(task).ended_as is None

    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT, HOUR)
    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_work_after_other_work_ends_if_its_only_event_meets_an_outage(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    first = await stage.task(Scheduled(NOON + 400 * HOUR))
    task = await stage.task(After(first.id, once=True))

    receive_event(stage, task)
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR
    assert any("waited too long for its model" in text for text in stage.notices())


async def test_a_run_that_was_asked_for_and_given_up_is_told(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task(Scheduled(NOON + 400 * HOUR))
    ask_for_run(stage, task)
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)

    assert "A background run failed: The model is overloaded." in stage.notices()


async def test_a_look_costs_the_same_for_recurring_work_that_is_very_late(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR), limits=Limits(max_tasks=100))

    async def count_statements() -> int:
        with watched(stage.database) as seen:
            await stage.outage_reporter.run_once()
        return len(seen)

    for _ in range(9):
        await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(2 * MINUTE)
    await stage.outage_reporter.run_once()
    usual = await count_statements()

    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)

    assert await count_statements() == usual


async def find_late_work(stage: Stage, clock: SetClock) -> tuple[Conversation, LateWork]:
    """Start a task that has waited too long, and find it as the reporter does."""
    failure = Failure(FailureKind.UNAVAILABLE, "It is down.", retry_after=HOUR)
    task = await stage.task()
    for _ in range(26):
        stage.database.run(lambda tx: tx.outages.note("scripted", failure, probed=True))
        clock.advance(HOUR)
    stage.database.run(lambda tx: tx.outages.note("scripted", failure, probed=True))
    profiles, before = ProfileFilter(("scripted", "")), clock.now
    (work,) = stage.database.run(
        lambda tx: tx.outages.late_work(profiles, None, before=before, limit=9)
    )
    return task, work


@pytest.mark.parametrize("change", ["nothing", "another outage", "a pause", "a run"])
async def test_late_work_is_looked_at_again_before_it_is_ended(
    set_up: Callable[..., Stage], clock: SetClock, change: str
) -> None:
    stage = set_up(otherwise=lambda _request: [Wait()])
    task, work = await find_late_work(stage, clock)
    (outage,) = outages(stage)
    match change:
        case "another outage":
            failure = Failure(FailureKind.UNAVAILABLE, "It is down.")
            stage.database.run(lambda tx: tx.outages.end("scripted"))
            stage.database.run(lambda tx: tx.outages.note("scripted", failure, probed=True))
        case "a pause":
            stage.database.run(lambda tx: tx.users.pause_everything(USER, paused=True))
        case "a run":
            stage.database.run(lambda tx: tx.outages.note_answer("scripted"))
            await stage.take_up()
            assert stage.only_run().claim.is_probe

    stage.database.run(lambda tx: stage.outage_reporter._end_work(work, outage, tx))

    expected = EndedAs.ERROR if change == "nothing" else None
    assert stage.load(task).ended_as is expected
    stage.kill()


async def test_interruptions_do_not_prolong_the_waiting(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(job_timeout=15 * MINUTE))
    job = await start_job(stage)
    await stage.work()
    while clock.now < NOON + 15 * MINUTE:
        await let_probe_hang(stage, clock)
        stage.underway.stop_all(StopReason.DRAINING)
        await stage.idle()
        await stage.work()

    assert stage.load(job).ended_as is EndedAs.ERROR
    assert stage.history(job)[0].status is RunStatus.FAILURE


async def test_a_run_that_was_asked_for_does_not_end_work_that_waits_for_other_work(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    first = await stage.task(Scheduled(NOON + 400 * HOUR))
    task = await stage.task(After(first.id, once=True))
    ask_for_run(stage, task)
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)

    assert RunStatus.FAILURE in {run.status for run in stage.history(task)}
    after = stage.load(task)
    assert (after.ended_as, after.schedule) == (None, task.schedule)


async def test_a_run_that_was_asked_for_does_not_end_work_that_is_hardly_late(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task(Scheduled(NOON + 23 * HOUR + 50 * MINUTE))
    ask_for_run(stage, task)
    await stage.work()
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)
    assert stage.load(task).ended_as is None

    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT, HOUR)
    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_the_last_event_of_work_after_other_work_has_a_day_of_its_own(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    first = await stage.task(Scheduled(NOON + 400 * HOUR))
    task = await stage.task(After(first.id, on=AfterCondition.ANY))

    receive_event(stage, task)
    await stage.work()
    await pass_time(stage, clock, 30 * HOUR, HOUR)
    stop_following(stage, task)
    await pass_time(stage, clock, 22 * HOUR, HOUR)
    assert stage.load(task).ended_as is None
    await pass_time(stage, clock, 4 * HOUR, HOUR)

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_an_interruption_before_an_answer_keeps_what_a_run_waits_for(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    task = await stage.task()
    await stage.work()
    clock.advance(MINUTE)
    stage.database.run(lambda tx: tx.outages.end("scripted"))
    await stage.work()
    before = stage.history(task)[0]
    assert before.own_trouble_since is not None
    clock.advance(MINUTE)
    stage.engine.then(Wait())
    await stage.take_up()
    stage.underway.stop_all(StopReason.DRAINING)
    await stage.idle()

    after = stage.history(task)[0]
    assert (after.own_trouble_since, after.waits_since, after.failure) == (
        before.own_trouble_since,
        before.waits_since,
        before.failure,
    )


async def test_a_wait_for_the_budget_keeps_what_a_run_waits_for(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(
        otherwise=Provider(),
        allowances=(Allowance(AllowanceScope.USER, tokens=100),),
        limits=Limits(run_timeout=10 * MINUTE, reservation=Amount(tokens=100)),
    )
    job, chat = await start_job(stage), await stage.chat()
    await stage.work()
    before = stage.history(job)[0]
    clock.advance(9 * MINUTE)
    hung = asyncio.Event()
    stage.engine.then(Wait(hung), DOWN)
    await stage.say(chat, "Hello?")
    await stage.take_up()
    await until(lambda: len(stage.underway) == 1)

    after = stage.history(job)[0]
    assert (after.status, after.epoch) == (RunStatus.QUEUED, before.epoch + 1)
    assert (after.waits_since, after.failure) == (before.waits_since, before.failure)
    hung.set()
    await stage.idle()


async def test_a_job_without_a_seat_does_not_wait_for_a_model_that_answers(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    limits = Limits(run_timeout=10 * MINUTE)
    stage = set_up(otherwise=Provider(), limits=limits, seats=Seats(total=1))
    stage.user(MATE)
    await stage.task(EVERY_HOUR, user=MATE, run_timeout=HOUR)
    await stage.work()
    clock.advance(outages(stage)[0].until - clock.now)
    answers = [asyncio.Event() for _ in range(4)]
    stage.engine.then(*(step for each in answers for step in (Spend(10), Wait(each))), DOWN)
    await stage.take_up()
    job = await start_job(stage)
    for each in answers:
        await until(lambda: outages(stage)[0].answered_at == clock.now)
        for _ in range(3 * MINUTE // (LEASE / 3)):
            clock.advance(LEASE / 3)
            await stage.renew()
        each.set()
    await stage.idle()
    await stage.outage_reporter.run_once()

    assert not stage.history(job)
    assert stage.load(job).ended_as is None


async def test_a_reply_ends_though_the_schedule_was_changed(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    def play(request: TurnRequest) -> list[End | Fail]:
        is_work = request.schema is not None
        return [End({"complete": True, "message": "Done."}) if is_work else DOWN_FOR_AN_HOUR]

    stage = set_up(otherwise=play)
    task = await stage.task(Scheduled(NOON + 400 * HOUR))
    wish = jobs.JobRequest(description="One", prompt="Look.")
    await jobs.start(stage.deps, Origin(USER, task.id), [wish])
    await stage.work()

    def reschedule(tx: Tx) -> None:
        before = tx.conversations.lock(USER, task.id)
        new = Scheduled(NOON + 300 * HOUR)
        steps.save(tx, transitions.set_schedule(before, new, now=tx.now))

    stage.database.run(reschedule)
    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT + 2 * HOUR, HOUR)

    assert [run.status for run in stage.history(task)] == [RunStatus.FAILURE]
    told = "I could not answer: The model is overloaded. You can try again."
    assert told in stage.notices()


async def test_time_in_which_a_run_asks_about_a_call_does_not_count(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    job = await start_job(stage)
    await stage.work()
    assert stage.history(job)[0].waits_since == NOON
    clock.advance(MINUTE)
    hung = asyncio.Event()
    stage.engine.then(Wait(hung), DOWN)
    await stage.take_up()
    turn = stage.only_run().claim.turn
    call = ToolCall(Tool(server="mail", name="send", definition="d"), {"to": "x"})
    stage.database.run(
        lambda tx: tx.tool_calls.begin(turn, new_call_id(), call, read_only=False, uses=None)
    )
    hung.set()
    await stage.idle()

    assert stage.load(job).status is Status.WAITING_INPUT
    assert stage.history(job)[0].waits_since is None


async def test_time_before_a_crash_does_not_count(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    await wait_for_jobs(stage, 30 * HOUR)
    await keep_in_outage(stage)
    await pass_time(stage, clock, 29 * HOUR, HOUR)
    clock.advance(HOUR)
    stage.engine.then(Wait())
    await stage.take_up()
    assert stage.only_run().claim.conversation.id == task.id
    stage.kill()
    clock.advance(2 * LEASE)
    assert await stage.rescuer.run_once()
    note_trouble(stage)
    await stage.outage_reporter.run_once()

    assert stage.load(task).ended_as is None


async def test_work_that_was_paused_during_an_attempt_is_not_tried_again(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    task = await stage.task(EVERY_HOUR)
    hung = asyncio.Event()
    stage.engine.then(Wait(hung), DOWN)
    await stage.take_up()

    def pause(tx: Tx) -> None:
        steps.save(tx, transitions.pause(tx.conversations.lock(task.user_id, task.id)))

    stage.database.run(pause)
    hung.set()
    await stage.idle()
    provider.trouble = None
    await pass_time(stage, clock, HOUR, 5 * MINUTE)

    assert [run.status for run in stage.history(task)] == [RunStatus.FAILURE]


async def test_a_run_that_was_asked_for_of_paused_work_waits(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    task = await stage.task(EVERY_HOUR)
    stage.database.run(
        lambda tx: steps.save(tx, transitions.pause(tx.conversations.lock(USER, task.id)))
    )
    ask_for_run(stage, task)
    await stage.work()
    provider.trouble = None
    await pass_time(stage, clock, HOUR, 5 * MINUTE)

    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]


async def test_a_run_that_goes_on_and_serves_the_last_event_ends_the_work(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    first = await stage.task(Scheduled(NOON + 400 * HOUR))
    task = await stage.task(After(first.id, on=AfterCondition.ANY))
    receive_event(stage, task)
    await stage.work()
    stop_following(stage, task)
    provider.trouble = None
    await pass_time(stage, clock, 5 * MINUTE, MINUTE)

    assert stage.load(task).ended_as is EndedAs.COMPLETED


async def test_a_run_of_the_last_event_does_not_end_a_new_schedule(stage: Stage) -> None:
    first, other = [await stage.task(Scheduled(NOON + 400 * HOUR)) for _ in range(2)]
    task = await stage.task(After(first.id, on=AfterCondition.ANY))
    stop_following(stage, task)
    going = asyncio.Event()
    stage.engine.then(Wait(going), End({"complete": True, "message": "Done."}))
    await stage.take_up()
    new = After(other.id, once=True)

    def reschedule(tx: Tx) -> None:
        before = tx.conversations.lock(USER, task.id)
        steps.save(tx, transitions.set_schedule(before, new, now=tx.now))

    stage.database.run(reschedule)
    going.set()
    await stage.idle()

    after = stage.load(task)
    assert (after.schedule, after.ended_as) == (new, None)


async def test_messages_do_not_prolong_the_waiting_of_late_work(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    note_trouble(stage)
    task = await stage.task()
    for hour in range(26):
        clock.advance(HOUR)
        note_trouble(stage)
        if hour % 10 == 9:
            await stage.say(task, "Any news?")
            await stage.take_up()
            await stage.idle()
        await stage.outage_reporter.run_once()

    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_a_reply_that_was_interrupted_does_not_hide_a_crash(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(DOWN_FOR_AN_HOUR))
    task = await stage.task()
    await wait_for_jobs(stage, 30 * HOUR)
    await keep_in_outage(stage)
    await pass_time(stage, clock, 29 * HOUR, HOUR)
    clock.advance(HOUR)
    stage.engine.then(Wait())
    await stage.take_up()
    stage.kill()
    clock.advance(2 * LEASE)
    assert await stage.rescuer.run_once()
    note_trouble(stage)
    stage.engine.then(Wait())
    await stage.say(task, "What happens?")
    await stage.take_up()
    stage.underway.stop_all(StopReason.DRAINING)
    await stage.idle()
    await stage.outage_reporter.run_once()

    assert stage.load(task).ended_as is None
