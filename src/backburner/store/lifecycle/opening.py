"""Opens a database: checks that it can be used, locks a file for this process, and migrates it.

A database that cannot be used is refused with an explanation, and left unchanged.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, Engine, func, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError

from backburner.core.errors import BadSetting, StoreFailed
from backburner.store.db import Database
from backburner.store.dialect import Clock, is_sqlite, leave_pooled_mode, make_engine, upsert
from backburner.store.lifecycle import postgres_server, set_aside, sqlite_file
from backburner.store.lifecycle.schema import (
    OUR_VERSIONS,
    Versions,
    bring_up_to_date,
    check_tables,
    find_revision,
    known_revisions,
)
from backburner.store.tables import conversations, install
from backburner.store.tx import Tx

T = TypeVar("T")
#: The key in `install` of the row that is written to see whether rows can be.
WRITTEN = "written"
_SELECT_LAST_CHANGE = select(func.max(conversations.c.updated_at))


@dataclass(frozen=True, slots=True)
class DatabaseState:
    #: Of its tables; None: there are none yet, or they cannot be read.
    revision: str | None
    #: The revision to which it is migrated when it is opened.
    newest: str
    #: Another Backburner process has it open.
    in_use: bool = False
    #: When a conversation was last changed, if the tables are up to date.
    changed_at: datetime | None = None


def open_database(url: str, clock: Clock, *, versions: Versions = OUR_VERSIONS) -> Database:
    """Open the database of a URL; `versions` are the folders with its revisions."""
    engine = _make_engine(url)
    with ExitStack() as stack, _explained(engine):
        if path := _file_of(engine):
            stack.enter_context(sqlite_file.owned(path))
            set_aside.refuse_empty(path)
            set_aside.undo_interrupted(path)
            if sqlite_file.check(path):
                with sqlite_file.look(path) as connection:
                    check_tables(connection, f"The database file {path}", versions=versions)
        stack.callback(engine.dispose)
        if not is_sqlite(engine):
            _check_server(engine, versions)
            if not postgres_server.is_transaction_pooler(engine):
                leave_pooled_mode(engine)
        bring_up_to_date(engine, versions=versions)
        return Database(engine, clock, release=stack.pop_all().close)


def look_at_database(url: str, *, versions: Versions = OUR_VERSIONS) -> DatabaseState:
    """Inspect a database without changing it, and refuse it as `open_database` would."""
    with _looking(url, versions) as (state, _):
        return state


def read_at_rest(url: str, clock: Clock, read: Callable[[Tx], T]) -> T | None:
    """Read from a database without changing it.

    None: there is none, its tables are of another revision, or a server has it open.
    """
    with _looking(url, OUR_VERSIONS) as (state, connection):
        if connection is None or state.revision != state.newest:
            return None
        return read(Tx(connection, clock))


def file_of(url: str) -> Path | None:
    """Return the file of a URL; None: it names a server."""
    return _file_of(_make_engine(url))


def write_something(tx: Tx) -> None:
    """Check that the database can be written; it does not grow."""
    upsert(tx.connection, install, {"key": WRITTEN, "value": "true"})


def _check_server(engine: Engine, versions: Versions) -> None:
    name = postgres_server.name_of(engine.url)
    with engine.begin() as connection:
        postgres_server.check(connection, name)
        check_tables(connection, name, versions=versions)


@contextmanager
def _looking(url: str, versions: Versions) -> Iterator[tuple[DatabaseState, Connection | None]]:
    engine = _make_engine(url)
    with ExitStack() as stack, _explained(engine):
        stack.callback(engine.dispose)
        if path := _file_of(engine):
            yield _look_at_file(path, versions, stack)
            return
        name = postgres_server.name_of(engine.url)
        with engine.begin() as connection:
            postgres_server.check(connection, name)
            yield _look(connection, name, versions), connection


def _look_at_file(
    path: Path, versions: Versions, stack: ExitStack
) -> tuple[DatabaseState, Connection | None]:
    newest = known_revisions(versions)[-1]
    set_aside.refuse_empty(path)
    if not path.exists() or not path.stat().st_size:
        return DatabaseState(None, newest), None
    try:
        stack.enter_context(sqlite_file.owned(path))
    except StoreFailed as error:
        if error.permanent:
            raise
        # Its owner must stay the only connection.
        return DatabaseState(None, newest, in_use=True), None
    sqlite_file.check(path)
    connection = stack.enter_context(sqlite_file.look(path))
    return _look(connection, f"The database file {path}", versions), connection


def _look(connection: Connection, name: str, versions: Versions) -> DatabaseState:
    check_tables(connection, name, versions=versions)
    revision, newest = find_revision(connection), known_revisions(versions)[-1]
    if revision != newest:
        return DatabaseState(revision, newest)
    changed_at = connection.execute(_SELECT_LAST_CHANGE).scalar_one()
    return DatabaseState(revision, newest, changed_at=changed_at)


def _make_engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and "?" in url:
            raise BadSetting(
                "--database-url has a question mark in the name of a SQLite file.",
                hint="Write it as %3F; SQLite takes no options here.",
            )
        # Otherwise part of the password would be taken for the host, and be shown.
        if "@" in (parsed.host or ""):
            raise BadSetting(
                "--database-url has more than one @ in it.", hint="Write it as %40 in a password."
            )
        # For a first look, which leaves no setting behind on a connection that is shared.
        return make_engine(url, pooled=True)
    except (ArgumentError, ValueError):
        # The text of these errors may quote any part of the URL.
        raise BadSetting(
            "--database-url cannot be read.",
            hint="It takes sqlite:////a/path or postgresql://user:password@host/name.",
        ) from None


def _file_of(engine: Engine) -> Path | None:
    name = engine.url.database
    return Path(name).resolve() if is_sqlite(engine) and name and name != ":memory:" else None


@contextmanager
def _explained(engine: Engine) -> Iterator[None]:
    try:
        yield
    except (DBAPIError, sqlite3.Error, UnicodeError) as error:
        explanation = _explain(engine, getattr(error, "orig", None) or error)
        if explanation is None:
            raise
        raise explanation from error


def _explain(engine: Engine, error: BaseException) -> StoreFailed | None:
    if path := _file_of(engine):
        return sqlite_file.explain(path, error)
    return None if is_sqlite(engine) else postgres_server.explain(engine.url, error)
