"""Agents that are cut off before their session has what they did: nothing is done twice."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar, cast

import pytest
from support.doubles.engine import AtOnce, Call, End, Fail, ScriptedEngine, Wait
from support.doubles.tool_servers import TOOLS, FakeServers, tool
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until

from backburner.actions import chat as chats
from backburner.core.connections.call import CallOutcome
from backburner.core.connections.connection import Connection, Ticks
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.ids import GrantId
from backburner.core.question import YES, Purpose
from backburner.core.routing import Routes
from backburner.core.run import RunStatus
from backburner.core.tool_policy import ALWAYS_HERE, Grant
from backburner.ports import (
    EngineEvent,
    Gate,
    SessionEntries,
    Store,
    TurnRequest,
    Tx,
)
from backburner.runs.stopping import StopReason
from backburner.tools.toolbox import Toolbox

T = TypeVar("T")
SEND, READ = Call("send", {"words": "Hi"}), Call("read", {"words": "tea"})
DONE = End({"complete": True, "message": "Sent."})


@pytest.fixture
async def task(connected: Stage, servers: FakeServers) -> Conversation:
    """Start a task that may always send; the server of its files does not answer."""
    mail = servers.add(connected)
    servers.add(connected, "files", [tool("read", ticks=Ticks(read_only=True))])
    servers["files"].hangs = True
    task = await connected.task(connections=("mail", "files"))
    allow_to_send(connected, task, mail)
    return task


def allow_to_send(stage: Stage, task: Conversation, mail: Connection) -> None:
    (send,) = (one for one in TOOLS if one.name == "send")
    grant = Grant(
        id=GrantId("g_1"),
        server="mail",
        tool="send",
        definition=send.accepted,
        connection=mail.id,
    )
    stage.database.run(lambda tx: tx.grants.give(USER, task.id, [grant]))


def ended(stage: Stage) -> list[CallOutcome]:
    calls = stage.database.run(lambda tx: tx.connection_calls.page(USER, limit=9))
    return [call.outcome for call in calls]


async def cut_off(stage: Stage, servers: FakeServers) -> None:
    """Stop the process while a call that was made together with another is under way."""
    stage.engine.then(AtOnce(SEND, READ))
    before = len(ended(stage))
    await stage.take_up()
    await until(lambda: servers["files"].calls and len(ended(stage)) > before)
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()


def sent(servers: FakeServers) -> int:
    return [name for name, _ in servers["mail"].calls].count("send")


async def test_a_call_whose_result_its_session_never_had_is_not_made_again(
    connected: Stage, servers: FakeServers, task: Conversation
) -> None:
    await cut_off(connected, servers)
    servers["files"].hangs = False
    connected.engine.then(SEND, READ, DONE)

    await connected.work()

    assert sent(servers) == 1
    assert connected.engine.results[-2].text == "send is done."
    prompt = connected.engine.requests[-1].prompt
    assert 'send {"words":"Hi"} returned:' in prompt
    (run,) = connected.history(task)
    assert run.status is RunStatus.SUCCESS


async def test_nor_by_a_run_that_goes_on_for_the_second_time(
    connected: Stage, servers: FakeServers, task: Conversation
) -> None:
    connected.engine.then(Wait())
    await connected.take_up()
    await until(lambda: connected.engine.requests)
    connected.only_run().stop.request(StopReason.SHUTDOWN)
    await connected.idle()
    await cut_off(connected, servers)
    servers["files"].hangs = False
    connected.engine.then(SEND, READ, DONE)

    await connected.work()

    assert sent(servers) == 1
    assert [run.status for run in connected.history(task)] == [RunStatus.SUCCESS]


class LateEngine(ScriptedEngine):
    """Its session gets the results of a call when the next one has ended."""

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        held = deque[SessionEntries]()
        async with aclosing(super().run(request, gate)) as events:
            async for event in events:
                if isinstance(event, SessionEntries) and event.calls:
                    held.append(event)
                    if len(held) > 1:
                        yield held.popleft()
                else:
                    yield event


async def test_nor_if_its_session_gets_the_result_of_an_earlier_call_after_it_has_ended(
    set_up: Callable[..., Stage], servers: FakeServers
) -> None:
    stage = set_up(toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session))
    late = LateEngine((Call("search"), SEND, Wait()))
    stage.claiming.deps = replace(stage.deps, engines={**stage.deps.engines, "scripted": late})
    mail = servers.add(stage)
    task = await stage.task(connections=("mail",))
    allow_to_send(stage, task, mail)
    await stage.take_up()
    await until(lambda: len(late.results) == 2)
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()
    late.then(SEND, DONE)

    await stage.work()

    assert sent(servers) == 1
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS]


@pytest.mark.usefixtures("task")
async def test_an_agent_that_knows_of_its_call_goes_on_in_its_session_and_may_repeat_it(
    connected: Stage, servers: FakeServers
) -> None:
    connected.engine.then(SEND, READ)
    await connected.take_up()
    await until(lambda: servers["files"].calls)
    connected.only_run().stop.request(StopReason.SHUTDOWN)
    await connected.idle()
    connected.engine.then(SEND, DONE)

    await connected.work()

    assert "# You were interrupted" in connected.engine.requests[-1].prompt
    assert sent(servers) == 2


@dataclass
class SlowStore:
    """Records the ends of calls, and does not say so."""

    store: Store
    recorded: asyncio.Event = field(default_factory=asyncio.Event)

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        result = await self.store.transact(work, **limits)
        if "CallEnds.record" in work.__qualname__ and not self.recorded.is_set():
            self.recorded.set()
            await asyncio.Event().wait()
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


async def test_nor_if_it_was_cut_off_while_the_result_was_recorded(
    connected: Stage, servers: FakeServers, task: Conversation
) -> None:
    slow = SlowStore(connected.deps.store)
    connected.claiming.deps = replace(connected.claiming.deps, store=cast("Store", slow))
    connected.engine.then(SEND)
    await connected.take_up()
    await slow.recorded.wait()
    connected.only_run().stop.request(StopReason.SHUTDOWN)
    await connected.idle()
    connected.engine.then(SEND, DONE)

    await connected.work()

    assert sent(servers) == 1
    assert [run.status for run in connected.history(task)] == [RunStatus.SUCCESS]


async def test_after_a_stop_the_agent_is_told_what_it_had_done(
    connected: Stage, servers: FakeServers
) -> None:
    servers.add(connected)
    servers.add(connected, "files", [tool("read", ticks=Ticks(read_only=True))])
    servers["files"].hangs = True
    chat = await connected.chat()
    await connected.say(chat, "Say hi, and read.")
    connected.engine.then(SEND)
    await connected.work()
    await connected.answer(chat, ALWAYS_HERE)
    connected.engine.then(AtOnce(SEND, READ))
    await connected.take_up()
    await until(lambda: servers["files"].calls and ended(connected))
    await chats.stop(connected.deps, USER, chat.id)
    connected.only_run().stop.request(StopReason.CANCELLED)
    await connected.idle()

    made = 'Before it was stopped, it had made these calls: send {"words":"Hi"}.'
    assert made in connected.said(chat)
    await connected.say(chat, "Go on.")
    await connected.work()
    assert made in connected.engine.requests[-1].prompt


class UnendingEngine(ScriptedEngine):
    """Does not end a turn when the gate asks for that, and keeps no result of it."""

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        async with aclosing(super().run(request, gate)) as events:
            async for event in events:
                if isinstance(event, SessionEntries) and self.results and self.results[-1].stop:
                    await asyncio.Event().wait()
                yield event


async def test_after_a_question_the_agent_is_told_what_it_had_done_before(
    set_up: Callable[..., Stage], servers: FakeServers
) -> None:
    stage = set_up(toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session))
    unending = UnendingEngine((), (AtOnce(SEND, Call("mark")),))
    stage.claiming.deps = replace(stage.deps, engines={**stage.deps.engines, "scripted": unending})
    mail = servers.add(stage)
    chat = await stage.chat()
    allow_to_send(stage, chat, mail)
    await stage.say(chat, "Hello!")
    await stage.work()
    await stage.say(chat, "Say hi, and mark it.")
    await stage.work()
    made = 'Before it was stopped, it had made these calls: send {"words":"Hi"}.'
    assert made in stage.said(chat)
    assert stage.question(chat).purpose is Purpose.APPROVAL
    unending.results.clear()

    await stage.answer(chat, YES)
    await stage.work()

    assert sent(servers) == 1
    assert made in unending.requests[-1].prompt
    assert unending.requests[-1].memory == ()


async def test_nor_by_the_first_model_if_the_second_has_made_it(
    set_up: Callable[..., Stage], servers: FakeServers
) -> None:
    stage = set_up(
        toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session),
        routes=Routes(names=("scripted", "big"), chat="big", background="scripted"),
    )
    big = ScriptedEngine((SEND, Wait()))
    stage.claiming.deps = replace(stage.deps, engines={**stage.deps.engines, "big": big})
    mail = servers.add(stage)
    task = await stage.task(connections=("mail",))
    allow_to_send(stage, task, mail)
    stage.engine.then(Call("search"), Fail(EngineFailed("It does not work.")))
    await stage.take_up()
    await until(lambda: big.results)
    stage.only_run().stop.request(StopReason.SHUTDOWN)
    await stage.idle()
    stage.engine.then(SEND, DONE)

    await stage.work()

    assert sent(servers) == 1
    assert stage.engine.results[-1].text == "send is done."
