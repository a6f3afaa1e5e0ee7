"""Seats are counted under the model that a run will use, also where that is another one."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from support.doubles.engine import End, ScriptedEngine, Wait
from support.requirements import requirement
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage

from backburner.actions import chat, conversations
from backburner.actions.chat import NewChat
from backburner.actions.deps import Limits
from backburner.actions.models.changes import ModelChoice
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.bus.local import LocalBus
from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.ids import UserId
from backburner.core.routing import Routes
from backburner.core.run import RunKind
from backburner.core.schedule import Immediate, Interval
from backburner.store.db import Database
from backburner.worker.seats import Seats

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
THIRD = UserId("u_third")
ASKED = {
    "needs_input": True,
    "message": "Which?",
    "question": {"type": "input", "prompt": "Which month?"},
}
DEMO_ONLY = Routes(names=("demo",), chat="demo")
REAL = Routes(names=("remote", "local", "demo"), chat="remote", background="local")


def make_stage(database: Database, seats: Mapping[str, int], *, routes: Routes = REAL) -> Stage:
    """Make a stage with two models and the demo, whose runs never end by themselves."""
    engines = {name: ScriptedEngine(otherwise=lambda _: [Wait()]) for name in REAL.names}
    return Stage(
        database,
        LocalBus(),
        engines["remote"],
        seats=Seats(total=9, per_profile=seats, default_profile="remote"),
        engines=engines,
        default_profile=routes.chat,
        routes=routes,
        injection_proof=frozenset({"demo"}),
        limits=Limits(
            min_interval=MINUTE,
            yield_timeout=timedelta(milliseconds=200),
            stop_timeout=timedelta(seconds=2),
        ),
    )


async def ask(stage: Stage, talk: Conversation, profile: str | None = None) -> None:
    await chat.send(stage.deps, talk.user_id, talk.id, "Hello?", profile=profile)


def running(stage: Stage) -> list[str]:
    return sorted(run.profile for run in stage.underway)


def set_up_models(stage: Stage) -> None:
    """Set up the models that a stage with the demo did not have."""
    stage.deps.routes, stage.deps.default_profile = REAL, REAL.chat


@requirement("Z-model-change")
async def test_messages_for_a_model_with_one_seat_are_answered_one_after_the_other(
    either: Database,
) -> None:
    stage = make_stage(either, {"local": 1})
    for _ in range(3):
        await ask(stage, await stage.chat(), "local")
    await stage.take_up()

    assert running(stage) == ["local"]
    stage.kill()


@requirement("Z-model-change")
async def test_a_message_for_a_free_model_does_not_wait_for_that_of_its_conversation(
    either: Database,
) -> None:
    stage = make_stage(either, {"remote": 1})
    await ask(stage, await stage.chat())
    await ask(stage, await stage.chat(), "local")
    await stage.take_up()

    assert running(stage) == ["local", "remote"]
    stage.kill()


@pytest.mark.parametrize("kind", ["chats", "tasks"])
@requirement("Z-model-change")
async def test_what_leaves_the_demo_takes_seats_of_the_model_that_was_set_up(
    either: Database, kind: str
) -> None:
    stage = make_stage(either, {"remote": 1, "local": 1}, routes=DEMO_ONLY)
    for user in (USER, MATE, THIRD):
        if kind == "chats":
            await ask(stage, await stage.chat(user))
        else:
            await stage.task(user=user)
    set_up_models(stage)
    await stage.take_up()

    assert running(stage) == (["remote"] if kind == "chats" else ["local"])
    stage.kill()


async def test_work_that_stays_with_the_demo_takes_no_seat_of_a_model(either: Database) -> None:
    stage = make_stage(either, {"local": 1}, routes=DEMO_ONLY)
    often = Interval(timedelta(seconds=1), anchor=NOON)
    tasks = [await stage.task(often, user=user) for user in (USER, MATE)]
    set_up_models(stage)
    for task in tasks:
        await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
    await stage.take_up()
    assert running(stage) == ["demo", "demo"]
    await stage.task(user=THIRD)
    await stage.take_up()

    assert running(stage) == ["demo", "demo", "local"]
    stage.kill()


async def test_long_runs_that_leave_the_demo_leave_a_seat_to_short_ones(either: Database) -> None:
    stage = make_stage(either, {"local": 4}, routes=DEMO_ONLY)
    for user in (USER, MATE, THIRD):
        await stage.task(user=user, run_timeout=HOUR)
    set_up_models(stage)
    await stage.take_up()

    # Of four seats one is for replies, and one for short runs.
    assert running(stage) == ["local", "local"]
    stage.kill()


async def test_long_runs_count_under_the_model_that_messages_asked_for(either: Database) -> None:
    stage = make_stage(either, {"local": 4})
    for user in (USER, MATE):
        later = Interval(HOUR, anchor=NOON)
        talk = await stage.task(later, user=user, run_timeout=HOUR, profile="remote")
        await ask(stage, talk, "local")
    await stage.task(user=THIRD, run_timeout=HOUR)
    await stage.take_up()

    # Of four seats one is for replies, and one for short runs.
    assert running(stage) == ["local", "local"]
    stage.kill()


async def test_a_run_that_an_answer_gave_another_model_makes_room_in_that_model(
    either: Database,
) -> None:
    stage = make_stage(either, {"local": 1, "remote": 1})
    stage.engine.then(End(ASKED))
    task = await stage.task(profile="remote")
    await stage.work()
    await chat.send(stage.deps, USER, task.id, "March.", profile="local")
    await stage.take_up()
    assert running(stage) == ["local"]
    await ask(stage, await stage.chat(MATE), "local")
    await stage.take_up()

    assert [run.is_stopping for run in stage.underway] == [True]
    stage.kill()


async def test_a_message_for_a_full_model_makes_room_in_that_model(either: Database) -> None:
    stage = make_stage(either, {"local": 1, "remote": 1})
    local = await stage.task(Immediate())
    remote = await stage.task(Immediate(), user=MATE, profile="remote")
    await stage.take_up()
    assert running(stage) == ["local", "remote"]
    talk = await stage.chat(THIRD)
    await ask(stage, talk, "local")
    await stage.take_up()

    stopping = {run.claim.turn.conversation_id: run.is_stopping for run in stage.underway}
    assert stopping == {local.id: True, remote.id: False}
    stage.kill()


async def test_no_run_makes_room_for_a_message_to_a_free_model(either: Database) -> None:
    stage = make_stage(either, {"local": 1, "remote": 1})
    await stage.task(Immediate(), profile="remote")
    await stage.take_up()
    talk = await stage.chat(MATE)
    await ask(stage, talk, "local")
    await stage.take_up()

    assert not any(run.is_stopping for run in stage.underway)
    assert running(stage) == ["local", "remote"]
    stage.kill()


async def test_a_run_makes_room_by_the_model_that_it_uses(either: Database) -> None:
    """Its conversation has another model since."""
    stage = make_stage(either, {"local": 1, "remote": 1})
    moved = await stage.task(Immediate())
    await stage.take_up()
    await conversations.update(
        stage.deps, USER, moved.id, conversations.Changes(model=ModelChoice("remote"))
    )
    talk = await chat.start(stage.deps, stage.user(MATE), NewChat(profile="local"))
    await ask(stage, talk)
    await stage.take_up()

    assert [run.is_stopping for run in stage.underway] == [True]
    stage.kill()


async def test_after_the_reply_the_conversation_takes_seats_of_its_own_model(
    either: Database,
) -> None:
    stage = make_stage(either, {"local": 1, "remote": 1})
    stage.deps.engines["local"].then()  # type: ignore[attr-defined]
    talk = await stage.chat()
    await ask(stage, talk, "local")
    await stage.work()
    await ask(stage, talk)
    other = await stage.chat(MATE)
    await ask(stage, other, "local")
    await stage.take_up()

    assert running(stage) == ["local", "remote"]
    assert {run.claim.turn.kind for run in stage.underway} == {RunKind.REPLY}
    stage.kill()


async def test_a_reply_that_no_room_can_be_made_for_keeps_none_from_the_next(
    either: Database,
) -> None:
    stage = make_stage(either, {"local": 1, "remote": 1})
    await ask(stage, await stage.chat(), "local")
    await stage.take_up()
    await stage.task(Immediate(), user=MATE, profile="remote")
    await stage.take_up()
    assert running(stage) == ["local", "remote"]
    # The reply that has the only seat of this model is not stopped for another one.
    await ask(stage, await stage.chat(), "local")
    await ask(stage, await stage.chat(THIRD))
    await stage.take_up()

    stopping = {run.profile: run.is_stopping for run in stage.underway}
    assert stopping == {"local": False, "remote": True}
    stage.kill()


@pytest.mark.parametrize("change", ["schedule", "pause"])
async def test_an_answer_that_waits_keeps_its_model_when_the_work_is_changed(
    either: Database, change: str
) -> None:
    stage = make_stage(either, {})
    stage.engine.then(End(ASKED))
    task = await stage.task(Interval(HOUR, anchor=NOON), profile="remote")
    origin = Origin.by_user(USER)
    await control.run_now(stage.deps, origin, task.id)
    await stage.work()
    await chat.send(stage.deps, USER, task.id, "March.", profile="local")
    if change == "schedule":
        timing = Interval(2 * HOUR, anchor=NOON)
        stage.database.run(
            lambda tx: tx.conversations.save(
                transitions.set_schedule(tx.conversations.load(USER, task.id), timing, now=tx.now)
            )
        )
    else:
        await control.pause(stage.deps, origin, task.id)
        await control.resume(stage.deps, origin, task.id)
    await control.run_now(stage.deps, origin, task.id)
    await stage.take_up()

    assert running(stage) == ["local"]
    stage.kill()
