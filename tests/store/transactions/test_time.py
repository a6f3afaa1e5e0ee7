"""The time of a transaction on PostgreSQL: read with its locks, in the same round trip."""

from datetime import datetime

import pytest
from sqlalchemy import text
from support.doubles.engine import ScriptedEngine
from support.stage.make import USER
from support.stage.scene import Scene
from support.stage.stage import Stage
from support.stage.work import start_work
from support.statements import watched

from backburner.bus.local import LocalBus
from backburner.core.schedule import Immediate
from backburner.core.transitions import Brief
from backburner.store.db import Database
from backburner.store.tx import Tx


@pytest.fixture
def scene(emptied_postgres: Database) -> Scene:
    return Scene(emptied_postgres)


def read_clock(tx: Tx) -> datetime:
    now: datetime = tx.connection.execute(text("SELECT clock_timestamp()")).scalar_one()
    return now


def test_the_time_is_not_older_than_the_last_lock(scene: Scene) -> None:
    task = scene.task()

    def lock_both(tx: Tx) -> tuple[datetime, datetime, datetime]:
        tx.users.lock(USER)
        between = read_clock(tx)
        tx.conversations.lock(USER, task.id)
        return between, tx.now, read_clock(tx)

    between, now, after = scene.database.run(lock_both)

    assert between < now < after


def test_a_time_that_was_used_stays(scene: Scene) -> None:
    task = scene.task()

    def lock_both(tx: Tx) -> tuple[datetime, datetime]:
        tx.users.lock(USER)
        used = tx.now
        tx.conversations.lock(USER, task.id)
        return used, tx.now

    used, now = scene.database.run(lock_both)

    assert used == now


async def test_work_is_started_without_a_round_trip_for_the_time(
    emptied_postgres: Database,
) -> None:
    stage = Stage(emptied_postgres, LocalBus(), ScriptedEngine())
    await stage.chat()
    brief = Brief(title="Work", prompt="Do it.", schedule=Immediate())

    with watched(emptied_postgres) as statements:
        # With the clock of the server, as in a program.
        await start_work(stage.deps, USER, brief)

    assert [" ".join(sql.split()[:2]) for sql, _ in statements] == [
        "WITH locked",
        "SELECT conversations.id,",
        "WITH w0",
    ]
