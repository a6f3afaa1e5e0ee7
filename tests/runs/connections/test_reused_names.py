"""Another connection gets the name of one that was removed: nothing meant for that reaches it."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from support.cases.transition_cases import DAILY
from support.doubles.clock import SetClock
from support.doubles.engine import AtOnce, Call, End, Say
from support.doubles.tool_servers import FakeServers, say_done, tool
from support.people.callers import local_caller
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions.connections import manage
from backburner.actions.work import preview
from backburner.core.connections.inputs.input_request import InputField, InputNeeded, InputRequest
from backburner.core.conversation import Conversation
from backburner.core.errors import CallInDoubt
from backburner.core.ids import ConnectionId
from backburner.core.question import REPEAT, YES, Purpose
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.ports import ToolResult
from backburner.runs.stopping import StopReason

SEARCH = Call("search", {})
SEND = Call("send", {"words": "Hi"})
DONE = End({"complete": True, "message": "Sent."})
WHO = InputRequest(key="who", message="Who?", fields=(InputField(name="address"),))
ANSWER = "ann.private@example.org"


def ask(_name: str, _arguments: Mapping[str, Any]) -> ToolResult | InputNeeded:
    return InputNeeded(requests=(WHO,), state="state")


def lose(_name: str, _arguments: Mapping[str, Any]) -> ToolResult:
    raise CallInDoubt("Mail broke off.")


async def waiting(stage: Stage, servers: FakeServers, handler: Any) -> Conversation:
    """Let a call of a task wait for its owner, who has approved it."""
    servers["mail"].handler = handler
    stage.engine.then(SEND)
    chat = await stage.chat()
    await stage.say(chat, "Send it.")
    await stage.work()
    await stage.answer(chat, YES)
    stage.engine.then(SEND)
    await stage.work()
    return chat


async def replace_server(stage: Stage, servers: FakeServers, first: ConnectionId) -> None:
    await manage.remove(stage.deps, local_caller(USER), first)
    servers.add(stage, "mail", url="https://eve.example/mcp")


async def test_an_answer_for_a_server_does_not_reach_another_of_its_name(
    connected: Stage, servers: FakeServers
) -> None:
    first = servers.add(connected)
    servers["mail"].handler = ask
    connected.engine.then(SEARCH)
    chat = await connected.chat()
    await connected.say(chat, "Search.")
    await connected.work()
    await connected.answer(chat, ANSWER)

    await replace_server(connected, servers, first.id)
    connected.engine.then(SEARCH, DONE)
    await connected.work()

    assert servers["mail"].answers == []


@pytest.mark.parametrize("handler", [ask, lose])
async def test_questions_about_calls_of_a_removed_connection_end_with_it(
    connected: Stage, servers: FakeServers, handler: Any
) -> None:
    first = servers.add(connected)
    chat = await waiting(connected, servers, handler)
    assert connected.question(chat).purpose in (Purpose.INPUT, Purpose.IN_DOUBT)

    await replace_server(connected, servers, first.id)

    assert connected.load(chat).questions == ()
    assert not connected.database.run(lambda tx: tx.grants.valid(USER, chat.id))


async def test_do_it_again_is_no_approval_of_another_server(
    connected: Stage, servers: FakeServers
) -> None:
    first = servers.add(connected)
    chat = await waiting(connected, servers, lose)
    await replace_server(connected, servers, first.id)
    servers["mail"].handler = say_done
    connected.engine.then(SEND, DONE)

    if connected.load(chat).questions:
        await connected.answer(chat, REPEAT)
    await connected.work()

    assert servers["mail"].calls == []


async def test_a_doubt_that_comes_after_a_removal_approves_no_call_of_another_server(
    connected: Stage, servers: FakeServers, clock: SetClock
) -> None:
    first = servers.add(connected)
    servers["mail"].handler = say_done
    connected.engine.then(Call("send"))
    chat = await connected.chat()
    await connected.say(chat, "Send it.")
    await connected.work()
    await connected.answer(chat, YES)
    servers["mail"].hangs = True
    connected.engine.then(Call("send"))
    await connected.take_up()
    await until(lambda: servers["mail"].calls)

    await manage.remove(connected.deps, local_caller(USER), first.id)
    connected.kill()
    clock.advance(timedelta(minutes=5))
    await connected.rescuer.run_once()
    assert connected.question(chat).purpose is Purpose.IN_DOUBT
    servers.add(connected, "mail", url="https://eve.example/mcp")
    servers["mail"].handler = say_done
    connected.engine.then(Call("send"), End({"complete": True}))
    await connected.answer(chat, REPEAT)
    await connected.work()

    assert servers["mail"].calls == []


async def test_no_approval_is_asked_for_once_the_connection_is_removed(
    connected: Stage, servers: FakeServers
) -> None:
    first = servers.add(connected)
    servers["mail"].held = released = asyncio.Event()
    connected.engine.then(AtOnce(SEARCH, SEND))
    chat = await connected.chat()
    await connected.say(chat, "Send it.")
    await connected.take_up()
    stop = connected.only_run().stop
    await until(lambda: servers["mail"].calls and stop.reason is StopReason.APPROVAL)

    await manage.remove(connected.deps, local_caller(USER), first.id)
    connected.engine.then(Say("There is no mail any more."))
    released.set()
    await connected.idle()
    await connected.work()

    assert connected.load(chat).questions == ()
    assert connected.said(chat)[-1] == "There is no mail any more."


async def test_a_test_run_lists_no_calls_of_a_connection_that_was_removed(
    connected: Stage, servers: FakeServers
) -> None:
    first = servers.add(connected)
    servers.add(connected, "wiki", tools=[tool("post")])
    servers["mail"].held = released = asyncio.Event()
    task = await connected.task(DAILY, connections=("mail", "wiki"))
    job = await preview.start_test_run(connected.deps, USER, task.id)
    connected.engine.then(SEND, Call("post"), SEARCH, End({"complete": True}))
    await connected.take_up()
    await until(lambda: servers["mail"].calls)

    await manage.remove(connected.deps, local_caller(USER), first.id)
    released.set()
    await connected.idle()

    (bound,) = connected.question(job).binds_to["calls"]
    assert bound["server"] == "wiki"
    assert "Not listed" not in connected.question(job).prompt


async def test_always_here_for_a_removed_connection_is_no_grant_for_another_of_its_name(
    connected: Stage, servers: FakeServers
) -> None:
    first = servers.add(connected)
    connected.engine.then(SEND)
    chat = await connected.chat()
    await connected.say(chat, "Send it.")
    await connected.work()
    # As if the question had been stored at the same moment.
    connected.database.run(lambda tx: tx.connections.remove(USER, first.id))
    servers.add(connected, "mail", url="https://eve.example/mcp")
    connected.engine.then(Say("It is gone."))
    await connected.answer(chat, ALWAYS_HERE)
    await connected.work()

    connected.engine.then(SEND)
    await connected.say(chat, "Send it again.")
    await connected.work()

    assert servers["mail"].calls == []
    assert connected.question(chat).purpose is Purpose.APPROVAL


async def propose_mail(stage: Stage, servers: FakeServers) -> tuple[Conversation, Conversation]:
    """Let a task propose that another one uses the mail; return both."""
    servers.add(stage, in_chats=False)
    other = await stage.task(DAILY, title="Other")
    change = {"task": other.id, "connections": ["mail"]}
    stage.engine.then(Call("task_update", change), End({"complete": True}))
    here = await stage.task(connections=("mail",))
    await stage.work()
    assert stage.question(here).purpose is Purpose.CHANGE
    return here, other


async def test_a_change_that_waits_ends_with_the_connection_that_it_names(
    connected: Stage, servers: FakeServers
) -> None:
    here, other = await propose_mail(connected, servers)
    paused = Call("task_pause", {"task": other.id})
    connected.engine.then(paused, End({"complete": True}))
    unrelated = await connected.task(title="Unrelated")
    await connected.work()
    (mail,) = (await manage.list_connections(connected.deps, USER))[:1]

    await replace_server(connected, servers, mail.connection.id)

    assert connected.load(here).questions == ()
    assert "It was withdrawn" in connected.said(here)[-1]
    assert not connected.load(other).connections
    assert connected.question(unrelated).purpose is Purpose.CHANGE


async def test_a_yes_to_a_change_gives_no_other_connection_of_a_name_that_it_shows(
    connected: Stage, servers: FakeServers
) -> None:
    here, other = await propose_mail(connected, servers)
    (mail,) = (await manage.list_connections(connected.deps, USER))[:1]
    # As if the change had been proposed at the same moment.
    connected.database.run(lambda tx: tx.connections.remove(USER, mail.connection.id))
    servers.add(connected, "mail", url="https://eve.example/mcp", in_chats=False)

    await connected.answer(here, YES)

    assert not connected.load(other).connections
    assert (
        "Not changed: a connection was removed since this was proposed: mail."
        in connected.said(here)[-1]
    )


async def test_a_yes_to_a_change_gives_the_connections_that_it_shows(
    connected: Stage, servers: FakeServers
) -> None:
    here, other = await propose_mail(connected, servers)

    await connected.answer(here, YES)

    assert connected.load(other).connections == ("mail",)
