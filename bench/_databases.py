"""Databases to measure on, full of rows: files of SQLite, and a PostgreSQL server; both durable."""

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Connection, Engine, text
from support.people.users import add_user
from support.servers.postgres_server import new_postgres, stopped_postgres

from backburner.core import transitions
from backburner.core.conversation import Destination, Notify
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import Interval
from backburner.core.transitions import Brief
from backburner.store import tables
from backburner.store.dialect import is_sqlite, make_engine
from backburner.store.lifecycle.schema import bring_up_to_date
from backburner.store.tx import Tx


def clock() -> tuple[datetime, int]:
    return datetime.fromtimestamp(time.time_ns() / 1e9, UTC), time.monotonic_ns() // 1000


#: A moment at which nothing is due yet, and one at which all is that will be for a long time.
BEFORE = clock()[0] - timedelta(hours=12)
LATER = BEFORE + timedelta(hours=12)
_BORN = BEFORE + timedelta(hours=1)
_EVERY = timedelta(days=300)

#: As somebody would set up a server who has a gigabyte to spare.
SETTINGS = {
    "fsync": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "'1GB'",
    "max_wal_size": "'4GB'",
}
#: Both databases understand it, so that the same words fill either.
_NUMBERS = (
    "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :count) "
)

#: Makes a database with all tables and no row.
Maker = Callable[[], AbstractContextManager[Engine]]


@contextmanager
def sqlite_files() -> Iterator[Maker]:
    with tempfile.TemporaryDirectory(prefix="bb-bench-") as folder:
        names = (Path(folder, str(number)) for number in count())
        yield lambda: _opened(f"sqlite:///{next(names)}")


@contextmanager
def postgres_databases() -> Iterator[Maker]:
    @contextmanager
    def make() -> Iterator[Engine]:
        with new_postgres(server) as url, _opened(url) as engine:
            yield engine

    with durable_postgres() as server:
        yield make


@contextmanager
def durable_postgres() -> Iterator[str]:
    """Run a server whose commits are on a disk, and give its URL."""
    with stopped_postgres(on_disk=True) as start:
        with start() as server, psycopg.connect(server, autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(f"ALTER SYSTEM SET {name} = {value}")
        with start() as server:
            yield server


def fill(
    engine: Engine,
    *,
    conversations: int,
    due: int,
    people: int,
    busy: int | None = None,
    reports_to: tuple[Destination, ...] = (Destination("discord", "1234567890"),),
) -> None:
    """Put in so many that are due, a fifth with work for later, and chats.

    What is due belongs to the `busy` users who were served last, by default a tenth: whoever looks
    for the one that was served least recently has to pass the others, who never want anything.
    """
    busy, later = busy or max(people // 10, 1), conversations // 5
    with engine.begin() as connection:
        _prepare(connection)
        _add_templates(connection, reports_to)
        _add_users(connection, people)
        _copy(connection, "c_due", due, owner=f"{people - busy} + n % {busy}")
        _copy(connection, "c_later", later, owner=f"n % {people}")
        _copy(connection, "c_chat", conversations - due - later, owner=f"n % {people}")
        connection.execute(text("DELETE FROM conversations WHERE user_id = 'u_template'"))
        connection.execute(text("DELETE FROM users WHERE id = 'u_template'"))
        _add_history(connection)
    vacuum(engine)


def vacuum(engine: Engine) -> None:
    """Leave it as a server does that has a moment to spare; SQLite has nobody who would."""
    with closing(engine.raw_connection()) as borrowed:
        driver: Any = borrowed.driver_connection
        if is_sqlite(engine):
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        else:
            driver.autocommit = True
            driver.execute("VACUUM ANALYZE")
            driver.autocommit = False


@contextmanager
def _opened(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    # As users have it: SQLite also goes by the order in which indexes were made.
    bring_up_to_date(engine)
    try:
        yield engine
    finally:
        engine.dispose()


def _prepare(connection: Connection) -> None:
    if connection.dialect.name == "sqlite":
        driver: Any = connection.connection.driver_connection
        driver.create_function("md5", 1, _md5)
    else:
        # What the rows refer to is there; to look each up would take longer than all the rest.
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text("SET LOCAL statement_timeout = 0"))


def _md5(given: str) -> str:
    return hashlib.md5(given.encode(), usedforsecurity=False).hexdigest()


def _add_templates(connection: Connection, reports_to: tuple[Destination, ...]) -> None:
    """Put in one of each kind, as the core makes them."""
    tx, user = Tx(connection, clock), UserId("u_template")
    tx.set_time(_BORN, 0)
    add_user(tx, user, now=_BORN)
    chat = transitions.start_chat(ConversationId("c_chat"), user, now=_BORN)
    tx.conversations.add(chat, cause=None)
    for name, first_at in {"c_due": _BORN, "c_later": _BORN + _EVERY}.items():
        brief = Brief(
            title=name,
            prompt="Read what came in since yesterday and say in three lines what matters." * 3,
            schedule=Interval(_EVERY, anchor=first_at),
            notify=Notify.ALWAYS,
            reports_to=reports_to,
        )
        task = transitions.start_task(ConversationId(name), user, brief, now=_BORN)
        tx.conversations.add(task, cause=None)


def _add_users(connection: Connection, people: int) -> None:
    later = _later(connection, "created_at", "n")
    connection.execute(
        text(
            f"{_NUMBERS}INSERT INTO users (id, served_at, created_at)"  # noqa: S608 (our own words)
            f" SELECT 'u_' || CAST(n - 1 AS text), {later}, created_at"
            " FROM numbers, users WHERE id = 'u_template'"
        ),
        {"count": people},
    )


def _copy(connection: Connection, template: str, count: int, *, owner: str) -> None:
    """Make many of one, with ids in no order, each a moment later than the one before."""
    if not count:
        return
    values = {column.name: f"t.{column.name}" for column in tables.conversations.columns}
    values |= {
        "user_id": f"'u_' || CAST({owner} AS text)",
        "id": f"'c_' || substr(md5('{template}' || CAST(n AS text)), 1, 26)",
        "next_run_at": _later(connection, "t.next_run_at", "n"),
    }
    connection.execute(
        text(
            f"{_NUMBERS}INSERT INTO conversations ({', '.join(values)})"  # noqa: S608
            f" SELECT {', '.join(values.values())} FROM numbers, conversations t WHERE t.id = :one"
        ),
        {"count": count, "one": template},
    )


def _add_history(connection: Connection) -> None:
    """Give whatever has a schedule a run and an event that are over."""
    run = {
        "id": "'r' || id",
        "user_id": "user_id",
        "conversation_id": "id",
        "kind": "'background'",
        "status": "'success'",
        "unattended": "true",
        "epoch": "1",
        "schedule_revision": "1",
        "started_at": "created_at",
        "ended_at": "created_at",
        "tokens": "1000",
    }
    item = {
        "id": "'i' || id",
        "user_id": "user_id",
        "conversation_id": "id",
        "kind": "'event'",
        "run_kind": "'background'",
        "from_person": "false",
        "at_once": "false",
        "content": "'[]'",
        "arrived_at": "created_at",
        "served_at": "created_at",
        "served_by": "'r' || id",
    }
    for table, values in {"runs": run, "inbox": item}.items():
        connection.execute(
            text(
                f"INSERT INTO {table} ({', '.join(values)})"  # noqa: S608
                f" SELECT {', '.join(values.values())} FROM conversations"
                " WHERE status = 'background'"
            )
        )


def _later(connection: Connection, column: str, number: str) -> str:
    if connection.dialect.name == "sqlite":
        return f"{column} + {number}"
    return f"{column} + {number} * interval '1 microsecond'"
