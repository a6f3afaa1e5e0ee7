"""Work whose brief names a connection that cannot be used: it waits or asks before it begins."""

from typing import Any

import pytest
from support.doubles.engine import Call, End, Say
from support.doubles.tool_servers import FakeServers, sign_in
from support.people.callers import local_caller
from support.requirements import requirement
from support.stage.make import USER
from support.stage.stage import Stage

from backburner.actions.connections import manage
from backburner.actions.connections.manage import ConnectionChanges
from backburner.actions.origin import Origin
from backburner.actions.waits import reconnection
from backburner.actions.work import control, jobs
from backburner.actions.work.jobs import JobRequest
from backburner.core.connections.connection import Connection, ConnectionState
from backburner.core.conversation import EndedAs, PauseReason, Status
from backburner.core.question import SKIP, Purpose
from backburner.core.run import FailureKind, RunStatus
from backburner.core.transitions import TRY_AGAIN

SEARCH = Call("search", {"words": "tea"})
DONE = End({"complete": True, "message": "Two mails."})


def reconnect(stage: Stage, connection: Connection) -> None:
    sign_in(stage, connection)
    stage.database.run(lambda tx: reconnection.reconnected(tx, USER, connection.id))


async def set_disabled(stage: Stage, connection: Connection, *, disabled: bool) -> None:
    changes = ConnectionChanges(disabled=disabled)
    await manage.change(stage.deps, local_caller(USER), connection.id, changes)


@requirement("A-mcp-load", "A-auth-expired")
@pytest.mark.parametrize(
    ("state", "words"),
    [
        (ConnectionState.SIGNING_IN, "you have not signed in to mail.example yet"),
        (ConnectionState.SIGNED_OUT, "mail.example no longer accepts the sign-in"),
    ],
)
async def test_work_waits_for_the_sign_in_of_a_connection_that_it_names(
    connected: Stage, servers: FakeServers, state: ConnectionState, words: str
) -> None:
    mail = servers.add(connected, state=state)
    first, second = [await connected.task(connections=("mail",)) for _ in range(2)]

    await connected.work()

    # No model was paid, and its owner was asked once.
    assert connected.engine.requests == []
    asked = [one for task in (first, second) for one in connected.load(task).questions]
    assert [one.purpose for one in asked] == [Purpose.RECONNECT]
    assert asked[0].prompt.startswith(f"Reconnect Mail: {words}.")
    assert len(connected.notices()) == 1
    (run,) = connected.history(first)
    assert (run.status, run.failure and run.failure.kind) == (
        RunStatus.QUEUED,
        FailureKind.SIGNED_OUT,
    )

    for _ in range(2):
        connected.engine.then(SEARCH, DONE)
    reconnect(connected, mail)
    await connected.work()

    for task in (first, second):
        (same,) = connected.history(task)
        assert same.status is RunStatus.SUCCESS
    assert len(servers["mail"].calls) == 2
    # It has not begun before.
    assert not any("You were interrupted" in one.prompt for one in connected.engine.requests)


@requirement("A-mcp-load")
async def test_work_asks_before_it_begins_if_a_connection_that_it_names_is_disabled(
    connected: Stage, servers: FakeServers
) -> None:
    mail = servers.add(connected, disabled=True)
    task = await connected.task(connections=("mail",))

    await connected.work()

    assert connected.engine.requests == []
    question = connected.question(task)
    assert question.purpose is Purpose.FAILURE
    assert question.prompt == (
        "mail is disabled. Enable it with `backburner connections enable mail`, then try again."
    )
    assert connected.history(task)[0].status is RunStatus.FAILURE

    await connected.answer(task, TRY_AGAIN)
    await connected.work()
    assert connected.question(task).purpose is Purpose.FAILURE
    await set_disabled(connected, mail, disabled=False)
    connected.engine.then(SEARCH, DONE)
    await connected.answer(task, TRY_AGAIN)
    await connected.work()

    assert connected.load(task).ended_as is EndedAs.COMPLETED
    assert len(servers["mail"].calls) == 1


async def test_work_goes_on_without_a_disabled_connection_if_its_owner_says_so(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected, disabled=True)
    task = await connected.task(connections=("mail",))
    await connected.work()
    connected.engine.then(DONE)

    await connected.answer(task, SKIP)
    await connected.work()

    assert connected.load(task).ended_as is EndedAs.COMPLETED


@requirement("A-mcp-load")
async def test_work_is_paused_when_a_connection_that_it_names_is_removed(
    connected: Stage, servers: FakeServers
) -> None:
    mail = servers.add(connected)
    task, other = await connected.task(connections=("mail",)), await connected.task()
    chat = await connected.chat()

    await manage.remove(connected.deps, local_caller(USER), mail.id)
    connected.engine.then(DONE)
    await connected.work()

    paused = connected.load(task)
    assert (paused.status, paused.pause_reason) == (
        Status.ACTIVE,
        PauseReason.CONNECTION_REMOVED,
    )
    text = (
        "The work is paused: Mail, which it uses, was removed. Resume it to let it go on without."
    )
    assert (connected.said(task), connected.notices()) == ([text], [text, "Two mails."])
    assert connected.load(other).ended_as is EndedAs.COMPLETED
    assert connected.said(chat) == []

    connected.engine.then(DONE)
    await control.resume(connected.deps, Origin.by_user(USER), task.id)
    await connected.work()
    assert connected.load(task).ended_as is EndedAs.COMPLETED


async def test_a_job_waits_for_a_sign_in_too(connected: Stage, servers: FakeServers) -> None:
    servers.add(connected, state=ConnectionState.SIGNED_OUT)
    chat = await connected.chat()
    request = JobRequest(description="Look", prompt="Look.", connections=["mail"])
    origin = Origin(USER, chat.id)
    (job,) = await jobs.start(connected.deps, origin, [request], by_user=True)

    await connected.work()

    assert connected.engine.requests == []
    found = connected.database.run(lambda tx: tx.conversations.load(USER, job.id))
    assert found.questions[0].purpose is Purpose.RECONNECT


@pytest.mark.parametrize("fields", [{"state": ConnectionState.SIGNED_OUT}, {"disabled": True}])
async def test_chats_and_replies_do_not_wait_for_it(
    connected: Stage, servers: FakeServers, fields: Any
) -> None:
    servers.add(connected, **fields)
    task, chat = await connected.task(connections=("mail",)), await connected.chat()
    await connected.work()

    for here in (chat, task):
        connected.engine.then(Say("Hello."))
        await connected.say(here, "Are you there?")
        await connected.work()

        assert connected.said(here)[-1] == "Hello."
