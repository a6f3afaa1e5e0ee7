"""Work that would go on for ever is stopped by the first limit that it comes to.

Never is more spent than what was allowed and one call of a model for each run under way.
"""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from itertools import cycle, repeat
from typing import Any

import pytest
from sqlalchemy import func, select
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, ScriptedEngine, Spend, Step
from support.requirements import requirement
from support.stage.make import NOON
from support.stage.stage import Stage

from backburner.actions.deps import Limits
from backburner.bus.local import LocalBus
from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.conversation import Conversation, Kind, OnRepeatedFailure, PauseReason
from backburner.core.question import Purpose
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval
from backburner.core.tool_policy import MAX_REPEATED_CALLS
from backburner.core.work.jobs import MAX_OPEN_JOBS
from backburner.ports import TurnRequest
from backburner.store import tables
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox

#: What each call of the model takes.
CALL = 1_000
SEATS = 20


def runaway(database: Database, script: Any, *allowances: Allowance) -> Stage:
    """Set up an agent that does the same in every turn."""
    return Stage(
        database,
        LocalBus(),
        ScriptedEngine(otherwise=script),
        toolbox=Toolbox,
        allowances=allowances,
        limits=Limits(reservation=Amount(tokens=CALL), max_tasks=1_000),
    )


def spent(stage: Stage) -> int:
    total = select(func.coalesce(func.sum(tables.spend.c.tokens), 0))
    return int(stage.database.run(lambda tx: tx.connection.execute(total).scalar_one()))


def of_kind(stage: Stage, kind: Kind) -> list[Conversation]:
    def read(tx: Any) -> list[Conversation]:
        table = tables.conversations
        found = tx.connection.execute(select(table).where(table.c.kind == kind.value)).all()
        return [tx.conversations.load(row.user_id, row.id) for row in found]

    return stage.database.run(read)


async def settle(stage: Stage) -> None:
    for _ in range(5):
        await stage.work()


@requirement("Z-allowance", "B-budget")
async def test_calls_for_ever_end_with_what_a_run_may_spend(either: Database) -> None:
    def for_ever(_: TurnRequest) -> Iterator[Step]:
        for call in cycle([Call("list_work"), Call("background_list")]):
            yield Spend(CALL)
            yield call

    stage = runaway(either, for_ever, Allowance(AllowanceScope.RUN, tokens=10 * CALL))
    task = await stage.task()

    await settle(stage)

    assert spent(stage) == 10 * CALL
    assert stage.question(task).purpose is Purpose.ALLOWANCE
    assert [run.status for run in stage.history(task)] == [RunStatus.QUEUED]


@pytest.mark.parametrize("call", [Call("list_work"), Call("stop_work", {"name": "nothing"})])
async def test_the_same_call_again_and_again_ends_the_run(database: Database, call: Call) -> None:
    stage = runaway(database, lambda _: repeat(call))
    task = await stage.task(on_repeated_failure=OnRepeatedFailure.PAUSE)

    await stage.work()

    (run, *_) = stage.history(task)
    assert (run.status, len(stage.engine.results)) == (RunStatus.FAILURE, MAX_REPEATED_CALLS)
    assert run.failure is not None
    assert "same call 5 times" in run.failure.message


async def test_the_same_call_with_another_result_may_be_repeated(database: Database) -> None:
    def watch(_: TurnRequest) -> Iterator[Step]:
        for number in range(2 * MAX_REPEATED_CALLS):
            yield Call("memory_set", {"key": f"k{number}", "text": "x"})
            yield Call("list_work")
        yield End({"complete": True})

    stage = runaway(database, watch)
    task = await stage.task()

    await stage.work()

    assert stage.history(task)[0].status is RunStatus.SUCCESS


@requirement("Z-allowance")
async def test_work_of_every_minute_ends_with_what_a_day_may_cost(
    database: Database, clock: SetClock
) -> None:
    stage = runaway(
        database, lambda _: (Spend(CALL),), Allowance(AllowanceScope.DAY, tokens=5 * CALL)
    )
    tasks = [await stage.task(Interval(timedelta(minutes=1), anchor=NOON)) for _ in range(3)]

    for _ in range(20):
        await settle(stage)
        clock.advance(timedelta(minutes=1))

    assert 5 * CALL <= spent(stage) < (5 + len(tasks)) * CALL
    asking = [stage.load(task) for task in tasks if stage.load(task).questions]
    assert len(asking) == 1
    others = [stage.load(task) for task in tasks if not stage.load(task).questions]
    assert [task.pause_reason for task in others] == [PauseReason.ALLOWANCE] * 2


def starting_jobs(count: int, *, each: int) -> Any:
    """Let a chat start so many, and each of them some more."""

    def script(request: TurnRequest) -> Iterable[Step]:
        yield Spend(CALL)
        for number in range(count if request.conversation.kind is Kind.CHAT else each):
            yield Call("background_task", {"description": f"Job {number}", "prompt": "More."})

    return script


@requirement("Z-allowance")
async def test_jobs_that_start_jobs_end_with_what_the_conversation_may_spend(
    either: Database,
) -> None:
    limit = 15 * CALL
    stage = runaway(
        either, starting_jobs(3, each=3), Allowance(AllowanceScope.CONVERSATION, tokens=limit)
    )
    here = await stage.chat()
    await stage.say(here, "Go.")

    await settle(stage)

    assert limit <= spent(stage) <= limit + SEATS * CALL
    assert stage.question(here).purpose is Purpose.ALLOWANCE
    before = spent(stage)
    await settle(stage)
    assert spent(stage) == before


async def test_jobs_that_start_jobs_start_no_more_than_there_may_be(either: Database) -> None:
    stage = runaway(either, starting_jobs(MAX_OPEN_JOBS, each=1))
    here = await stage.chat()
    await stage.say(here, "Go.")

    refused = list[str]()
    # The first jobs may be taken up while the chat still starts others.
    while not refused:
        await stage.take_up()
        await stage.idle()
        still_open = [job for job in of_kind(stage, Kind.JOB) if job.schedule]
        assert 0 < len(still_open) <= MAX_OPEN_JOBS
        refused = [result.text for result in stage.engine.results if result.failed]

    assert all(f"{MAX_OPEN_JOBS} open jobs" in text for text in refused)
