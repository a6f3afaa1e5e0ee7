"""Claims that are taken back, and cycles: through the store, and the same by the bare driver."""

import asyncio
import time
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from _databases import clock
from sqlalchemy import Engine, event, text

from backburner.core import transitions
from backburner.core.outcome import Complete
from backburner.core.run import RunEnding, RunStatus
from backburner.ports import Claim, Claimer
from backburner.store.db import Database
from backburner.store.dialect import is_sqlite, make_engine
from backburner.store.tx import Tx

CLAIMER = Claimer(worker="bench", lease=timedelta(seconds=30), per_user_limit=5)
SAID = "Three mails: two can wait, one is from your landlord."


class Statement(NamedTuple):
    """What the driver was given."""

    sql: str
    values: Any
    has_many: bool


#: What was done between BEGIN and COMMIT.
Transaction = list[Statement]


def claim_and_forget(engine: Engine, now: datetime, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        with engine.connect() as connection, connection.begin() as transaction:
            tx = Tx(connection, clock)
            tx.set_time(now, 0)
            start = time.perf_counter()
            tx.queue.claim_work(CLAIMER)
            taken.append(time.perf_counter() - start)
            if not is_sqlite(engine):
                # Behind psycopg's back: with every rollback it forgets what it has prepared, and
                # a claim that is committed does not.
                driver: Any = connection.connection.driver_connection
                driver.pgconn.exec_(b"ROLLBACK")
            transaction.rollback()
    return taken


def claim(tx: Tx) -> Claim | None:
    return next(iter(tx.queue.claim(None, CLAIMER)), None)


def commit(held: Claim | None, tx: Tx) -> None:
    """Write down an outcome with a message, a notice and a part to be delivered."""
    if held is None:
        raise LookupError("There was nothing to claim.")
    step = transitions.finish(
        tx.turns.hold(held.turn), held.run, Complete(message=SAID), now=tx.now
    )
    tx.turns.commit(held.turn, step, RunEnding(status=RunStatus.SUCCESS))


class Cycles:
    """Does a number of cycles in one of three ways; `put_back` makes it as if it never had."""

    def __init__(self, engine: Engine, count: int) -> None:
        self._engine = engine
        self._count = count
        self._database = Database(engine, clock)
        due = "SELECT * FROM conversations WHERE title = 'c_due'"
        with engine.begin() as connection:
            connection.execute(text(f"CREATE TABLE conversations_before AS {due}"))
            connection.execute(text("CREATE TABLE users_before AS SELECT * FROM users"))
        self._cycles = self._record()

    def through_store(self) -> list[float]:
        return _cycle(self._database, self._count)

    def through_thread(self) -> list[float]:
        return asyncio.run(self._transact())

    async def _transact(self) -> list[float]:
        taken = []
        for _ in range(self._count):
            start = time.perf_counter()
            held = await self._database.transact(claim)
            await self._database.transact(partial(commit, held))
            taken.append(time.perf_counter() - start)
        return taken

    def through_driver(self) -> list[float]:
        borrowed = self._engine.raw_connection()
        driver: Any = borrowed.driver_connection
        run = _run_on_sqlite if is_sqlite(self._engine) else _run_on_postgres
        taken = []
        for claimed, committed in self._cycles:
            start = time.perf_counter()
            run(driver, claimed)
            run(driver, committed)
            taken.append(time.perf_counter() - start)
        borrowed.close()
        return taken

    def put_back(self) -> None:
        restore = (
            "DELETE FROM events",
            # What they own goes with them.
            "DELETE FROM conversations WHERE id IN (SELECT id FROM conversations_before)",
            "INSERT INTO conversations SELECT * FROM conversations_before",
            """UPDATE users SET served_at = before.served_at
               FROM users_before before WHERE before.id = users.id""",
        )
        with self._engine.begin() as connection:
            for sql in restore:
                connection.execute(text(sql))

    def _record(self) -> list[tuple[Transaction, Transaction]]:
        """Note what the driver is given; elsewhere, for an engine that is listened to is slower."""
        watched = make_engine(self._engine.url.render_as_string(hide_password=False))
        seen: list[Transaction] = []
        _listen(watched, seen)
        _cycle(Database(watched, clock), self._count)
        watched.dispose()
        self.put_back()
        return list(zip(seen[::2], seen[1::2], strict=True))


def _cycle(database: Database, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        held = database.run(claim)
        database.run(partial(commit, held))
        taken.append(time.perf_counter() - start)
    return taken


def _listen(engine: Engine, seen: list[Transaction]) -> None:
    @event.listens_for(engine, "begin")
    def begin(_connection: object) -> None:
        seen.append([])

    @event.listens_for(engine, "before_cursor_execute")
    def note(*given: Any) -> None:
        _connection, _cursor, sql, values, _context, has_many = given
        seen[-1].append(Statement(sql, values, has_many))


def _run_on_sqlite(driver: Any, transaction: Transaction) -> None:
    driver.execute("BEGIN IMMEDIATE")
    _run_all(driver, transaction)
    driver.execute("COMMIT")


def _run_on_postgres(driver: Any, transaction: Transaction) -> None:
    _run_all(driver, transaction)
    driver.commit()


def _run_all(driver: Any, transaction: Transaction) -> None:
    cursor = driver.cursor()
    for sql, values, has_many in transaction:
        if has_many:
            cursor.executemany(sql, values)
            continue
        cursor.execute(sql, values)
        if cursor.description:
            cursor.fetchall()
    cursor.close()
