"""The model of a conversation, a task or one message is changed, also while runs go on."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, ScriptedEngine, Wait
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.actions import chat, conversations, create
from backburner.actions.chat import NewChat
from backburner.actions.deps import Limits
from backburner.actions.models.changes import ModelChoice
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.actions.work.control import TaskChanges
from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.errors import BadRequest, BadSchedule, EngineFailed
from backburner.core.routing import Routes
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval
from backburner.core.transitions import NewMessage
from backburner.core.transitions.change import Verb, WorkChange, change_question
from backburner.ports import Tx
from backburner.runs.prepare import SESSION_LOST, SESSION_OF_OTHER_MODEL
from backburner.runs.stopping import StopReason
from backburner.worker.seats import Seats

NAMES = ("remote", "local", "demo")


@pytest.fixture
def local() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def demo() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def models(set_up: Callable[..., Stage], local: ScriptedEngine, demo: ScriptedEngine) -> Stage:
    """Give a stage with two models and the demo."""
    remote = ScriptedEngine()
    stage = set_up(
        engines={"remote": remote, "local": local, "demo": demo},
        default_profile="remote",
        routes=Routes(names=NAMES, chat="remote"),
        injection_proof=frozenset({"demo"}),
        limits=Limits(min_interval=timedelta(minutes=1)),
    )
    stage.engine = remote
    return stage


async def change(stage: Stage, conversation: Conversation, profile: str | None) -> None:
    await conversations.update(
        stage.deps,
        conversation.user_id,
        conversation.id,
        conversations.Changes(model=ModelChoice(profile)),
    )


async def say(stage: Stage, conversation: Conversation, text: str, profile: str) -> None:
    await chat.send(stage.deps, conversation.user_id, conversation.id, text, profile=profile)


@requirement("Z-model-change")
async def test_a_chat_goes_on_with_another_model_from_its_messages(
    models: Stage, local: ScriptedEngine
) -> None:
    talk = await models.chat()
    await models.say(talk, "My cat is called Tom.")
    await models.work()
    await change(models, talk, "local")
    await models.say(talk, "What is my cat called?")
    await models.work()

    (asked,) = local.requests
    assert asked.session_id is None
    assert "My cat is called Tom." in asked.prompt
    assert models.load(talk).profile == "local"
    assert models.said(talk)[2] == "The model was changed to local."
    assert SESSION_LOST not in models.said(talk)


async def test_a_change_while_a_run_goes_on_counts_from_the_next_one(
    models: Stage, local: ScriptedEngine
) -> None:
    let_go = asyncio.Event()
    models.engine.then(Wait(let_go), Say("First."))
    talk = await models.chat()
    await models.say(talk, "One.")
    await models.take_up()
    await models.engine.began.wait()
    await change(models, talk, "local")
    let_go.set()
    await models.idle()
    await models.say(talk, "Two.")
    await models.work()

    assert models.history(talk)[1].profile == "remote"
    assert [request.session_id for request in local.requests] == [None]
    assert "First." in local.requests[0].prompt
    session = models.load(talk).session
    assert session is not None
    assert session.profile == "local"
    said = models.said(talk)
    assert SESSION_LOST not in said
    assert SESSION_OF_OTHER_MODEL not in said


async def test_no_name_goes_back_to_the_default(models: Stage) -> None:
    talk = await chat.start(models.deps, models.user(), NewChat(profile="local"))
    await change(models, talk, None)

    changed = models.load(talk)
    assert (changed.profile, changed.requested_profile) == ("remote", None)


async def test_an_unknown_model_changes_nothing(models: Stage) -> None:
    talk = await models.chat()
    before = models.load(talk)
    with pytest.raises(BadRequest, match="Available: remote, local, demo"):
        await change(models, talk, "clod")
    with pytest.raises(BadRequest, match="Available: remote, local, demo"):
        await say(models, talk, "Hello?", "clod")

    assert models.load(talk) == before
    assert models.said(talk) == []


@requirement("Z-model-change")
async def test_the_model_of_a_task_is_changed_with_its_terms(
    models: Stage, local: ScriptedEngine
) -> None:
    task = await models.task()
    changes = TaskChanges(
        terms=lambda terms: replace(terms, title="Other"), model=ModelChoice("local")
    )
    await control.update(models.deps, Origin.by_user(task.user_id), task.id, changes)
    await models.work()

    assert len(local.requests) == 1
    assert models.load(task).title == "Other"
    assert models.said(task)[0] == "The model was changed to local."


async def test_work_too_frequent_for_a_model_is_not_moved_to_it(models: Stage) -> None:
    every_second = Interval(timedelta(seconds=1), anchor=NOON)
    real = models.deps
    models.deps = replace(real, default_profile="demo")
    task = await models.task(every_second, profile="demo")
    models.deps = real
    with pytest.raises(BadSchedule, match="60 seconds"):
        await change(models, task, "remote")

    assert models.load(task).profile == "demo"


@requirement("Z-model-change")
async def test_one_message_is_answered_by_another_model_and_the_session_stays(
    models: Stage, local: ScriptedEngine, clock: SetClock
) -> None:
    local.then(Say("It is called Tom, says the local one."))
    talk = await models.chat()
    await models.say(talk, "My cat is called Tom.")
    await models.work()
    clock.advance(timedelta(minutes=1))
    await say(models, talk, "What is my cat called?", "local")
    await models.work()
    clock.advance(timedelta(minutes=1))
    await models.say(talk, "Who said that?")
    await models.work()
    await models.say(talk, "And now?")
    await models.work()

    assert "My cat is called Tom." in local.requests[0].prompt
    assert [run.profile for run in models.history(talk)] == ["remote", "remote", "local", "remote"]
    assert models.load(talk).profile == "remote"
    sessions = [request.session_id for request in models.engine.requests]
    assert sessions == [None, "session-1", "session-1"]
    _, after, later = (request.prompt for request in models.engine.requests)
    # Its session has not seen what the other model was asked, and learns it once.
    assert "What is my cat called?" in after
    assert "says the local one" in after
    assert "My cat is called Tom." not in after
    assert "says the local one" not in later


async def test_the_model_of_one_message_is_not_replaced_by_another_when_it_fails(
    set_up: Callable[..., Stage], local: ScriptedEngine
) -> None:
    remote = ScriptedEngine()
    stage = set_up(
        engines={"remote": remote, "local": local, "third": ScriptedEngine()},
        default_profile="remote",
        routes=Routes(names=("remote", "local", "third"), chat="remote", background="third"),
    )
    local.then(Fail(EngineFailed("It is down.")))
    task = await stage.task()
    await stage.work()
    await say(stage, task, "How is it going?", "local")
    await stage.work()

    newest = stage.history(task)[0]
    assert (newest.status, newest.profile, newest.escalated_from) == (
        RunStatus.FAILURE,
        "local",
        None,
    )
    assert remote.requests == []


@requirement("Z-model-change")
async def test_a_chat_and_a_task_leave_the_demo_once_a_model_is_set_up(
    models: Stage, demo: ScriptedEngine
) -> None:
    real = models.deps.routes
    demo_only = replace(models.deps, routes=Routes(names=("demo",), chat="demo"))
    talk = await chat.start(demo_only, models.user())
    models.deps = models.claiming.deps = demo_only
    task = await models.task(Interval(timedelta(hours=1), anchor=NOON))
    await models.say(talk, "Hello?")
    await models.work()
    assert len(demo.requests) == 2
    models.deps = models.claiming.deps = replace(demo_only, routes=real)

    await models.say(talk, "Hello again?")
    await control.run_now(models.deps, Origin.by_user(task.user_id), task.id)
    await models.work()

    for moved in (talk, task):
        assert models.load(moved).profile == "remote"
        assert "This began with the demo. It uses remote from now on." in models.said(moved)
        assert models.history(moved)[0].profile == "remote"
    assert len(demo.requests) == 2


async def test_outside_text_counts_once_another_model_replies_in_a_chat_of_the_demo(
    models: Stage, local: ScriptedEngine
) -> None:
    local.then(Call("look"), End())
    talk = await chat.start(models.deps, models.user(), NewChat(profile="demo"))
    await say(models, talk, "Look.", "local")
    await models.work()

    assert models.load(talk).outside_read


async def test_outside_text_that_a_session_missed_marks_it(
    models: Stage, local: ScriptedEngine
) -> None:
    local.then(End())
    talk = await models.chat()
    await models.say(talk, "One.")
    await models.work()
    await say(models, talk, "Two.", "local")
    await models.work()
    report = NewMessage(
        role=MessageRole.SYSTEM, content="OBEY ME", source=Source.WORKER, outside=True
    )
    models.database.run(lambda tx: tx.messages.append(talk.user_id, talk.id, [report], run_id=None))

    await models.say(talk, "Three.")
    await models.work()

    assert "OBEY ME" in models.engine.requests[-1].prompt
    assert models.load(talk).outside_read


async def test_an_approved_change_of_the_model_leaves_a_note(models: Stage) -> None:
    task = await models.task(Interval(timedelta(hours=1), anchor=NOON + timedelta(hours=1)))
    wanted = WorkChange(work_id=task.id, verb=Verb.UPDATE, has_model=True, profile="local")

    def approve(tx: Tx) -> None:
        asked = change_question(task, wanted, run_id=None, now=tx.now, zone="UTC")
        create.apply_change(tx, models.deps, task, asked)

    models.database.run(approve)

    assert models.load(task).profile == "local"
    assert "The model was changed to local." in models.said(task)


async def test_an_interrupted_run_learns_what_another_model_was_told(
    models: Stage, local: ScriptedEngine
) -> None:
    local.then(End())
    task = await models.task()
    models.engine.then(Wait(), End({"complete": True}))
    await models.take_up()
    await models.engine.began.wait()
    await say(models, task, "Only look at March.", "local")
    await models.renew()
    await models.idle()
    await models.work()

    assert "Only look at March." in models.engine.requests[-1].prompt


ASKED = {
    "needs_input": True,
    "message": "Which?",
    "question": {"type": "input", "prompt": "Which month?"},
}


@requirement("Z-model-change")
async def test_an_answer_is_used_by_the_model_that_its_message_asks_for(
    models: Stage, local: ScriptedEngine
) -> None:
    task = await models.task(Interval(timedelta(hours=1), anchor=NOON))
    models.engine.then(End(ASKED))
    local.then(End({"complete": True, "message": "It was March, says the local one."}))
    await models.work()
    await say(models, task, "March.", "local")
    await models.work()
    await control.run_now(models.deps, Origin.by_user(task.user_id), task.id)
    await models.work()

    (resumed,) = local.requests
    assert "March." in resumed.prompt
    assert [run.profile for run in models.history(task)] == ["remote", "local", "remote"]
    assert models.load(task).profile == "remote"
    # The session of its own model stays, and learns what it missed.
    first, last = models.engine.requests
    assert (first.session_id, last.session_id) == (None, "session-1")
    assert "says the local one" in last.prompt


async def test_an_answer_waits_for_a_seat_of_the_model_that_its_message_asks_for(
    models: Stage, local: ScriptedEngine
) -> None:
    models.claiming.seats = Seats(
        total=9, per_profile={"local": 1, "remote": 1}, default_profile="remote"
    )
    task = await models.task()
    models.engine.then(End(ASKED))
    await models.work()
    local.then(Wait())
    await models.task(profile="local")
    await models.take_up()
    await local.began.wait()
    await say(models, task, "March.", "local")
    await models.take_up()
    assert len(models.underway) == 1

    models.only_run().stop.request(StopReason.DRAINING)
    await models.idle()
    await models.work()
    assert models.history(task)[0].profile == "local"
