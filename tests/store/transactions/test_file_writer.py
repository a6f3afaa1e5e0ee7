"""Transactions of a SQLite file that wait at the same time: one commit, and each by itself."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Event
from typing import Any

import pytest
from sqlalchemy import event, select, text, update
from sqlalchemy.exc import OperationalError
from support.stage.scene import Scene

from backburner.bus.local import LocalBus
from backburner.core.errors import Conflict, StoreFailed
from backburner.core.ids import UserId
from backburner.ports import Hint, HintKind
from backburner.store import file_writer
from backburner.store.db import Database
from backburner.store.tables import users
from backburner.store.tx import Tx

BOUND = 20
ZONES = ("Europe/Berlin", "Europe/Paris", "Europe/Rome")

Work = Callable[[Tx], Any]


@pytest.fixture
def scene(sqlite: Database) -> Scene:
    scene = Scene(sqlite)
    for zone in ZONES:
        scene.task(user=user_of(zone))
    return scene


@pytest.fixture(autouse=True)
def _long_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a group wait, however slow the machine is."""
    monkeypatch.setattr(file_writer, "MAX_GROUP_SECONDS", BOUND)


class HeardBus(LocalBus):
    def __init__(self) -> None:
        super().__init__()
        self.heard = list[Hint]()

    def hint(self, *hints: Hint) -> None:
        self.heard += hints


def user_of(zone: str) -> UserId:
    return UserId(f"u_{zone.rpartition('/')[2].lower()}")


def move(zone: str) -> Work:
    """Move a user to a zone."""

    def work(tx: Tx) -> str:
        where = users.c.id == user_of(zone)
        tx.connection.execute(update(users).where(where).values(zone=zone))
        tx.hint(Hint(HintKind.CHANGED, user_of(zone)))
        return zone

    return work


def zones(scene: Scene) -> set[str]:
    """Find the zones that users have moved to."""
    found = scene.run(lambda tx: tx.connection.execute(select(users.c.zone)).scalars().all())
    return set(found) & set(ZONES)


@contextmanager
def counted_commits(database: Database) -> Iterator[list[str]]:
    commits = list[str]()

    def count(_connection: Any) -> None:
        commits.append("commit")

    event.listen(database.engine, "commit", count)
    try:
        yield commits
    finally:
        event.remove(database.engine, "commit", count)


@asynccontextmanager
async def busy(database: Database) -> AsyncIterator[None]:
    """Keep the writer busy, so that whatever is begun meanwhile waits."""
    begun, released = asyncio.Event(), Event()
    loop = asyncio.get_running_loop()

    def work(_tx: Tx) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert released.wait(BOUND)

    task = asyncio.create_task(database.transact(work))
    await begun.wait()
    try:
        yield
        # All that is to wait has been submitted by then.
        await asyncio.sleep(0)
    finally:
        released.set()
        await task


async def run_together(database: Database, *works: Work) -> list[Any]:
    """Run transactions that wait at the same time; give their results or errors."""
    async with asyncio.timeout(BOUND):
        async with busy(database):
            tasks = [asyncio.create_task(database.transact(work)) for work in works]
        return await asyncio.gather(*tasks, return_exceptions=True)


async def test_transactions_that_wait_share_a_commit(scene: Scene) -> None:
    with counted_commits(scene.database) as commits:
        results = await run_together(scene.database, *map(move, ZONES))

    assert results == list(ZONES)
    assert zones(scene) == set(ZONES)
    # The one that kept the writer busy had its own.
    assert len(commits) == 2


async def test_an_error_undoes_only_what_belongs_to_it(scene: Scene) -> None:
    def fail(tx: Tx) -> None:
        move(ZONES[1])(tx)
        raise Conflict("No.")

    results = await run_together(scene.database, move(ZONES[0]), fail, move(ZONES[2]))

    assert [type(one) for one in results] == [str, Conflict, str]
    assert zones(scene) == {ZONES[0], ZONES[2]}


async def test_after_an_error_of_the_database_each_is_tried_by_itself(scene: Scene) -> None:
    tries = list[str]()

    def first(tx: Tx) -> None:
        tries.append("first")
        move(ZONES[0])(tx)

    def fail(tx: Tx) -> None:
        move(ZONES[1])(tx)
        # As some errors of SQLite do.
        tx.connection.exec_driver_sql("ROLLBACK")
        tx.connection.execute(text("SELECT nothing FROM nowhere"))

    results = await run_together(scene.database, first, fail, move(ZONES[2]))

    assert tries == ["first", "first"]
    assert isinstance(results[1], OperationalError | StoreFailed)
    assert zones(scene) == {ZONES[0], ZONES[2]}


async def test_after_a_commit_that_fails_each_is_tried_by_itself(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialect, commits = scene.database.engine.dialect, list[str]()
    commit = dialect.do_commit

    def fail_once(connection: Any) -> None:
        commits.append("commit")
        if len(commits) == 2:
            raise scene.database.engine.dialect.loaded_dbapi.OperationalError("disk I/O error")
        commit(connection)

    monkeypatch.setattr(dialect, "do_commit", fail_once)
    results = await run_together(scene.database, *map(move, ZONES))

    assert results == list(ZONES)
    # Of the first one, of the group, and of each.
    assert len(commits) == 5
    assert zones(scene) == set(ZONES)


async def test_nobody_gets_a_result_or_a_hint_before_the_commit(scene: Scene) -> None:
    database = scene.database
    database.bus = bus = HeardBus()
    heard_before = list[Hint]()

    def look(_tx: Tx) -> bool:
        heard_before.extend(bus.heard)
        return first.done()

    async with asyncio.timeout(BOUND):
        async with busy(database):
            first = asyncio.create_task(database.transact(move(ZONES[0])))
            second = asyncio.create_task(database.transact(look))
        assert await second is False
        await first

    assert (heard_before, bus.heard) == ([], [Hint(HintKind.CHANGED, user_of(ZONES[0]))])


async def test_an_old_group_takes_no_more(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "MAX_GROUP_SECONDS", -1)
    with counted_commits(scene.database) as commits:
        results = await run_together(scene.database, *map(move, ZONES))

    assert results == list(ZONES)
    assert len(commits) == 4


async def test_a_transaction_that_was_cancelled_while_it_waited_is_not_run(scene: Scene) -> None:
    database = scene.database
    async with asyncio.timeout(BOUND):
        async with busy(database):
            cancelled, other = (
                asyncio.create_task(database.transact(move(zone))) for zone in ZONES[:2]
            )
            await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.sleep(0)
        await other

    assert zones(scene) == {ZONES[1]}


async def test_transactions_that_wait_when_the_database_is_closed_are_given_up(
    sqlite: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("backburner.store.db.CLOSE_GRACE_SECONDS", 0.01)
    monkeypatch.setattr("backburner.store.db.CUT_GRACE_SECONDS", 0.01)
    Scene(sqlite)
    async with busy(sqlite):
        waiting = asyncio.create_task(sqlite.transact(lambda _tx: None))
        await asyncio.sleep(0)
        await asyncio.to_thread(sqlite.close)
        with pytest.raises(asyncio.CancelledError):
            await waiting


class Breakdown(BaseException):
    pass


async def test_nobody_waits_for_a_group_that_breaks_down(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_down(*_: Any) -> None:
        raise Breakdown

    monkeypatch.setattr(scene.database._writer, "_run_in_savepoint", break_down)

    results = await run_together(scene.database, *map(move, ZONES))

    # The last one is alone again.
    assert [type(one) for one in results] == [Breakdown, Breakdown, str]


async def test_a_transaction_that_begins_after_the_end_is_refused(sqlite: Database) -> None:
    sqlite.close()

    with pytest.raises(RuntimeError):
        await sqlite.transact(lambda _tx: None)
    assert not sqlite._underway


async def test_a_bus_that_fails_keeps_nobody_waiting(scene: Scene) -> None:
    class BrokenBus(LocalBus):
        def hint(self, *hints: Hint) -> None:
            if any(hint.user == user_of(ZONES[0]) for hint in hints):
                raise RuntimeError("There is no bus.")

    scene.database.bus = BrokenBus()

    results = await run_together(scene.database, *map(move, ZONES))

    assert [type(one) for one in results] == [RuntimeError, str, str]
    assert zones(scene) == set(ZONES)
