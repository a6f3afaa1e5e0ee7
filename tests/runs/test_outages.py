"""Trouble of a model's provider: work waits for it and is not blamed; its owner is told once."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Say, ScriptedEngine, Spend, Wait
from support.requirements import requirement
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage
from support.stage.whole_worker import until

from backburner.actions.deps import Limits
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.core import retry
from backburner.core.accounts import Role
from backburner.core.conversation import EndedAs, Status
from backburner.core.errors import EngineFailed, ModelAccessDenied, ModelUnavailable
from backburner.core.retry import FIRST_REST, MAX_REST, Outage
from backburner.core.routing import Routes
from backburner.core.run import FailureKind, RunStatus
from backburner.core.schedule import Interval
from backburner.ports import TurnRequest
from backburner.store import tables
from backburner.worker.outage_reporter import OutageReporter
from backburner.worker.resting_profiles import RestingProfiles

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)
DOWN = Fail(ModelUnavailable("The model is overloaded."))
DENIED = Fail(ModelAccessDenied("The key was refused.", hint="Enter another.", permanent=True))
BACK = "The model is available again. Background work that waited for it continues."


class Provider:
    """Of a model that fails until it is repaired."""

    def __init__(self, trouble: Fail = DOWN) -> None:
        self.trouble: Fail | None = trouble

    def __call__(self, _request: TurnRequest) -> list[Fail | End]:
        return [self.trouble or End({"complete": True, "message": "Done."})]


def outages(stage: Stage) -> list[Outage]:
    return list(stage.database.run(lambda tx: tx.outages.all()))


async def pass_time(stage: Stage, clock: SetClock, length: timedelta, step: timedelta) -> None:
    """Let a worker work and report while time passes."""
    until = clock.now + length
    while clock.now < until:
        clock.advance(step)
        await stage.work()
        await stage.outage_reporter.run_once()


@requirement("B-retry")
async def test_a_run_that_meets_trouble_waits_and_is_the_same_run_afterwards(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(DOWN)
    task = await stage.task(EVERY_HOUR)

    await stage.work()

    (waiting,) = stage.history(task)
    assert waiting.status is RunStatus.QUEUED
    assert waiting.failure is not None
    assert waiting.failure.kind is FailureKind.UNAVAILABLE
    assert stage.load(task).status is Status.BACKGROUND
    await stage.work()
    assert len(stage.engine.requests) == 1

    clock.advance(FIRST_REST)
    await stage.work()

    (run,) = stage.history(task)
    assert (run.id, run.status, run.failure) == (waiting.id, RunStatus.SUCCESS, None)
    after = stage.load(task)
    assert (after.failures, after.run_count, after.pause_reason) == (0, 1, None)
    assert after.next_run_at == NOON + HOUR
    assert outages(stage) == []


@requirement("B-retry")
async def test_trouble_of_hours_pauses_nothing_and_is_reported_once(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    tasks = [await stage.task(EVERY_HOUR) for _ in range(3)]
    await stage.work()

    await pass_time(stage, clock, 3 * HOUR, 2 * MINUTE)

    for task in tasks:
        assert stage.load(task).status is Status.BACKGROUND
        assert stage.load(task).failures == 0
        assert [run.status for run in stage.history(task)] == [RunStatus.QUEUED]
    assert len(stage.notices()) == 1
    assert "overloaded" in stage.notices()[0]
    (outage,) = outages(stage)
    assert outage.since == NOON
    # One probe at a time, and ever more rarely.
    assert len(stage.engine.requests) <= 3 + 3 * HOUR / MAX_REST + 6

    provider.trouble = None
    await pass_time(stage, clock, 2 * MAX_REST, MINUTE)

    assert outages(stage) == []
    assert stage.notices()[1:].count(BACK) == 1
    for task in tasks:
        statuses = [run.status for run in stage.history(task)]
        # What was missed meanwhile is one row.
        assert sorted(statuses) == [RunStatus.SKIPPED, RunStatus.SUCCESS]
    await pass_time(stage, clock, HOUR / 2, 5 * MINUTE)
    assert stage.notices().count(BACK) == 1


async def test_of_work_that_waits_one_run_is_the_probe(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(DOWN)
    await stage.task()
    await stage.work()
    others = [await stage.task() for _ in range(3)]
    await stage.work()
    assert len(stage.engine.requests) == 1

    stage.engine.then(Wait())
    clock.advance(FIRST_REST)
    await stage.take_up()

    assert len(stage.underway) == 1
    assert [stage.history(task) for task in others].count(()) >= 2
    # If nothing is heard of it, another one tries.
    stage.kill()
    clock.advance(retry.PROBE_TIME)
    await stage.work()
    assert outages(stage) == []


@pytest.mark.parametrize("well", [True, False])
async def test_a_reply_tries_at_once_and_says_what_is_wrong(
    stage: Stage, clock: SetClock, *, well: bool
) -> None:
    stage.engine.then(DOWN)
    task = await stage.task(EVERY_HOUR)
    await stage.work()
    (before,) = outages(stage)
    clock.advance(timedelta(seconds=1))
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    stage.engine.then(Say("Hello.") if well else DOWN)

    await stage.work()

    if well:
        assert stage.said(chat)[-1] == "Hello."
        assert outages(stage) == []
        clock.advance(FIRST_REST)
        await stage.work()
        assert stage.history(task)[0].status is RunStatus.SUCCESS
    else:
        assert stage.said(chat)[-1].endswith("The model is overloaded. You can try again.")
        (after,) = outages(stage)
        assert (after.probes, after.until > before.until) == (2, True)


async def test_nobody_pays_for_another_model_because_of_trouble(
    set_up: Callable[..., Stage],
) -> None:
    local = ScriptedEngine([DOWN])
    stage = set_up(
        engines={"remote": ScriptedEngine(), "local": local},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
        limits=Limits(),
    )
    task = await stage.task()

    await stage.work()

    (run,) = stage.history(task)
    assert (run.status, run.escalated_from) == (RunStatus.QUEUED, None)
    assert [outage.profile for outage in outages(stage)] == ["local"]


async def test_work_under_another_profile_goes_on(set_up: Callable[..., Stage]) -> None:
    names = ("one", "two")
    stage = set_up(
        engines={"one": ScriptedEngine([DOWN]), "two": ScriptedEngine()},
        default_profile="one",
        routes=Routes(names=names, chat="one"),
        limits=Limits(),
    )
    first, second = [await stage.task(profile=name) for name in names]

    await stage.work()

    assert stage.load(first).ended_as is None
    assert stage.load(second).ended_as is EndedAs.COMPLETED


async def test_work_that_always_makes_its_provider_fail_tries_ever_more_rarely(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=lambda request: [Say("Hello.") if request.schema is None else DOWN])
    task = await stage.task(EVERY_HOUR)
    chat = await stage.chat()
    for _ in range(20):
        await stage.work()
        await stage.say(chat, "Hello?")
        await stage.work()
        assert stage.said(chat)[-1] == "Hello."
        clock.advance(MINUTE)

    # It meets trouble, and the model works for others: it is not paused, and holds up nobody.
    assert stage.load(task).failures == 0
    (run,) = stage.history(task)
    assert run.status is RunStatus.QUEUED
    tried = [request for request in stage.engine.requests if request.conversation.id == task.id]
    assert 2 <= len(tried) <= 12


async def test_a_herd_that_meets_trouble_twice_is_not_blamed(stage: Stage) -> None:
    tasks = [await stage.task(EVERY_HOUR) for _ in range(5)]
    for _ in range(2):
        # All are in progress when the first one fails.
        fails = asyncio.Event()
        for _ in tasks:
            stage.engine.then(Wait(fails), DOWN)
        await stage.take_up()
        assert len(stage.underway) == len(tasks)
        fails.set()
        await stage.idle()
        # Somebody else's reply ends the outage, and all of them come back together.
        stage.database.run(lambda tx: tx.outages.end("scripted"))
        stage.claiming.resting = RestingProfiles(lambda: 0)

    assert [stage.load(task).failures for task in tasks] == [0] * 5
    assert {stage.load(task).status for task in tasks} == {Status.BACKGROUND}


async def test_an_outage_of_the_fallback_is_a_failure_under_the_own_model(
    set_up: Callable[..., Stage],
) -> None:
    local = ScriptedEngine([Fail(EngineFailed("It is confused."))])
    stage = set_up(
        engines={"remote": ScriptedEngine([DOWN]), "local": local},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
        limits=Limits(),
    )
    task = await stage.task()

    await stage.work()

    (run,) = stage.history(task)
    assert (run.status, run.profile) == (RunStatus.FAILURE, "local")
    assert run.failure is not None
    assert run.failure.message == "It is confused."
    assert len(local.requests) == 1
    assert outages(stage) == []


async def test_an_outage_ends_with_the_first_answer_of_the_model(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(DOWN)
    await stage.task()
    await stage.work()
    clock.advance(FIRST_REST)
    stage.engine.then(Spend(10), Wait())

    await stage.take_up()
    await until(lambda: not outages(stage))

    stage.kill()


async def test_work_that_nobody_tries_is_not_ended(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    task = await stage.task()
    await stage.work()
    stage.database.run(lambda tx: tx.users.set_paused(USER, paused=True))

    await pass_time(stage, clock, 2 * retry.MAX_OUTAGE_WAIT, 6 * HOUR)
    assert stage.notices() == []
    stage.database.run(lambda tx: tx.users.set_paused(USER, paused=False))
    await stage.outage_reporter.run_once()

    assert stage.load(task).status is Status.BACKGROUND
    # A process that has just started has not tried it, either.
    clock.advance(retry.MAX_OUTAGE_WAIT)
    await stage.work()
    await OutageReporter(stage.deps).run_once()
    assert stage.load(task).status is Status.BACKGROUND


async def test_one_time_work_ends_after_a_day(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    task = await stage.task()
    recurring = await stage.task(EVERY_HOUR)
    await stage.work()

    await pass_time(stage, clock, retry.MAX_OUTAGE_WAIT - HOUR, HOUR / 2)
    assert stage.load(task).status is Status.BACKGROUND
    await pass_time(stage, clock, 2 * HOUR, HOUR / 2)

    assert stage.load(task).ended_as is EndedAs.ERROR
    assert "waited too long for its model. The model is overloaded." in stage.said(task)[-1]
    assert stage.history(task)[0].status is RunStatus.CANCELLED
    assert stage.load(recurring).status is Status.BACKGROUND


async def test_a_job_waits_for_as_long_as_it_may_take(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(run_timeout=10 * MINUTE))
    chat = await stage.chat()
    wish = jobs.JobRequest(description="One", prompt="Look.")
    (started,) = await jobs.start(stage.deps, Origin(chat.user_id, chat.id), [wish])
    job = stage.database.run(lambda tx: tx.conversations.load(chat.user_id, started.id))
    await stage.work()

    await pass_time(stage, clock, 9 * MINUTE, MINUTE)
    assert stage.load(job).status is Status.BACKGROUND
    await pass_time(stage, clock, 2 * MINUTE, MINUTE)

    assert stage.load(job).ended_as is EndedAs.ERROR


async def test_a_refused_key_is_reported_to_operators_and_pauses_nothing(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider(DENIED)
    stage = set_up(otherwise=provider)
    stage.user(MATE)
    stage.database.run(
        lambda tx: tx.connection.execute(
            tables.users.update().where(tables.users.c.id == MATE).values(role=Role.OPERATOR.value)
        )
    )
    await stage.chat(MATE)
    task = await stage.task(EVERY_HOUR, user=USER)
    await stage.work()

    await pass_time(stage, clock, 2 * HOUR, 4 * MINUTE)

    assert stage.load(task).status is Status.BACKGROUND
    told = stage.database.run(
        lambda tx: tx.connection.execute(tables.notices.select()).mappings().all()
    )
    assert sorted(row["user_id"] for row in told) == sorted([USER, MATE])
    assert all("The key was refused. Enter another." in row["text"] for row in told)
    # Its owner has to act first.
    assert len(stage.engine.requests) <= 2 * HOUR / retry.ACCESS_DENIED_REST + 1

    provider.trouble = None
    stage.database.run(lambda tx: tx.outages.probe_soon(["scripted"]))
    clock.advance(timedelta(seconds=31))
    await stage.work()
    assert outages(stage) == []


async def test_an_outage_of_seconds_is_reported_to_nobody(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(DOWN)
    stage.engine.then(End({"complete": True}))
    await stage.task()
    await stage.work()

    await pass_time(stage, clock, 2 * MINUTE, FIRST_REST)

    assert stage.notices() == []
