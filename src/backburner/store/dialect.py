"""The differences between SQLite and PostgreSQL, and the check which one a database is.

Both run with full durability: a transaction that has committed is on disk.
"""

import os
import socket
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, partial
from threading import Timer
from typing import Any, cast
from urllib.parse import quote

from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Engine,
    QueuePool,
    Row,
    Select,
    StaticPool,
    Table,
    Text,
    create_engine,
    event,
    func,
    literal_column,
    make_url,
    select,
    text,
)
from sqlalchemy import cast as cast_to
from sqlalchemy.dialects import postgresql, registry, sqlite
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import DBAPIConnection, Dialect
from sqlalchemy.pool import ConnectionPoolEntry

from backburner.store.compiled import DirectConnection
from backburner.store.folding import add_to_sqlite
from backburner.store.types import to_micros

#: How long a writer waits for the lock of another one.
BUSY_MILLISECONDS = 5000
#: Connections to a SQLite file that only read; urgent transactions have their own.
READERS, URGENT_READERS = 4, 1
#: Threads that use PostgreSQL. Urgent transactions have their own: others may wait for locks or for
#: a silent server much longer.
THREADS, URGENT_THREADS = 8, 3
#: Set on every connection, after its start: poolers refuse options there.
POSTGRES_SETTINGS = {
    "timezone": "UTC",
    "synchronous_commit": "on",
    "lock_timeout": "10s",
    # Shorter: who waits for the lock of a silent transaction is to get it.
    "idle_in_transaction_session_timeout": "5s",
    "statement_timeout": "60s",
}
#: For connecting, and again for the first statements of a connection; a URL may set another.
CONNECT_SECONDS = 10
#: A statement is prepared when it is executed once more than this.
_PREPARE_AFTER = 5
#: The key of the timer that cuts a connection which does not get ready.
_TIMER = "setup_timer"

#: Returns the time, and the tick of the lease clock in microseconds.
Clock = Callable[[], tuple[datetime, int]]


class ImmediateSqlite(SQLiteDialect_pysqlite):
    """Begins transactions with the write lock; an event listener would slow every statement."""

    supports_statement_cache = True

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.execute("BEGIN IMMEDIATE")


class ReadingSqlite(SQLiteDialect_pysqlite):
    """Begins transactions without a lock: the first read decides which commits they see."""

    supports_statement_cache = True

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.execute("BEGIN")


class PooledPostgres(PGDialect_psycopg):
    """Makes the settings in each transaction, while it is used for a pooler."""

    supports_statement_cache = True
    pooled = True

    def do_begin(self, dbapi_connection: Any) -> None:
        if self.pooled:
            dbapi_connection.execute(_select_settings("true"))


registry.register("sqlite.immediate", __name__, ImmediateSqlite.__name__)
registry.register("sqlite.reading", __name__, ReadingSqlite.__name__)
registry.register("postgresql.pooled", __name__, PooledPostgres.__name__)


def make_engine(url: str, *, pooled: bool = False) -> Engine:
    """Connect to a database; `pooled` is for a PostgreSQL pooler in transaction mode.

    There the next transaction may have another connection to the server: settings are made in each
    transaction, and no statement is prepared.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _make_sqlite_engine(parsed)
    engine = create_engine(
        parsed.set(drivername="postgresql+pooled"),
        # One for each thread. More would be closed after each use: a new one takes longer than a
        # transaction, and has no statement prepared.
        pool_size=THREADS + URGENT_THREADS,
        max_overflow=0,
        # The connection used last has its statements prepared.
        pool_use_lifo=True,
        pool_timeout=10,
        # Parameters as PostgreSQL itself writes them: the driver has nothing to replace.
        paramstyle="numeric_dollar",
        connect_args={
            "connect_timeout": (seconds := _connect_timeout(parsed)),
            "prepare_threshold": None,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    )
    event.listen(engine, "do_connect", partial(_connect, seconds))
    # After the first statements of SQLAlchemy itself.
    event.listen(engine, "connect", partial(_set_up, engine))
    if not pooled:
        leave_pooled_mode(engine)
    return _direct(engine)


def make_reading_engine(engine: Engine) -> Engine:
    """Connect to the same database for transactions that read one snapshot and cannot write.

    A database in memory has one connection, which is used for both.
    """
    if not is_sqlite(engine):
        # The driver says so in its BEGIN, without a round trip.
        return _direct(
            engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        )
    if is_in_memory(engine):
        return engine
    # Read-only below SQLite, too: before 3.51.3 only one connection may write or checkpoint.
    uri = f"file:{quote(str(engine.url.database))}?mode=ro"
    reading = create_engine(
        "sqlite+reading://",
        creator=partial(
            sqlite3.connect,
            uri,
            uri=True,
            check_same_thread=False,
            timeout=BUSY_MILLISECONDS / 1000,
        ),
        poolclass=QueuePool,
        pool_size=READERS + URGENT_READERS,
        max_overflow=0,
        pool_use_lifo=True,
    )
    event.listen(reading, "connect", _set_reading_pragmas)
    return _direct(reading)


def make_single_engine(engine: Engine) -> Engine:
    """Connect to the same database for single statements, without a transaction around them.

    In transaction mode a pooler needs one: its settings are made there.
    """
    if is_pooled(engine):
        return engine
    return _direct(engine.execution_options(isolation_level="AUTOCOMMIT"))


def leave_pooled_mode(engine: Engine) -> None:
    """Make the settings once per connection, and prepare statements."""
    cast("PooledPostgres", engine.dialect).pooled = False
    # Connections that were opened before have no settings.
    engine.dispose()


def is_pooled(engine: Engine) -> bool:
    """See whether this is an engine for a pooler in transaction mode."""
    return bool(getattr(engine.dialect, "pooled", False))


def is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def is_in_memory(engine: Engine) -> bool:
    """See whether this is a SQLite database without a file."""
    return is_sqlite(engine) and _is_without_file(engine.url)


def has_row_locks(connection: Connection) -> bool:
    """See whether others may hold locks; a transaction of SQLite has the whole file."""
    return connection.dialect.name != "sqlite"


def cut(connection: Any) -> None:
    """End what a connection of the driver is doing in another thread, whatever the server does."""
    if isinstance(connection, sqlite3.Connection):
        connection.interrupt()
        return
    # Below the driver, which then finds that the connection was lost; or it has just found out.
    with suppress(Exception), socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.shutdown(socket.SHUT_RDWR)


def read_clock(connection: Connection, clock: Clock) -> tuple[datetime, int]:
    """Read the time from PostgreSQL, which several machines may share; for SQLite from `clock`."""
    if connection.dialect.name == "sqlite":
        return clock()
    now: datetime = connection.execute(_SELECT_CLOCK).scalar_one()
    return now.astimezone(UTC), to_micros(now)


def read_by_clock(
    connection: Connection, clock: Clock, with_now: Select[Any], with_clock: Select[Any]
) -> tuple[Row[Any], datetime, int]:
    """Read a row that depends on the time: passed as `now`, or by the clock of the database."""
    if connection.dialect.name == "sqlite":
        now, tick = clock()
        return connection.execute(with_now, {"now": now}).one(), now, tick
    row = connection.execute(with_clock).one()
    return row, row.clock.astimezone(UTC), to_micros(row.clock)


def read_with_clock(
    connection: Connection, clock: Clock, statement: Select[Any]
) -> tuple[Row[Any], datetime, int]:
    """Read one row and the time in a single round trip."""
    if connection.dialect.name == "sqlite":
        return connection.execute(statement).one(), *clock()
    row = connection.execute(_with_clock(statement)).one()
    return row, row.clock.astimezone(UTC), to_micros(row.clock)


@cache
def _with_clock(statement: Select[Any]) -> Select[Any]:
    return statement.add_columns(func.clock_timestamp().label("clock"))


@cache
def with_clock_after(statement: Select[Any]) -> Select[Any]:
    """Add the time to a statement that locks, as it is when the lock has been granted."""
    return select(statement.cte("locked"), func.clock_timestamp().label("clock"))


def version_of(*tables: Table) -> ColumnElement[str]:
    """Return the version of a row of each table: another one after any change of one of them.

    On PostgreSQL only, whose rows know the transaction that wrote them.
    """
    written_by = (cast_to(literal_column(f"{table.name}.xmin"), Text) for table in tables)
    return func.concat_ws(text("' '"), *written_by)


def insert_if_absent(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless its key exists; return whether it was inserted."""
    statement = _insert(connection, table).values(**row).on_conflict_do_nothing()
    # PostgreSQL reports no reliable row count here, but returns the inserted row.
    return connection.execute(statement.returning(literal_column("1"))).first() is not None


def insert_or_add(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *names: str
) -> None:
    """Insert rows, or add these columns to the existing rows with the same keys."""
    statement = _insert(connection, table)
    sums = {name: table.c[name] + statement.excluded[name] for name in names}
    key = list(table.primary_key)
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=sums), rows)


def upsert(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    key = list(table.primary_key)
    others = {name: value for name, value in row.items() if name not in table.primary_key.columns}
    statement = _insert(connection, table).values(**row)
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=others))


def _insert(connection: Connection, table: Table) -> postgresql.Insert | sqlite.Insert:
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)


def use_snapshot(connection: Connection) -> None:
    """Read one snapshot in the whole transaction; call this before the first read."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def count_other_connections(connection: Connection) -> int:
    """Count the other connections of this database user; a SQLite file has one owner anyway."""
    if connection.dialect.name == "sqlite":
        return 0
    return int(connection.execute(_COUNT_CONNECTIONS).scalar_one())


def database_size(connection: Connection) -> int:
    """Return the bytes of the database, without logs."""
    if connection.dialect.name == "sqlite":
        pages, size = (
            int(connection.exec_driver_sql(f"PRAGMA {name}").scalar_one())
            for name in ("page_count", "page_size")
        )
        return pages * size
    return int(connection.execute(_SELECT_SIZE).scalar_one())


def check_pages(connection: Connection) -> list[str]:
    """Describe damage of a SQLite file; a PostgreSQL server checks its own files."""
    if connection.dialect.name != "sqlite":
        return []
    lines = connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars().all()
    damage = [str(line) for line in lines if line != "ok"]
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(5)
    return damage + [f"A row of {row[0]} has no {row[2]} it belongs to." for row in orphans]


def number_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Number new rows of one user; on PostgreSQL the sequence of the table does.

    SQLite generates numbers only for keys of one column, and these keys begin with the owner.
    """
    if rows and connection.dialect.name == "sqlite":
        values = {"owner": rows[0]["user_id"], "counter": table.name, "count": len(rows)}
        last: int = connection.execute(_TAKE_NUMBERS, values).scalar_one()
        for number, row in enumerate(rows, last - len(rows) + 1):
            row["number"] = number


def take_numbers(connection: Connection, values: Mapping[str, Any]) -> str:
    """Take `:count` numbers from the `:counter` of `:owner`, which is locked until the commit.

    Returns the SQL of a CTE with `user_id` and the `last` number, empty if the user has just been
    deleted. PostgreSQL takes the numbers in the statement that contains the CTE, in one round trip;
    SQLite has no data-modifying CTEs, so for it they are taken here.
    """
    if connection.dialect.name != "sqlite":
        return _TAKE_NUMBERS_CTE
    connection.execute(_TAKE_NUMBERS, values).all()
    return _TAKEN_NUMBERS_CTE


def number_from(connection: Connection, table: Table, number: int) -> None:
    """Give future rows of a table greater numbers than this."""
    if connection.dialect.name != "sqlite" and table.c.number.identity is not None:
        values = {"table": table.name, "column": "number", "number": number}
        connection.execute(_RAISE_SEQUENCE, values)
    else:
        connection.execute(_RAISE_COUNTERS, {"counter": table.name, "number": number})


_TAKE_NUMBERS_CTE = (
    "(INSERT INTO counters AS c (user_id, name, last)"
    " SELECT id, :counter, CAST(:count AS bigint) FROM users WHERE id = :owner"
    " ON CONFLICT (user_id, name) DO UPDATE SET last = c.last + excluded.last"
    " RETURNING user_id, last)"
)
_TAKEN_NUMBERS_CTE = (
    "(SELECT user_id, last FROM counters WHERE user_id = :owner AND name = :counter)"
)
_TAKE_NUMBERS = text(
    "INSERT INTO counters AS c (user_id, name, last)"
    " SELECT id, :counter, :count FROM users WHERE id = :owner"
    " ON CONFLICT (user_id, name) DO UPDATE SET last = c.last + excluded.last"
    " RETURNING last"
)
_RAISE_COUNTERS = text(
    "INSERT INTO counters AS c (user_id, name, last)"
    " SELECT id, :counter, CAST(:number AS bigint) FROM users WHERE true"
    " ON CONFLICT (user_id, name) DO UPDATE SET last = excluded.last"
    " WHERE c.last < excluded.last"
)
_RAISE_SEQUENCE = text(
    "SELECT setval(counter, greatest(nextval(counter), CAST(:number AS bigint)))"
    " FROM (SELECT CAST(pg_get_serial_sequence(:table, :column) AS regclass)) AS of (counter)"
)
_SELECT_CLOCK = text("SELECT clock_timestamp()")
_SELECT_SIZE = text("SELECT pg_database_size(current_database())")
_COUNT_CONNECTIONS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND pid <> pg_backend_pid()"
)


def _connect_timeout(url: URL) -> int:
    seconds = str(url.query.get("connect_timeout", ""))
    return int(seconds) if seconds.isdecimal() and int(seconds) else CONNECT_SECONDS


def _connect(
    seconds: int,
    dialect: Dialect,
    entry: ConnectionPoolEntry,
    args: Sequence[Any],
    options: dict[str, Any],
) -> DBAPIConnection:
    connection = dialect.connect(*args, **options)
    connection.cursor_factory = dialect.loaded_dbapi.RawCursor
    # A pooler signs clients in by itself, and its server may be silent.
    entry.info[_TIMER] = timer = Timer(seconds, cut, [connection])
    timer.daemon = True
    timer.start()
    return connection


def _set_up(engine: Engine, connection: DBAPIConnection, entry: ConnectionPoolEntry) -> None:
    if not is_pooled(engine):
        # Without a transaction, in one round trip.
        connection.autocommit = True
        connection.execute(_select_settings("false"))
        connection.autocommit = False
        connection.prepare_threshold = _PREPARE_AFTER
    entry.info.pop(_TIMER).cancel()


@cache
def _select_settings(local: str) -> str:
    calls = (f"set_config('{name}', '{to}', {local})" for name, to in POSTGRES_SETTINGS.items())
    return f"SELECT {', '.join(calls)}"


def _make_sqlite_engine(url: URL) -> Engine:
    engine = create_engine(
        url.set(drivername="sqlite+immediate"),
        connect_args={"check_same_thread": False, "timeout": BUSY_MILLISECONDS / 1000},
        **(
            {"poolclass": StaticPool}
            if _is_without_file(url)
            else {"pool_size": 1, "max_overflow": 0}
        ),
    )
    event.listen(engine, "connect", _set_pragmas)
    return _direct(engine)


def _direct(engine: Engine) -> Engine:
    """Execute statements by the driver."""
    engine._connection_cls = DirectConnection  # noqa: SLF001 (there is no public way)
    return engine


def _is_without_file(url: URL) -> bool:
    return not url.database or url.database == ":memory:"


def _set_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # The transaction handling of Python's driver would begin transactions too late.
    connection.isolation_level = None
    add_to_sqlite(connection)
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_MILLISECONDS}",
        "cache_size = -65536",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _set_reading_pragmas(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None
    add_to_sqlite(connection)
    for pragma in ("query_only = ON", "cache_size = -16384", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
