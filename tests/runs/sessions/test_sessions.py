"""The agent's own sessions: how long they may become, and which model goes on with which."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import select
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, ScriptedEngine
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.actions.deps import Limits
from backburner.actions.origin import Origin
from backburner.actions.work import jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.conversation import Session
from backburner.core.errors import EngineFailed, SessionGone
from backburner.core.routing import Routes
from backburner.core.run import FailureKind, RunStatus
from backburner.core.schedule import Interval
from backburner.core.work.summary import SUMMARY_SCHEMA
from backburner.runs.prepare import SESSION_CUT, SESSION_LOST, SESSION_OF_OTHER_MODEL
from backburner.runs.stopping import StopReason
from backburner.store import tables

MINUTE = timedelta(minutes=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)
QUIET = End({"complete": True})


def lengthen(stage: Stage, tokens: int) -> None:
    """Let every session be as long as that."""
    longer = tables.conversations.update().values(session_tokens=tokens)
    stage.database.run(lambda tx: tx.connection.execute(longer))


@requirement("Z-context")
async def test_work_begins_a_new_session_once_the_old_one_is_long(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    for tokens in (16_000, 16_001, 0):
        stage.engine.then(QUIET)
        await stage.work()
        lengthen(stage, tokens)
        clock.advance(MINUTE)
    stage.engine.then(QUIET)
    await stage.work()

    sessions = [request.session_id for request in stage.engine.requests]
    assert sessions == [None, "session-1", None, "session-3"]
    assert stage.said(task) == [SESSION_CUT]
    assert "# Your work" in stage.engine.requests[2].prompt
    # Nobody will ever go on with the first one.
    kept = select(tables.session_entries.c.session_id).distinct()
    assert stage.database.run(lambda tx: tx.connection.scalars(kept).all()) == ["session-3"]


async def test_that_a_session_was_begun_anew_is_not_said_twice_in_a_row(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    for _ in range(4):
        stage.engine.then(QUIET)
        await stage.work()
        lengthen(stage, 20_000)
        clock.advance(MINUTE)
    assert stage.said(task) == [SESSION_CUT]

    stage.engine.then(End({"complete": True, "message": "Found."}))
    await stage.work()
    lengthen(stage, 20_000)
    clock.advance(MINUTE)
    stage.engine.then(QUIET)
    await stage.work()
    assert stage.said(task) == [SESSION_CUT, "Found.", SESSION_CUT]


async def test_a_reply_goes_on_in_a_session_that_is_long_for_work(stage: Stage) -> None:
    chat = await stage.chat()
    for tokens in (16_001, 100_001, 0):
        await stage.say(chat, "Hello?")
        await stage.work()
        lengthen(stage, tokens)

    sessions = [request.session_id for request in stage.engine.requests]
    assert sessions == [None, "session-1", None]
    assert stage.said(chat)[-2:] == [SESSION_CUT, "Hello."]


async def test_a_job_that_is_tried_again_goes_on_in_a_session_that_is_long_for_work(
    stage: Stage, clock: SetClock
) -> None:
    chat = await stage.chat()
    stage.engine.then(Call("look"), Fail(EngineFailed("Broken.")))
    request = JobRequest(description="Long", prompt="Read every file.")
    await jobs.start(stage.deps, Origin(chat.user_id, chat.id), [request])
    await stage.work()
    lengthen(stage, 20_000)
    clock.advance(MINUTE)
    await stage.work()

    sessions = [one.session_id for one in stage.engine.requests if one.conversation.id != chat.id]
    assert sessions == [None, "session-1"]


async def test_a_run_that_was_interrupted_goes_on_in_its_session_however_long(
    stage: Stage,
) -> None:
    stage.engine.then(Call("look"), Call("slow"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await stage.say(task, "Are you there?")
    stage.only_run().stop.request(StopReason.USER_WAITING)
    stage.tools.let_go.set()
    await stage.idle()
    lengthen(stage, 17_000)

    await stage.work()

    runs = [one for one in stage.engine.requests if one.schema is not SUMMARY_SCHEMA]
    assert [request.session_id for request in runs] == [None, "session-1", "session-1"]


async def test_how_long_a_session_is_comes_from_the_engine(stage: Stage) -> None:
    stage.engine.tokens = 1234
    chat = await stage.chat()
    await stage.say(chat, "Hello?")
    await stage.work()

    assert stage.load(chat).session == Session("scripted", "session-1", 1234)


async def test_the_session_of_another_model_is_not_gone_on_with(stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "One.")
    await stage.work()
    other = tables.conversations.update().values(session_profile="other")
    stage.database.run(lambda tx: tx.connection.execute(other))
    await stage.say(chat, "Two.")
    await stage.work()

    assert stage.engine.requests[1].session_id is None
    assert stage.said(chat)[-2:] == [SESSION_OF_OTHER_MODEL, "Hello."]


@requirement("A-session-expired")
async def test_a_session_of_which_nothing_is_left_is_begun_anew(stage: Stage) -> None:
    chat = await stage.chat()
    await stage.say(chat, "One.")
    await stage.work()
    stage.database.run(lambda tx: tx.connection.execute(tables.session_entries.delete()))
    stage.engine.then(Fail(SessionGone()))
    await stage.say(chat, "Two.")
    await stage.work()

    assert [request.session_id for request in stage.engine.requests] == [None, "session-1", None]
    assert stage.said(chat)[-2:] == [SESSION_LOST, "Hello."]


@pytest.fixture
def local() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
def routed(set_up: Callable[..., Stage], local: ScriptedEngine) -> Stage:
    """Give a stage where work goes to a local model, and chats to another one."""
    remote = ScriptedEngine()
    stage = set_up(
        engines={"remote": remote, "local": local},
        default_profile="remote",
        routes=Routes(names=("remote", "local"), chat="remote", background="local"),
        limits=Limits(),
    )
    stage.engine = remote
    return stage


@requirement("B-routing")
async def test_what_fails_under_the_local_model_is_tried_once_under_the_other(
    routed: Stage, local: ScriptedEngine
) -> None:
    local.then(Call("slow"), Fail(EngineFailed("It is down.")))
    routed.tools.let_go.set()
    task = await routed.task()

    await routed.work()

    (run,) = routed.history(task)
    assert (run.status, run.profile, run.escalated_from) == (RunStatus.SUCCESS, "remote", "local")
    (asked,) = routed.engine.requests
    assert asked.session_id is None
    assert "slow" in asked.prompt.partition("Already done by an earlier attempt")[2]
    # The other one helps out once; the conversation keeps its model.
    assert routed.load(task).profile == "local"
    session = routed.load(task).session
    assert session is not None
    assert session.profile == "local"


async def test_what_ends_without_an_outcome_is_tried_under_the_other_model_as_well(
    routed: Stage, local: ScriptedEngine
) -> None:
    local.then(End("nonsense"))
    local.then(End("nonsense again"))
    task = await routed.task()

    await routed.work()

    assert routed.history(task)[0].escalated_from == "local"
    assert routed.said(task) == ["Done."]


async def test_what_fails_under_both_has_failed(routed: Stage, local: ScriptedEngine) -> None:
    local.then(Fail(EngineFailed("It is down.")))
    routed.engine.then(Fail(EngineFailed("So is this.")))
    task = await routed.task()

    await routed.work()

    (run,) = routed.history(task)
    assert run.failure is not None
    assert (run.failure.kind, run.failure.message) == (FailureKind.MODEL, "So is this.")
    assert len(local.requests) == len(routed.engine.requests) == 1


async def test_a_chat_stays_with_its_model(routed: Stage, local: ScriptedEngine) -> None:
    routed.engine.then(Fail(EngineFailed("It is down.")))
    chat = await routed.chat()
    await routed.say(chat, "Hello?")

    await routed.work()

    assert "It is down." in routed.said(chat)[-1]
    assert local.requests == []


async def test_once_words_of_others_were_read_that_is_known(stage: Stage) -> None:
    stage.engine.then(Call("look"), Say("Seen."))
    chat = await stage.chat()
    await stage.say(chat, "Look.")
    assert not stage.load(chat).outside_read

    await stage.work()

    assert stage.load(chat).outside_read


async def test_what_an_engine_reads_that_nothing_can_sway_is_of_no_account(
    set_up: Callable[..., Stage],
) -> None:
    stage = set_up(injection_proof=frozenset({"scripted"}))
    stage.engine.then(Call("look"), Say("Seen."))
    chat = await stage.chat()
    await stage.say(chat, "Look.")

    await stage.work()

    assert not stage.load(chat).outside_read
