"""What differs between SQLite and PostgreSQL: the only file that asks which one it is.

Both get full durability: an answer of "done" means that it is on the disk.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Row,
    Select,
    StaticPool,
    Table,
    create_engine,
    event,
    func,
    literal_column,
    make_url,
    text,
)
from sqlalchemy.dialects import postgresql, registry, sqlite
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from backburner.store.types import to_micros

#: How long a writer waits for another one before it gives up.
BUSY_MILLISECONDS = 5000
POSTGRES_OPTIONS = (
    "-c timezone=UTC -c synchronous_commit=on -c lock_timeout=10s"
    " -c idle_in_transaction_session_timeout=30s -c statement_timeout=60s"
)
_SERIALIZATION, _DEADLOCK = "40001", "40P01"

#: Gives the time, and the clock of leases in microseconds.
Clock = Callable[[], tuple[datetime, int]]


class ImmediateSqlite(SQLiteDialect_pysqlite):
    """Begins a transaction with the lock for writing; an event would slow every statement down."""

    supports_statement_cache = True

    def do_begin(self, dbapi_connection: Any) -> None:
        dbapi_connection.execute("BEGIN IMMEDIATE")


registry.register("sqlite.immediate", __name__, ImmediateSqlite.__name__)


def make_engine(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed)
    return create_engine(
        parsed.set(drivername="postgresql+psycopg"),
        pool_size=5,
        max_overflow=5,
        # The one that was used last has its statements prepared.
        pool_use_lifo=True,
        pool_timeout=10,
        connect_args={
            "connect_timeout": 10,
            "options": POSTGRES_OPTIONS,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    )


def is_sqlite(engine: Engine) -> bool:
    return engine.dialect.name == "sqlite"


def read_clock(connection: Connection, own: Clock) -> tuple[datetime, int]:
    """Read the time: the database's where many machines share one, else this process's own."""
    if connection.dialect.name == "sqlite":
        return own()
    now: datetime = connection.execute(_CLOCK).scalar_one()
    return now.astimezone(UTC), to_micros(now)


def read_by_clock(
    connection: Connection, own: Clock, told: Select[Any], by_itself: Select[Any]
) -> tuple[Row[Any], datetime, int]:
    """Read one row for which the time counts: the one it is `told`, or what the database has."""
    if connection.dialect.name == "sqlite":
        now, tick = own()
        return connection.execute(told, {"now": now}).one(), now, tick
    row = connection.execute(by_itself).one()
    return row, row.clock.astimezone(UTC), to_micros(row.clock)


def read_with_clock(
    connection: Connection, own: Clock, statement: Select[Any]
) -> tuple[Row[Any], datetime, int]:
    """Read one row and the time together, where that is one question less to the database."""
    if connection.dialect.name == "sqlite":
        return connection.execute(statement).one(), *own()
    row = connection.execute(_with_clock(statement)).one()
    return row, row.clock.astimezone(UTC), to_micros(row.clock)


@cache
def _with_clock(statement: Select[Any]) -> Select[Any]:
    return statement.add_columns(func.clock_timestamp().label("clock"))


def is_worth_repeating(error: DBAPIError) -> bool:
    """See whether the same transaction may well succeed if it is simply run again."""
    return getattr(error.orig, "sqlstate", None) in (_SERIALIZATION, _DEADLOCK)


def is_connection_lost(error: DBAPIError) -> bool:
    return bool(error.connection_invalidated) or isinstance(
        error, OperationalError | InterfaceError
    )


def insert_unless_there(connection: Connection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row, or leave the one that has its key; tell whether it was inserted."""
    module = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = module.insert(table).values(**row).on_conflict_do_nothing()
    # How many rows there were is not told reliably on PostgreSQL; what was inserted is.
    return connection.execute(statement.returning(literal_column("1"))).first() is not None


def add_up(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *names: str
) -> None:
    """Insert rows, or add what these columns say to the rows that have their key."""
    module = sqlite if connection.dialect.name == "sqlite" else postgresql
    statement = module.insert(table)
    sums = {name: table.c[name] + statement.excluded[name] for name in names}
    key = list(table.primary_key)
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=sums), rows)


def put(connection: Connection, table: Table, row: Mapping[str, Any]) -> None:
    """Insert a row, or write over the one that has its key."""
    module = sqlite if connection.dialect.name == "sqlite" else postgresql
    key = list(table.primary_key)
    others = {name: value for name, value in row.items() if name not in table.primary_key.columns}
    statement = module.insert(table).values(**row)
    connection.execute(statement.on_conflict_do_update(index_elements=key, set_=others))


def read_as_one(connection: Connection) -> None:
    """Let all that is read in a transaction be of one moment; nothing may have been read yet."""
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")


def count_others(connection: Connection) -> int:
    """Count who else of ours has this database open; a file has one owner anyway."""
    if connection.dialect.name == "sqlite":
        return 0
    found: int = connection.execute(_OTHERS).scalar_one()
    return found


def check_pages(connection: Connection) -> list[str]:
    """Name what is wrong with the file itself; a server sees to its own files."""
    if connection.dialect.name != "sqlite":
        return []
    found = connection.exec_driver_sql("PRAGMA integrity_check(5)").scalars().all()
    wrong = [str(line) for line in found if line != "ok"]
    orphans = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(5)
    return wrong + [f"A row of {row[0]} has no {row[2]} it belongs to." for row in orphans]


def number_rows(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    """Number new rows of one user; on PostgreSQL the sequence of their table does when they come.

    SQLite numbers only by a key of one column, and these keys begin with the owner.
    """
    if rows and connection.dialect.name == "sqlite":
        values = {"owner": rows[0]["user_id"], "counter": table.name, "count": len(rows)}
        last: int = connection.execute(_COUNT, values).scalar_one()
        for number, row in enumerate(rows, last - len(rows) + 1):
            row["number"] = number


def counted(connection: Connection, values: Mapping[str, Any]) -> str:
    """Take `:count` numbers from the `:counter` of `:owner`, which is locked until the commit.

    Returns the SQL of a common table with the `user_id` and the `last` of them; it is empty if the
    user has just been deleted. PostgreSQL takes them in the statement that has this table in it, so
    that it is asked once; SQLite has no such statements, and has taken them already.
    """
    if connection.dialect.name != "sqlite":
        return _COUNTING
    connection.execute(_COUNT, values).all()
    return _COUNTED


def number_from(connection: Connection, table: Table, number: int) -> None:
    """Let the rows of a table that come from now on have greater numbers than this."""
    if connection.dialect.name != "sqlite" and table.c.number.identity is not None:
        values = {"table": table.name, "column": "number", "number": number}
        connection.execute(_SEQUENCE_FROM, values)
    else:
        connection.execute(_COUNT_FROM, {"counter": table.name, "number": number})


_COUNTING = (
    "(INSERT INTO counters AS c (user_id, name, last)"
    " SELECT id, :counter, CAST(:count AS bigint) FROM users WHERE id = :owner"
    " ON CONFLICT (user_id, name) DO UPDATE SET last = c.last + excluded.last"
    " RETURNING user_id, last)"
)
_COUNTED = "(SELECT user_id, last FROM counters WHERE user_id = :owner AND name = :counter)"
_COUNT = text(
    "INSERT INTO counters AS c (user_id, name, last)"
    " SELECT id, :counter, :count FROM users WHERE id = :owner"
    " ON CONFLICT (user_id, name) DO UPDATE SET last = c.last + excluded.last"
    " RETURNING last"
)
_COUNT_FROM = text(
    "INSERT INTO counters AS c (user_id, name, last)"
    " SELECT id, :counter, CAST(:number AS bigint) FROM users WHERE true"
    " ON CONFLICT (user_id, name) DO UPDATE SET last = excluded.last"
    " WHERE c.last < excluded.last"
)
_SEQUENCE_FROM = text(
    "SELECT setval(counter, greatest(nextval(counter), CAST(:number AS bigint)))"
    " FROM (SELECT CAST(pg_get_serial_sequence(:table, :column) AS regclass)) AS of (counter)"
)
_CLOCK = text("SELECT clock_timestamp()")
_OTHERS = text(
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND usename = current_user AND pid <> pg_backend_pid()"
)


def _sqlite(url: URL) -> Engine:
    in_memory = not url.database or url.database == ":memory:"
    engine = create_engine(
        url.set(drivername="sqlite+immediate"),
        connect_args={"check_same_thread": False, "timeout": BUSY_MILLISECONDS / 1000},
        **({"poolclass": StaticPool} if in_memory else {"pool_size": 1, "max_overflow": 0}),
    )
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    # Python's own handling of transactions would begin them too late.
    connection.isolation_level = None
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        f"busy_timeout = {BUSY_MILLISECONDS}",
        "cache_size = -65536",
        "temp_store = MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")
