"""A later call of a tool is recorded in one statement, unless anything has changed meanwhile."""

import asyncio
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update
from support.doubles.engine import AtOnce, Call, ScriptedEngine
from support.doubles.tool_servers import TOOLS, FakeServers
from support.stage.make import USER
from support.stage.stage import Stage
from support.statements import watched

from backburner.bus.local import LocalBus
from backburner.core.connections.connection import Ticks
from backburner.core.conversation import Conversation
from backburner.core.question import Purpose
from backburner.core.run import RunStatus
from backburner.ports import ToolResult
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.tx import Tx
from backburner.tools.toolbox import Toolbox

#: The first call lists the tools of its server, which changes what is recorded of them.
SEARCHES = [Call("search", {"words": f"{number}"}) for number in range(3)]
Meanwhile = Callable[[Tx, Conversation], object]


@pytest.fixture
def connected(either: Database, servers: FakeServers) -> Stage:
    return make_stage(either, servers)


@pytest.fixture
def postgres_only(emptied_postgres: Database, servers: FakeServers) -> Stage:
    return make_stage(emptied_postgres, servers)


def make_stage(database: Database, servers: FakeServers) -> Stage:
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        toolbox=lambda deps: Toolbox(deps, open_session=servers.open_session),
    )
    # The use of a connection is recorded once a minute.
    servers.add(stage, last_used_at=database.run(lambda tx: tx.now))
    return stage


async def search(stage: Stage, servers: FakeServers, meanwhile: Meanwhile) -> Conversation:
    """Let a run search three times; `meanwhile` happens during its second call."""
    task = await stage.task(connections=("mail",))

    def answer(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        if arguments["words"] == "1":
            stage.database.run(lambda tx: meanwhile(tx, task))
        return ToolResult(f"{name} found {arguments['words']}")

    servers["mail"].handler = answer
    stage.engine.then(*SEARCHES)
    await stage.work()
    return task


def change_search(tx: Tx, **changes: Any) -> None:
    (mail,) = tx.connections.list(USER)
    (search,) = (one for one in TOOLS if one.name == "search")
    tx.connections.put_tools(USER, mail.id, [replace(search, **changes)])


def disable(tx: Tx, _: Conversation) -> None:
    (mail,) = tx.connections.list(USER)
    tx.connections.save(replace(mail, disabled=True))


def remove(tx: Tx, _: Conversation) -> None:
    (mail,) = tx.connections.list(USER)
    tx.connections.remove(USER, mail.id)


def take_away(tx: Tx, task: Conversation) -> None:
    held = tables.conversations.c.id == task.id
    tx.connection.execute(update(tables.conversations).where(held).values(connections="[]"))


async def test_a_later_call_of_a_tool_is_recorded_in_one_statement_on_postgresql(
    postgres_only: Stage, servers: FakeServers
) -> None:
    stage = postgres_only
    stage.engine.then(*SEARCHES)
    await stage.task(connections=("mail",))
    between: list[str] = []

    with watched(stage.database) as statements:

        def answer(name: str, arguments: Mapping[str, Any]) -> ToolResult:
            if arguments["words"] == "1":
                statements.clear()
            elif arguments["words"] == "2":
                between.extend(statement for statement, _ in statements)
            return ToolResult(name)

        servers["mail"].handler = answer
        await stage.work()

    written = re.findall("(?:INSERT INTO|UPDATE) tool_calls", "\n".join(between))
    assert written.count("INSERT INTO tool_calls") == 1
    # Perhaps the ends of the calls before, and nothing else.
    assert len(between) == len(written) <= 2


async def test_calls_of_one_run_do_not_wait_for_each_other(
    postgres_only: Stage, servers: FakeServers
) -> None:
    stage = postgres_only
    words = [{"words": f"{number}"} for number in range(10)]
    stage.engine.then(*SEARCHES[:2], AtOnce(*(Call("search", one) for one in words)))
    await stage.task(connections=("mail",))

    with watched(stage.database) as statements:
        await stage.work()

    assert len(servers["mail"].calls) == 12
    decided = [one for one, _ in statements if "FROM connections JOIN connection_tools" in one]
    assert len(decided) == 2


async def test_a_call_that_waits_for_the_conversation_is_decided_by_what_is_true_afterwards(
    postgres_only: Stage, servers: FakeServers
) -> None:
    stage = postgres_only
    row = tables.conversations.c
    holder = stage.database.engine.connect()

    def change_and_let_go(task: Conversation) -> None:
        stage.database.run(lambda tx: disable(tx, task))
        holder.rollback()

    def hold(_: Tx, task: Conversation) -> None:
        holder.execute(select(row.id).where(row.id == task.id).with_for_update(key_share=True))
        asyncio.get_running_loop().call_later(0.2, change_and_let_go, task)

    with closing(holder):
        await search(stage, servers, hold)

    assert len(servers["mail"].calls) == 2
    assert "has taken mail/search away" in stage.engine.results[-1].text


@pytest.mark.parametrize(
    "meanwhile",
    [
        disable,
        remove,
        take_away,
        lambda tx, _: change_search(tx, gone=True),
        lambda tx, _: change_search(tx, digest="another"),
    ],
)
async def test_what_was_taken_away_meanwhile_is_not_called_again(
    connected: Stage, servers: FakeServers, meanwhile: Meanwhile
) -> None:
    await search(connected, servers, meanwhile)

    assert len(servers["mail"].calls) == 2
    assert "has taken mail/search away" in connected.engine.results[-1].text


async def test_a_tool_that_is_not_ticked_any_more_is_asked_about(
    connected: Stage, servers: FakeServers
) -> None:
    task = await search(connected, servers, lambda tx, _: change_search(tx, ticks=Ticks()))

    assert len(servers["mail"].calls) == 2
    assert connected.question(task).purpose is Purpose.APPROVAL


async def test_a_run_that_is_asked_to_stop_makes_no_second_call(
    connected: Stage, servers: FakeServers
) -> None:
    def stop(tx: Tx, task: Conversation) -> None:
        runs = update(tables.runs).where(tables.runs.c.conversation_id == task.id)
        tx.connection.execute(runs.values(cancel_requested_at=tx.now))

    await search(connected, servers, stop)

    assert len(servers["mail"].calls) == 2


async def test_a_holder_that_lost_its_turn_makes_no_second_call(
    connected: Stage, servers: FakeServers
) -> None:
    def take_over(tx: Tx, task: Conversation) -> None:
        held = update(tables.conversations).where(tables.conversations.c.id == task.id)
        tx.connection.execute(held.values(epoch=tables.conversations.c.epoch + 1))

    task = await search(connected, servers, take_over)

    assert len(servers["mail"].calls) == 2
    (run,) = connected.history(task)
    assert run.status is RunStatus.RUNNING


async def test_a_tool_that_discloses_is_asked_about_once_the_run_has_read_its_results(
    connected: Stage, servers: FakeServers
) -> None:
    connected.engine.then(Call("web", {"words": "0"}), Call("web", {"words": "1"}))
    task = await connected.task(connections=("mail",))

    await connected.work()

    assert len(servers["mail"].calls) == 1
    assert connected.question(task).purpose is Purpose.APPROVAL
