"""Trouble of a model's provider: work waits for it and is not blamed; its owner is told once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, Say, ScriptedEngine, Wait
from support.requirements import requirement
from support.stage.make import MATE, NOON, STRANGER, USER
from support.stage.provider import BACK, DENIED, DOWN, Provider, outages, pass_time
from support.stage.stage import Stage
from support.statements import watched

from backburner.actions import steps
from backburner.actions.deps import Limits
from backburner.core import retry, transitions
from backburner.core.conversation import Author, Conversation, EndedAs, Kind, Status
from backburner.core.errors import EngineFailed
from backburner.core.ids import UserId
from backburner.core.retry import FIRST_REST, MAX_REST
from backburner.core.routing import Routes
from backburner.core.run import Failure, FailureKind, RunStatus
from backburner.core.schedule import After, Interval, Scheduled
from backburner.core.transitions import Report
from backburner.ports import Tx
from backburner.store import tables
from backburner.worker.known_outages import KnownOutages
from backburner.worker.outage_reporter import BATCH, USER_BATCH

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)


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
        stage.claiming.outages = KnownOutages(lambda: 0)

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


async def test_a_refused_key_is_reported_to_operators_and_pauses_nothing(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider(DENIED)
    stage = set_up(otherwise=provider)
    make_operator(stage, MATE)
    await stage.chat(MATE)
    task = await stage.task(EVERY_HOUR, user=USER)
    await stage.work()

    await pass_time(stage, clock, 2 * HOUR, 4 * MINUTE)

    assert stage.load(task).status is Status.BACKGROUND
    assert sorted(user for user, _ in told(stage)) == sorted([USER, MATE])
    assert all("The key was refused. Enter another." in text for _, text in told(stage))
    # Its owner has to act first.
    assert len(stage.engine.requests) <= 2 * HOUR / retry.ACCESS_DENIED_REST + 1

    provider.trouble = None
    stage.database.run(lambda tx: tx.outages.probe_soon(["scripted"]))
    clock.advance(timedelta(seconds=31))
    await stage.work()
    assert outages(stage) == []


def told(stage: Stage) -> list[tuple[str, str]]:
    """List whom the notices are for, and their text."""
    asked = tables.notices.select().order_by(tables.notices.c.created_at)
    rows = stage.database.run(lambda tx: tx.connection.execute(asked).all())
    return [(row.user_id, row.text) for row in rows]


def make_operator(stage: Stage, user: UserId) -> None:
    stage.user(user)
    change = tables.users.update().where(tables.users.c.id == user).values(role="operator")
    stage.database.run(lambda tx: tx.connection.execute(change))


async def test_an_operator_without_a_conversation_is_told_in_a_new_one(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider(DENIED)
    stage = set_up(otherwise=provider)
    make_operator(stage, MATE)
    stage.user(STRANGER)
    await stage.task(EVERY_HOUR)
    await stage.work()

    await pass_time(stage, clock, 10 * MINUTE, MINUTE)

    assert sorted(user for user, _ in told(stage)) == [MATE, USER]
    find = tables.conversations.select().where(tables.conversations.c.user_id == MATE)
    row = stage.database.run(lambda tx: tx.connection.execute(find).one())
    chat = stage.database.run(lambda tx: tx.conversations.load(MATE, row.id))
    assert chat.title == "Model not available"
    assert "The key was refused. Enter another." in stage.said(chat)[0]

    provider.trouble = None
    stage.database.run(lambda tx: tx.outages.probe_soon(["scripted"]))
    await pass_time(stage, clock, 2 * MINUTE, MINUTE)
    assert sorted(user for user, text in told(stage) if text == BACK) == [MATE, USER]
    assert sum(user == MATE for user, _ in told(stage)) == 2


async def run_now(stage: Stage) -> Conversation:
    task = await stage.task(Scheduled(NOON + 400 * HOUR))

    def ask(tx: Tx) -> None:
        steps.save(tx, transitions.run_now(tx.conversations.lock(task.user_id, task.id)))

    stage.database.run(ask)
    return task


async def event(stage: Stage) -> Conversation:
    first = await stage.task(Scheduled(NOON + 400 * HOUR))
    task = await stage.task(After(first.id))

    def receive(tx: Tx) -> None:
        before = tx.conversations.lock(task.user_id, task.id)
        steps.save(tx, transitions.receive_event(before, {"source": "test"}))

    stage.database.run(receive)
    return task


async def job_result(stage: Stage) -> Conversation:
    chat = await stage.chat()
    job = await stage.task(Scheduled(NOON + 400 * HOUR))

    def receive(tx: Tx) -> None:
        before = tx.conversations.lock(chat.user_id, chat.id)
        child = replace(job, kind=Kind.JOB, created_by=Author.AGENT)
        steps.save(tx, transitions.receive_report(before, child, Report("Found it.")))

    stage.database.run(receive)
    return chat


@pytest.mark.parametrize("begin", [run_now, event, job_result])
@pytest.mark.parametrize("is_tried", [True, False])
@requirement("B-retry")
async def test_every_background_run_that_waits_is_reported_once(
    set_up: Callable[..., Stage],
    clock: SetClock,
    begin: Callable[[Stage], Awaitable[Conversation]],
    *,
    is_tried: bool,
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    if not is_tried:
        # Somebody else's work is the probe, and has the profile rest.
        await stage.task(EVERY_HOUR, user=MATE)
        await stage.work()
    waiting = await begin(stage)
    await stage.work()

    await pass_time(stage, clock, 40 * MINUTE, MINUTE)

    assert [user for user, _ in told(stage)].count(USER) == 1
    find = tables.notices.select().where(tables.notices.c.user_id == USER)
    row = stage.database.run(lambda tx: tx.connection.execute(find).one())
    assert row.conversation_id == waiting.id
    provider.trouble = None
    await pass_time(stage, clock, 2 * MAX_REST, MINUTE)
    assert told(stage).count((USER, BACK)) == 1


async def test_a_user_who_deletes_the_conversation_is_told_once_and_of_the_end(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    provider = Provider()
    stage = set_up(otherwise=provider)
    first = await stage.task(EVERY_HOUR)
    await stage.work()
    clock.advance(timedelta(seconds=1))
    await stage.task()
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)
    assert len(stage.notices()) == 1

    stage.database.run(lambda tx: tx.conversations.delete(USER, first.id))
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)
    assert stage.notices() == []

    provider.trouble = None
    await pass_time(stage, clock, 2 * MAX_REST, MINUTE)
    assert stage.notices().count(BACK) == 1


async def test_a_user_who_had_paused_all_work_is_told_when_it_waits_again(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider())
    await stage.task(EVERY_HOUR)
    await stage.work()
    stage.database.run(lambda tx: tx.users.set_paused(USER, paused=True))
    await pass_time(stage, clock, 10 * MINUTE, MINUTE)
    assert stage.notices() == []

    stage.database.run(lambda tx: tx.users.set_paused(USER, paused=False))
    await pass_time(stage, clock, 2 * MINUTE, MINUTE)

    assert len(stage.notices()) == 1


async def test_a_look_at_an_outage_costs_the_same_however_much_waits(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(max_tasks=1000))
    for user in (USER, MATE):
        await stage.task(EVERY_HOUR, user=user)
    await stage.work()
    clock.advance(2 * MINUTE)

    async def look() -> int:
        with watched(stage.database) as seen:
            await stage.outage_reporter.run_once()
        return len(seen)

    first, again = await look(), await look()
    assert len(stage.notices()) == 2
    assert first > again
    for _ in range(250):
        await stage.task()
    clock.advance(2 * MINUTE)
    assert [await look(), await look()] == [again, again]
    stage.user(STRANGER)
    await stage.task(user=STRANGER)
    clock.advance(2 * MINUTE)
    assert [await look(), await look()] == [again + (first - again) // 2, again]


async def test_a_look_at_an_outage_continues_where_the_last_one_ended(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=Provider(), limits=Limits(max_tasks=1000))
    # Before this user, by their ids, and before this work, by its time.
    many = [
        {"id": f"a_{number}", "served_at": NOON, "created_at": NOON} for number in range(USER_BATCH)
    ]
    stage.database.run(lambda tx: tx.connection.execute(tables.users.insert(), many))
    for _ in range(BATCH):
        await stage.task(EVERY_HOUR)
    clock.advance(timedelta(seconds=1))
    task = await stage.task()
    failure = Failure(FailureKind.UNAVAILABLE, "It is down.", retry_after=retry.MAX_RETRY_AFTER)
    stage.database.run(lambda tx: tx.outages.note("scripted", failure, probed=True))
    clock.advance(2 * MINUTE)
    for count in (0, 1):
        await stage.outage_reporter.run_once()
        assert len(stage.notices()) == count

    clock.advance(retry.MAX_OUTAGE_WAIT)
    stage.database.run(lambda tx: tx.outages.note("scripted", failure, probed=True))
    for _ in range(2):
        assert stage.load(task).ended_as is None
        await stage.outage_reporter.run_once()
    assert stage.load(task).ended_as is EndedAs.ERROR


async def test_an_outage_of_seconds_is_reported_to_nobody(stage: Stage, clock: SetClock) -> None:
    stage.engine.then(DOWN)
    stage.engine.then(End({"complete": True}))
    await stage.task()
    await stage.work()

    await pass_time(stage, clock, 2 * MINUTE, FIRST_REST)

    assert stage.notices() == []
