"""What is sealed for a server is deleted when nothing can send it any more."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from sqlalchemy import select
from support.doubles.engine import Call, End, Fail, ScriptedEngine, Spend, Step, Wait
from support.doubles.tool_servers import FakeServers
from support.people.callers import local_caller
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.until import until
from support.statements import watched

from backburner.actions import chat, conversations, personal_data
from backburner.actions.connections import manage
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.bus.local import LocalBus
from backburner.core.allowance import Allowance, AllowanceScope
from backburner.core.connections.inputs.input_request import InputField, InputNeeded, InputRequest
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed
from backburner.core.ids import ConversationId, QuestionId
from backburner.core.question import Purpose
from backburner.core.retry import MAX_CRASHES
from backburner.core.run import RunStatus
from backburner.core.transitions import STOP
from backburner.ports import ToolResult, Tx
from backburner.store import tables
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.worker.pruner import Pruner

SEARCH = Call("search")
DONE = End({"complete": True, "message": "Done."})
AGAIN = End({"complete": False, "message": "Later.", "run_again": "in 1h"})
WHO = InputRequest(key="who", message="Who?", fields=(InputField(name="name", required=True),))
OTHER = Call("search", {"words": "other"})
OWNER = local_caller()


@pytest.fixture
def connected(servers: FakeServers, either: Database) -> Stage:
    return make_stage(servers, either)


def make_stage(servers: FakeServers, database: Database, **more: Any) -> Stage:
    def make_toolbox(deps: Any) -> Toolbox:
        return Toolbox(deps, open_session=servers.open_session)

    stage = Stage(database, LocalBus(), ScriptedEngine(), toolbox=make_toolbox, **more)
    servers.add(stage)
    return stage


def sealed(stage: Stage) -> list[str]:
    names = select(tables.secrets.c.name)
    return list(stage.database.run(lambda tx: tx.connection.execute(names).scalars()))


async def ask(
    stage: Stage, servers: FakeServers, place: Conversation | None = None
) -> Conversation:
    """Let a server ask for something in a run of a task, or in a reply."""

    def handle(_name: str, _arguments: Mapping[str, Any]) -> ToolResult | InputNeeded:
        needed = InputNeeded(requests=(WHO,), state="state of the server")
        return ToolResult("Found.") if servers["mail"].answers else needed

    servers["mail"].handler = handle
    stage.engine.then(SEARCH)
    place = place or await stage.task(connections=("mail",))
    await stage.work()
    assert stage.question(place).purpose is Purpose.INPUT
    return place


@pytest.mark.parametrize(
    "steps",
    [
        (DONE,),
        (AGAIN,),
        (End("no outcome"),),
        (Fail(EngineFailed("It is odd.", permanent=True)),),
        # Its approval starts a new run.
        (Call("send"),),
    ],
)
async def test_with_a_run_that_does_not_make_the_call_again(
    connected: Stage, servers: FakeServers, steps: tuple[Step, ...]
) -> None:
    task = await ask(connected, servers)
    await connected.answer(task, "bob")
    assert len(sealed(connected)) == 1

    connected.engine.then(*steps)
    await connected.work()

    assert connected.history(task)[0].status in (RunStatus.SUCCESS, RunStatus.FAILURE)
    assert servers["mail"].answers == []
    assert sealed(connected) == []


async def test_with_the_run_and_not_when_it_only_waits_once_more(
    connected: Stage, servers: FakeServers
) -> None:
    task = await ask(connected, servers)
    first = connected.question(task).id
    await connected.answer(task, "bob")
    connected.engine.then(OTHER)
    await connected.work()
    second = connected.question(task).id
    assert sorted(name.split("/")[2] for name in sealed(connected)) == sorted([first, second])

    connected.engine.then(SEARCH, DONE)
    await connected.answer(task, "ann")
    await connected.work()

    (answers,) = servers["mail"].answers
    assert answers.answers["who"].values == {"name": "bob"}
    assert sealed(connected) == []


async def test_with_a_run_that_is_cancelled_while_it_works(
    connected: Stage, servers: FakeServers
) -> None:
    task = await ask(connected, servers)
    await connected.answer(task, "bob")
    connected.engine.then(Wait())
    await connected.take_up()

    await cancel(connected, task)
    await connected.renew()
    await connected.idle()

    assert connected.history(task)[0].status is RunStatus.CANCELLED
    assert sealed(connected) == []


async def archive(stage: Stage, task: Conversation) -> None:
    await conversations.archive(stage.deps, USER, task.id)


async def delete(stage: Stage, task: Conversation) -> None:
    await conversations.delete(stage.deps, USER, task.id)


async def cancel(stage: Stage, task: Conversation) -> None:
    await control.cancel(stage.deps, Origin.by_user(USER), task.id)


async def disconnect(stage: Stage, _task: Conversation) -> None:
    mail, _ = await manage.list_connections(stage.deps, USER)
    await manage.remove(stage.deps, OWNER, mail.connection.id)


async def erase(stage: Stage, _task: Conversation) -> None:
    await personal_data.erase(stage.deps, USER, personal_data.ERASE_CONFIRMATION)


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "open"])
@pytest.mark.parametrize("way", [archive, delete, cancel, disconnect, erase])
async def test_with_all_that_it_is_for(
    connected: Stage,
    servers: FakeServers,
    way: Callable[[Stage, Conversation], Awaitable[None]],
    *,
    answered: bool,
) -> None:
    servers.add(connected, "other")
    task = await ask(connected, servers)
    if answered:
        await connected.answer(task, "bob")
    assert len(sealed(connected)) == 1

    await way(connected, task)

    assert sealed(connected) == []


async def test_of_another_connection_or_conversation_nothing_is_deleted(
    connected: Stage, servers: FakeServers
) -> None:
    kept = await ask(connected, servers)
    await connected.answer(kept, "bob")
    before = sealed(connected)
    other = servers.add(connected, "other")
    gone = await connected.chat()

    await manage.remove(connected.deps, OWNER, other.id)
    await conversations.archive(connected.deps, USER, gone.id)
    await conversations.delete(connected.deps, USER, gone.id)
    await Pruner(connected.deps, keep=timedelta(days=1)).run_once()

    assert sealed(connected) == before


async def test_with_the_message_of_a_reply_that_is_replaced(
    connected: Stage, servers: FakeServers
) -> None:
    talk = await connected.chat()
    await connected.say(talk, "Any mail?")
    await ask(connected, servers, talk)
    await connected.answer(talk, "bob")

    await chat.edit_last(connected.deps, USER, talk.id, "No, wait.")

    assert sealed(connected) == []


async def test_with_work_that_ends_because_all_is_spent(
    servers: FakeServers, either: Database
) -> None:
    allowance = Allowance(AllowanceScope.CONVERSATION, tokens=100)
    stage = make_stage(servers, either, allowances=(allowance,))
    top = await stage.chat()
    child = await ask(stage, servers, await stage.task(parent_id=top.id, connections=("mail",)))
    await stage.answer(child, "bob")
    stage.engine.then(Spend(120))
    await stage.work()
    assert len(sealed(stage)) == 1

    await stage.answer(top, STOP)

    assert sealed(stage) == []


async def crash(stage: Stage) -> None:
    """Let the process that has just begun a run vanish."""
    before = len(stage.engine.requests)
    stage.engine.then(Wait())
    await stage.take_up()
    await until(lambda: len(stage.engine.requests) > before)
    stage.kill()
    await stage.rescuer.rescue_all()


async def test_after_a_crash_the_answer_is_sent_by_the_next_run(
    connected: Stage, servers: FakeServers
) -> None:
    task = await ask(connected, servers)
    await connected.answer(task, "bob")
    await crash(connected)
    await Pruner(connected.deps, keep=timedelta(days=1)).run_once()
    assert len(sealed(connected)) == 1

    connected.engine.then(SEARCH, DONE)
    await connected.work()

    assert len(servers["mail"].answers) == 1
    assert sealed(connected) == []


async def test_with_a_reply_that_is_given_up(connected: Stage, servers: FakeServers) -> None:
    talk = await connected.chat()
    await connected.say(talk, "Any mail?")
    await ask(connected, servers, talk)
    await connected.answer(talk, "bob")

    for _ in range(MAX_CRASHES):
        assert len(sealed(connected)) == 1
        await crash(connected)

    assert sealed(connected) == []


def put(name: str, tx: Tx) -> None:
    tx.secrets.put(USER, name, b"sealed")


async def test_what_nothing_has_deleted_in_its_time_is_swept(
    connected: Stage, servers: FakeServers
) -> None:
    task = await ask(connected, servers)
    question = connected.question(task)
    waiting = await ask(connected, servers)
    places = {task.id: QuestionId("q_gone"), ConversationId("c_gone"): question.id}
    names = [f"inputs/{place}/{asked}/x_any" for place, asked in places.items()]
    for name in (*names, "connections/x/headers"):
        connected.database.run(partial(put, name))

    await Pruner(connected.deps, keep=timedelta(days=1)).run_once()

    left = [name.split("/")[1] for name in sealed(connected)]
    assert sorted(left) == sorted([task.id, waiting.id, "x"])


async def test_a_run_of_which_no_server_asks_anything_reads_nothing_of_this(
    connected: Stage,
) -> None:
    connected.engine.then(SEARCH, DONE)
    with watched(connected.database) as statements:
        task = await connected.task(connections=("mail",))
        await connected.work()

    assert connected.history(task)[0].status is RunStatus.SUCCESS
    assert [sql for sql, _ in statements if "secrets" in sql] == []
