"""Views are read through indexes, in a number of statements that does not grow."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, Spend
from support.stage.api_stage import Asker
from support.stage.make import NOON
from support.stage.stage import Stage
from support.statements import watched

from backburner.core.schedule import Interval
from backburner.store import tables

HOUR = timedelta(hours=1)
EVERY_HOUR = Interval(HOUR, anchor=NOON)
SCANS = re.compile(rf"SCAN ({'|'.join(tables.metadata.tables)})\b")


async def things_to_show(ask: Asker, stage: Stage, clock: SetClock) -> dict[str, str]:
    """Have a task with runs, calls and questions, and a job; return their ids."""
    task = await stage.task(EVERY_HOUR)
    for _ in range(2):
        stage.engine.then(Spend(7), Call("look"))
        await stage.work()
        clock.advance(HOUR)
    stage.engine.then(Call("send"))
    await stage.work()
    job = {"conversation": task.id, "description": "Job", "prompt": "Do it."}
    await ask.do("POST", "/api/jobs", job)
    await stage.work()
    return {"task": task.id, "run": stage.history(task)[0].id}


@pytest.mark.parametrize(
    ("path", "most"),
    [
        ("/api/runs/{run}", 26),
        ("/api/runs?status=ended", 12),
        ("/api/runs?status=queued", 14),
        ("/api/conversations/{task}/stats", 12),
        ("/api/upcoming", 8),
        ("/api/jobs/tree", 20),
        ("/api/spend", 10),
    ],
)
async def test_a_view_is_read_through_indexes(
    ask: Asker, stage: Stage, clock: SetClock, path: str, most: int
) -> None:
    ids = await things_to_show(ask, stage, clock)

    with watched(stage.database) as queries:
        await ask.get(path.format(**ids))

    reads = [(query, values) for query, values in queries if query.startswith("SELECT")]
    steps = [step for query, values in reads for step in explain(stage, query, values)]
    assert [step for step in steps if SCANS.match(step)] == []
    assert len(reads) <= most, len(reads)


async def test_what_a_run_has_served_is_found_by_its_index(
    ask: Asker, stage: Stage, clock: SetClock
) -> None:
    ids = await things_to_show(ask, stage, clock)

    with watched(stage.database) as queries:
        await ask.get(f"/api/runs/{ids['run']}")

    steps = [step for query, values in queries for step in explain(stage, query, values)]
    assert any("ix_inbox_served_by (user_id=? AND served_by=?" in step for step in steps)
    asked = "ix_questions_of_conversation (user_id=? AND conversation_id=? AND asked_at>?"
    assert any(asked in step for step in steps)


def explain(stage: Stage, query: str, values: Any) -> Sequence[str]:
    if not query.startswith("SELECT"):
        return ()
    rows = stage.database.run(
        lambda tx: tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query}", values).all()
    )
    return [row[3] for row in rows]
