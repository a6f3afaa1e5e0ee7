"""Work whose connection needs a sign-in: its owner is asked once, and then all of it goes on."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from support.doubles.engine import Call, End, Say
from support.doubles.tool_servers import FakeServers, say_done, sign_in
from support.people.callers import local_caller
from support.requirements import requirement
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions import conversations
from backburner.actions.connections import manage
from backburner.actions.origin import Origin
from backburner.actions.waits import reconnection
from backburner.actions.work import jobs, user_jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.connections import sign_in as sign_in_question
from backburner.core.connections.connection import Connection, ConnectionState, Ticks
from backburner.core.connections.scopes import settle_scopes
from backburner.core.conversation import PauseReason, Status
from backburner.core.errors import Conflict, SignedOut
from backburner.core.question import RECONNECT, Purpose
from backburner.core.run import FailureKind, RunStatus
from backburner.core.transitions import STOP
from backburner.ports import ToolResult

SEARCH = Call("search", {"words": "tea"})
DONE = End({"complete": True, "message": "Two mails."})


def refuse(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
    raise SignedOut("Mail does not accept the token any more.")


def reconnect(stage: Stage, connection: Connection) -> None:
    sign_in(stage, connection)
    stage.database.run(lambda tx: reconnection.reconnected(tx, USER, connection.id))


@pytest.fixture(autouse=True)
def mail(connected: Stage, servers: FakeServers) -> Connection:
    connection = servers.add(connected)
    servers["mail"].handler = refuse
    return connection


def state_of(stage: Stage, connection: Connection) -> ConnectionState:
    found = stage.database.run(lambda tx: tx.connections.load(USER, connection.id))
    return found.state


@requirement("A-auth-expired", "Z-connections")
async def test_a_run_that_is_signed_out_waits_and_goes_on_once_it_is_reconnected(
    connected: Stage, servers: FakeServers, mail: Connection
) -> None:
    servers["mail"].handler = say_done
    connected.engine.then(Call("mark", {"words": "1"}), SEARCH)
    task = await connected.task(connections=("mail",))

    def refuse_search(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        return say_done(name, arguments) if name == "mark" else refuse(name, arguments)

    servers["mail"].handler = refuse_search
    # The tick of its owner makes it free.
    _allow(connected, mail, "mark")
    await connected.work()

    question = connected.question(task)
    assert (question.purpose, connected.load(task).status) == (
        Purpose.RECONNECT,
        Status.WAITING_INPUT,
    )
    assert "Reconnect Mail: mail.example" in question.prompt
    (run,) = connected.history(task)
    assert (run.status, run.failure and run.failure.kind) == (
        RunStatus.QUEUED,
        FailureKind.SIGNED_OUT,
    )
    assert len(connected.notices()) == 1
    assert state_of(connected, mail) is ConnectionState.SIGNED_OUT

    servers["mail"].handler = say_done
    connected.engine.then(SEARCH, DONE)
    reconnect(connected, mail)
    await connected.work()

    (same,) = connected.history(task)
    assert (same.id, same.status) == (run.id, RunStatus.SUCCESS)
    assert servers["mail"].calls[-1] == ("search", {"words": "tea"})
    # It remembers what it did before, and does it once.
    prompt = connected.engine.requests[-1].prompt
    assert "You were interrupted" in prompt
    assert "mail is signed in again. Make the call again now if the work needs it." in prompt
    assert [name for name, _ in servers["mail"].calls].count("mark") == 1


def _allow(stage: Stage, connection: Connection, name: str) -> None:
    def write(tx: Any) -> None:
        tools = tx.connections.tools(USER, connection.id)
        ticked = [
            replace(one, ticks=Ticks(read_only=True, repeatable=None))
            for one in tools
            if one.name == name
        ]
        tx.connections.put_tools(USER, connection.id, ticked)

    stage.database.run(write)


ONE_MAIL = Say("One mail.")


@requirement("A-auth-expired")
async def test_one_question_and_one_notice_are_for_all_work_that_waits(
    connected: Stage, servers: FakeServers, mail: Connection
) -> None:
    tasks = []
    connected.engine.then(SEARCH)
    for _ in range(3):
        tasks.append(await connected.task(connections=("mail",)))
        await connected.work()
    chat = await connected.chat()
    connected.engine.then(Say("I look."), SEARCH)
    await connected.say(chat, "Any mail?")
    await connected.work()

    first, *others = tasks
    assert connected.load(first).status is Status.WAITING_INPUT
    for other in others:
        paused = connected.load(other)
        assert (paused.status, paused.pause_reason) == (Status.ACTIVE, PauseReason.SIGNED_OUT)
        assert "This waits until you reconnect Mail" in connected.said(other)[-1]
    assert connected.said(chat)[1:] == [
        "I look.",
        sign_in_question.describe_wait(mail),
    ]
    assert len(connected.notices()) == 1

    servers["mail"].handler = say_done
    for _ in (*tasks, chat):
        # All of them go on at once, in any order.
        connected.engine.then_as(
            lambda request: [SEARCH, DONE if request.conversation.id != chat.id else ONE_MAIL]
        )
    reconnect(connected, mail)
    await connected.work()

    assert connected.said(chat)[-1] == "One mail."
    for task in tasks:
        (run,) = connected.history(task)
        assert run.status is RunStatus.SUCCESS
        assert connected.load(task).questions == ()


@requirement("A-auth-expired")
async def test_a_call_that_lacks_a_permission_which_was_asked_for_is_refused_like_any_other(
    connected: Stage, servers: FakeServers, mail: Connection
) -> None:
    def refuse_search(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if name == "search":
            raise SignedOut("Mail wants further permissions.", scopes=("mail.search",))
        return say_done(name, arguments)

    servers["mail"].handler = refuse_search
    _allow(connected, mail, "mark")
    connected.engine.then(SEARCH)
    task = await connected.task(connections=("mail",))
    await connected.work()
    assert "wants further permissions (mail.search)" in connected.question(task).prompt

    def settle(tx: Any) -> None:
        found = tx.connections.lock(USER, mail.id)
        asked = settle_scopes(found, asked=found.wanted_scopes, given=())
        tx.connections.save(replace(asked, state=ConnectionState.READY, sign_in_revision=1))

    connected.database.run(settle)
    connected.engine.then(SEARCH, Call("mark", {"words": "1"}), DONE)
    connected.database.run(lambda tx: reconnection.reconnected(tx, USER, mail.id))
    await connected.work()

    (run,) = connected.history(task)
    assert (run.status, connected.load(task).questions) == (RunStatus.SUCCESS, ())
    assert [name for name, _ in servers["mail"].calls] == ["search", "search", "mark"]
    assert len(connected.notices()) == 2
    # The agent was told, in words that are marked as those of the server.
    assert connected.load(task).outside_read
    assert state_of(connected, mail) is ConnectionState.READY


async def test_the_owner_cannot_answer_that_it_is_reconnected_before_it_is(
    connected: Stage, servers: FakeServers, mail: Connection
) -> None:
    connected.engine.then(SEARCH)
    task = await connected.task(connections=("mail",))
    await connected.work()

    with pytest.raises(Conflict, match="Mail is still signed out") as refused:
        await connected.answer(task, RECONNECT)
    assert "backburner connect mail" in refused.value.hint

    sign_in(connected, mail)
    servers["mail"].handler = say_done
    connected.engine.then(SEARCH, DONE)
    await connected.answer(task, RECONNECT)
    await connected.work()

    assert connected.history(task)[0].status is RunStatus.SUCCESS


async def test_a_sign_in_during_the_run_needs_no_question(
    connected: Stage, servers: FakeServers, mail: Connection
) -> None:
    def refuse_once(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        servers["mail"].handler = say_done
        sign_in(connected, mail)
        raise SignedOut("Too late.")

    servers["mail"].handler = refuse_once
    connected.engine.then(SEARCH)
    connected.engine.then(SEARCH, DONE)
    task = await connected.task(connections=("mail",))

    await connected.work()

    (run,) = connected.history(task)
    assert (run.status, connected.load(task).questions) == (RunStatus.SUCCESS, ())


async def test_after_a_stop_the_next_that_waits_is_asked(connected: Stage) -> None:
    tasks = []
    connected.engine.then(SEARCH)
    for _ in range(2):
        tasks.append(await connected.task(connections=("mail",)))
        await connected.work()
    requests = len(connected.engine.requests)

    await connected.answer(tasks[0], STOP)

    assert connected.load(tasks[0]).status is Status.ACTIVE
    assert connected.question(tasks[1]).purpose is Purpose.RECONNECT
    # No model was paid to find that out.
    assert len(connected.engine.requests) == requests
    await conversations.archive(connected.deps, USER, tasks[1].id)
    assert connected.load(tasks[1]).questions == ()


async def test_the_agent_is_told_that_its_owner_has_to_sign_in(
    connected: Stage, servers: FakeServers
) -> None:
    def refuse_in_words(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
        raise SignedOut("Mail needs you to sign in again (invalid_grant).")

    servers["mail"].handler = refuse_in_words
    connected.engine.then(SEARCH)
    await connected.task(connections=("mail",))
    await connected.work()

    assert connected.engine.results[-1].text == (
        "mail cannot be called before its owner has signed in again. They are asked, and this work"
        " continues afterwards. End here."
    )


async def test_a_message_meanwhile_is_answered(connected: Stage) -> None:
    chat = await connected.chat()
    connected.engine.then(SEARCH)
    await connected.say(chat, "Any mail?")
    await connected.work()
    assert connected.load(chat).status is Status.WAITING_INPUT

    connected.engine.then(Say("Fine, without."))
    await connected.say(chat, "Never mind. What is two and two?")
    await connected.work()

    assert connected.said(chat)[-1] == "Fine, without."
    assert "mail still needs a sign-in." in connected.engine.requests[-1].prompt


async def test_a_connection_that_is_removed_lets_go_of_what_waits(
    connected: Stage, mail: Connection
) -> None:
    connected.engine.then(SEARCH)
    chat = await connected.chat()
    await connected.say(chat, "Any mail?")
    await connected.work()
    task = await connected.task(connections=("mail",))
    await connected.work()
    assert connected.load(task).pause_reason is PauseReason.SIGNED_OUT

    await manage.remove(connected.deps, local_caller(USER), mail.id)
    connected.engine.then(Say("I cannot look."))
    await connected.work()

    assert connected.said(chat)[-1] == "I cannot look."
    assert (
        "The connection that this waited for was removed." in connected.engine.requests[-1].prompt
    )
    assert [offer.tool.server for offer in connected.engine.requests[-1].tools].count("mail") == 0
    # What names it does not go on without it by itself.
    assert connected.load(task).pause_reason is PauseReason.CONNECTION_REMOVED
    assert [run.status for run in connected.history(task)] == [RunStatus.CANCELLED]


async def test_jobs_say_for_which_sign_in_they_wait_wherever_it_is_asked(
    connected: Stage, mail: Connection
) -> None:
    chat = await connected.chat()
    requests = [
        JobRequest(description=name, prompt="Look.", connections=("mail",)) for name in ("a", "b")
    ]
    for _ in requests:
        connected.engine.then(SEARCH)
    await jobs.start(connected.deps, Origin(USER, chat.id), requests, by_user=True)
    await connected.work()

    page = await user_jobs.list_jobs(connected.deps, USER, None, limit=9)
    # One of them was asked, and the other waits for that.
    assert [job.waits_for for job in page.items] == ["Reconnect mail."] * 2
    assert sorted(job.needs_you for job in page.items) == [False, True]
    reconnect(connected, mail)
    page = await user_jobs.list_jobs(connected.deps, USER, None, limit=9)
    assert [job.waits_for for job in page.items] == [None] * 2


async def test_work_whose_connection_is_removed_during_its_run_does_not_go_on_by_itself(
    connected: Stage, servers: FakeServers, mail: Connection
) -> None:
    server = servers["mail"]
    server.held = asyncio.Event()
    connected.engine.then(SEARCH, DONE)
    task = await connected.task(connections=("mail",))
    await connected.take_up()
    await until(lambda: server.calls)
    await manage.remove(connected.deps, local_caller(USER), mail.id)
    server.held.set()

    await connected.work()

    assert connected.load(task).pause_reason is PauseReason.CONNECTION_REMOVED
    (run,) = connected.history(task)
    assert run.status is RunStatus.FAILURE
    assert len(connected.engine.requests) == 1
