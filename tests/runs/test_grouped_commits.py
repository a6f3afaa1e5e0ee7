"""Which runs may be committed together with others."""

from collections.abc import Callable

import pytest
from support.doubles.engine import Fail, Say
from support.stage.stage import Stage

from backburner.core.errors import EngineFailed
from backburner.core.run import Turn
from backburner.ports import Tx
from backburner.store.db import Database


@pytest.fixture
def alone(database: Database, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record which commits ask for a transaction of their own."""
    asked, commit = list[bool](), database.commit

    async def record(turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        asked.append(alone)
        await commit(turn, work, alone=alone)

    monkeypatch.setattr(database, "commit", record)
    return asked


async def test_a_reply_waits_for_no_other_run(stage: Stage, alone: list[bool]) -> None:
    stage.engine.then(Say("Yes?"))
    await stage.say(await stage.chat(), "Hello?")
    await stage.work()

    assert alone == [True]


async def test_work_that_ended_well_may_be_committed_with_others(
    stage: Stage, alone: list[bool]
) -> None:
    await stage.task()
    await stage.work()

    assert alone == [False]


async def test_work_that_failed_is_committed_by_itself(stage: Stage, alone: list[bool]) -> None:
    stage.engine.then(Fail(EngineFailed("Broken.")))
    await stage.task()
    await stage.work()

    assert alone == [True]
