"""Transactions that only read: they cannot write, and neither wait for writers nor hold them up."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, insert, select, text
from sqlalchemy.exc import OperationalError
from support.doubles.clock import SetClock
from support.stage.make import USER
from support.stage.scene import Scene

from backburner.core.errors import StoreFailed
from backburner.ports import EventKind
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import READERS
from backburner.store.lifecycle.opening import open_database
from backburner.store.tx import Tx

BOUND = 20
_count = select(func.count()).select_from(tables.install)


def count(tx: Tx) -> int:
    found: int = tx.connection.execute(_count).scalar_one()
    return found


def add(tx: Tx) -> None:
    row = {"key": f"row {count(tx)}", "value": ""}
    tx.connection.execute(insert(tables.install), row)


def write_directly(tx: Tx) -> None:
    tx.connection.execute(insert(tables.install), {"key": "written", "value": ""})


def note_a_change(tx: Tx) -> None:
    tx.changed(USER, None, EventKind.USER)


def write_by_an_action(tx: Tx) -> None:
    tx.users.pause_everything(USER, paused=True)


def allow_writes_first(tx: Tx) -> None:
    if tx.connection.dialect.name == "sqlite":
        tx.connection.exec_driver_sql("PRAGMA query_only = OFF")
    write_directly(tx)


@pytest.mark.parametrize(
    "work", [write_directly, note_a_change, write_by_an_action, allow_writes_first]
)
async def test_nothing_can_be_written_in_a_read(
    database: Database, work: Callable[[Tx], None]
) -> None:
    Scene(database).user()
    with pytest.raises(AssertionError, match="use `transact`"):
        await database.read(work)

    assert await database.read(count) == 0
    await database.transact(add)
    assert await database.read(count) == 1


async def test_a_read_sees_every_commit_that_returned_before_it(database: Database) -> None:
    for number in range(1, 2 * READERS + 1):
        await database.transact(add)
        found = await asyncio.gather(*(database.read(count) for _ in range(READERS)))
        assert found == [number] * READERS


async def test_a_read_sees_one_snapshot_and_holds_up_no_writer(database: Database) -> None:
    def look_twice(tx: Tx) -> tuple[int, int]:
        before = count(tx)
        database.run(add)
        return before, count(tx)

    assert await database.read(look_twice) == (0, 0)
    assert await database.read(count) == 1


async def test_a_read_does_not_wait_for_a_writer(sqlite: Database) -> None:
    written, go_on = threading.Event(), threading.Event()

    def write_and_wait(tx: Tx) -> None:
        add(tx)
        written.set()
        assert go_on.wait(BOUND)

    writing = asyncio.create_task(sqlite.transact(write_and_wait))
    await asyncio.to_thread(written.wait, BOUND)
    async with asyncio.timeout(BOUND):
        assert await sqlite.read(count) == 0
    go_on.set()
    await writing
    assert await sqlite.read(count) == 1


def test_one_connection_alone_moves_the_log_into_the_file(sqlite: Database) -> None:
    sqlite.run(add)
    log = Path(f"{sqlite.engine.url.database}-wal")
    size = log.stat().st_size

    def checkpoint(tx: Tx) -> None:
        tx.connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    # Older versions of SQLite do not bear two that do.
    with pytest.raises(OperationalError):
        sqlite.read_here(checkpoint)
    sqlite.reading.dispose()
    assert log.stat().st_size == size > 0
    assert sqlite.read_here(count) == 1
    assert sqlite.close()
    assert not log.exists()


async def test_a_read_that_does_not_end_is_cut_off_when_the_database_is_closed(
    sqlite: Database,
) -> None:
    begun = threading.Event()
    endless = text(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
    )

    def read(tx: Tx) -> None:
        begun.set()
        tx.connection.execute(endless)

    reading = asyncio.create_task(sqlite.read(read))
    await asyncio.to_thread(begun.wait, BOUND)
    assert await asyncio.to_thread(sqlite.close)
    with pytest.raises(StoreFailed):
        await reading


async def test_reads_of_a_database_in_memory_see_it() -> None:
    with closing(open_database("sqlite://", SetClock())) as database:
        before = await database.read(count)
        await database.transact(add)
        assert await database.read(count) == before + 1
