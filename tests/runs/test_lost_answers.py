"""Transactions that are run again, because nobody knows whether they went through."""

import asyncio
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError
from support.doubles.channel import RecordingChannel
from support.doubles.clock import SetClock
from support.doubles.engine import Call, Fail, ScriptedEngine, Spend, Step, Wait
from support.simulator.world import FlakyDatabase, LostAnswer
from support.stage.stage import PLACE, Stage

from backburner.bus.local import LocalBus
from backburner.core.conversation import Destination
from backburner.core.errors import EngineFailed
from backburner.core.question import YES
from backburner.core.run import RunStatus
from backburner.core.tool_policy import ALWAYS_HERE
from backburner.ports import ChannelMessage
from backburner.store.db import Database
from backburner.worker.notice_deliverer import Deliverer

SEND = Call("send", {"to": "Ann"})


@pytest.fixture
def flaky(database: Database, clock: SetClock) -> Iterator[FlakyDatabase]:
    with closing(FlakyDatabase(database.engine, clock)) as flaky:
        yield flaky


@pytest.fixture
def stage(flaky: FlakyDatabase) -> Stage:
    return Stage(flaky, LocalBus(), ScriptedEngine())


async def work_losing(stage: Stage, flaky: FlakyDatabase, step: Step, breaks: str) -> None:
    """Let a run do one step, and lose the answer to its first transaction or the question."""
    goes_on = asyncio.Event()

    def script() -> Iterator[Step]:
        yield Wait(goes_on)
        flaky.breaks = (breaks,)
        yield step

    stage.engine._scripts.append(script())
    await stage.take_up()
    # From here on there are no transactions but those of the run.
    goes_on.set()
    await stage.idle()


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_a_call_is_written_down_and_made_once(
    stage: Stage, flaky: FlakyDatabase, breaks: str
) -> None:
    stage.engine.then(SEND)
    task = await stage.task()
    await stage.work()
    await stage.answer(task, YES)

    await work_losing(stage, flaky, SEND, breaks)

    assert stage.tools.count("send") == 1
    assert stage.load(task).questions == ()
    assert stage.history(task)[0].status is RunStatus.SUCCESS


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_a_call_that_an_earlier_attempt_made_is_not_made_again(
    stage: Stage, clock: SetClock, flaky: FlakyDatabase, breaks: str
) -> None:
    stage.engine.then(SEND)
    task = await stage.task()
    await stage.work()
    await stage.answer(task, ALWAYS_HERE)
    stage.engine.then(SEND, Fail(EngineFailed("The model is overloaded.")))
    await stage.work()
    clock.advance(timedelta(minutes=1))

    await work_losing(stage, flaky, SEND, breaks)

    assert stage.tools.count("send") == 1
    assert stage.history(task)[0].status is RunStatus.SUCCESS


@pytest.mark.parametrize("tool", ["look", "slow"])
@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_a_later_call_whose_only_statement_is_its_commit_is_made_once(
    emptied_postgres: Database, breaks: str, tool: str
) -> None:
    stage = Stage(emptied_postgres, LocalBus(), ScriptedEngine())
    stage.tools.let_go.set()
    calls = [Call(tool, {"at": number}) for number in range(4)]
    stage.engine.then(*calls)
    task = await stage.task()

    with losing_a_call(emptied_postgres, breaks) as lost:
        await stage.work()

    assert len(lost) == 1
    assert stage.tools.calls == [(call.tool, call.arguments) for call in calls]
    assert stage.load(task).questions == ()
    assert stage.history(task)[0].status is RunStatus.SUCCESS


@contextmanager
def losing_a_call(database: Database, breaks: str) -> Iterator[list[str]]:
    """Lose the answer to the first statement that records a later call of a tool."""
    lost: list[str] = []

    def lose(_conn: Any, _cursor: Any, statement: str, values: Any, *_more: Any) -> None:
        if statement.startswith("WITH held") and "INSERT INTO tool_calls" in statement and not lost:
            lost.append(statement)
            raise OperationalError(statement, values, LostAnswer(), connection_invalidated=True)

    moment = f"{breaks}_cursor_execute"
    event.listen(database.engine, moment, lose)
    try:
        yield lost
    finally:
        event.remove(database.engine, moment, lose)


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_what_was_spent_is_counted_once(
    stage: Stage, flaky: FlakyDatabase, breaks: str
) -> None:
    await stage.task()

    await work_losing(stage, flaky, Spend(10), breaks)

    assert rows(stage, "SELECT tokens FROM spend") == [(10,)]


@pytest.mark.parametrize("breaks", ["before", "after"])
async def test_what_was_sent_is_written_down_once_the_database_is_back(
    stage: Stage, flaky: FlakyDatabase, breaks: str
) -> None:
    class Breaking(RecordingChannel):
        async def send(self, message: ChannelMessage) -> str | None:
            flaky.breaks = (breaks,)
            return await super().send(message)

    channel = Breaking()
    deliverer = Deliverer(replace(stage.deps, channels={PLACE: channel}), concurrency=1)
    await stage.task(reports_to=(Destination(PLACE, "somebody"),))
    await stage.work()

    assert await deliverer.run_once()

    assert not await deliverer.run_once()
    assert len(channel.sent) == 1
    assert rows(stage, "SELECT state FROM deliveries") == [("sent",)]


def rows(stage: Stage, query: str) -> list[tuple[object, ...]]:
    found = stage.database.run(lambda tx: tx.connection.exec_driver_sql(query).all())
    return [tuple(row) for row in found]
