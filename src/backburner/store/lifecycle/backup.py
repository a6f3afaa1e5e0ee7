"""Copies of a SQLite database: made while it is open or closed, and restored.

PostgreSQL has its own programs for this; a database that they have loaded is settled here too.
"""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

from sqlalchemy import Connection

from backburner.core.errors import BadRequest, Conflict, StoreFailed
from backburner.private_file import draft_file
from backburner.store.db import Database
from backburner.store.dialect import Clock, count_other_connections, is_sqlite
from backburner.store.lifecycle import restore, set_aside, sqlite_file
from backburner.store.lifecycle.check import find_faults
from backburner.store.lifecycle.opening import file_of, open_database
from backburner.store.lifecycle.restore import Restored
from backburner.store.lifecycle.schema import check_tables, find_revision

#: Pages that are copied at a time, and the pause in which transactions can run.
_BATCH_PAGES = 256
_PAUSE_SECONDS = 0.005
#: How long a server may take to end the connections of a program that has ended.
_ENDING_SECONDS = 1.0
_LOOK_SECONDS = 0.05
#: The draft of a copy that gets no name.
UNNAMED_COPY = "backup"


@dataclass(frozen=True, slots=True)
class RestoreResult:
    what: Restored
    #: Where the former database is now.
    kept: Path | None


def copy_in_use(database: Database, to: Path) -> None:
    """Copy the database that this process has open, without blocking transactions for long."""
    source = _connection_of(database)
    with _writing(to) as target:
        source.backup(target, pages=_BATCH_PAGES, sleep=_PAUSE_SECONDS)


def copy_to_unnamed_file(database: Database, folder: Path) -> IO[bytes]:
    """Copy it to a deleted file in a folder, whose space is freed when it is closed."""
    source = _connection_of(database)
    with draft_file(folder / UNNAMED_COPY) as draft:
        with _open_new(draft) as target:
            source.backup(target, pages=_BATCH_PAGES, sleep=_PAUSE_SECONDS)
        return draft.open("rb")


def copy_at_rest(url: str, to: Path) -> None:
    """Copy a database that no process has open."""
    path = _need_file(url)
    if not path.exists():
        raise BadRequest(f"There is no database at {path}.", hint="Name its folder with --data.")
    with sqlite_file.owned(path), sqlite_file.look(path) as source, _writing(to) as target:
        _driver_of(source).backup(target)


def put_back(url: str, copy: Path, clock: Clock) -> RestoreResult:
    """Replace a database with a copy; it is left unchanged until the copy has been settled."""
    path = _need_file(url)
    with sqlite_file.owned(path):
        set_aside.undo_interrupted(path)
        fresh = set_aside.restoring(path)
        try:
            _copy_checked(copy, fresh)
            with closing(open_database(f"sqlite:///{quote(str(fresh))}", clock)) as database:
                what = database.run(restore.settle)
            kept = set_aside.keep(path)
            fresh.replace(path)
            _sync(path.parent)
        finally:
            set_aside.undo_interrupted(path)
    return RestoreResult(what, kept)


def settle_loaded(url: str, clock: Clock) -> Restored:
    """Settle a database into which another program has loaded a copy."""
    with closing(open_database(url, clock)) as database:
        if others := _count_lasting_connections(database):
            raise Conflict(
                "1 other connection has this database open."
                if others == 1
                else f"{others} other connections have this database open.",
                hint="Stop every server and worker first.",
            )
        return database.run(restore.settle)


def check_copy(copy: Path) -> list[str]:
    """Describe the faults of a copy."""
    with _open_copy(copy) as connection:
        return find_faults(connection)


def use_pg_dump() -> Conflict:
    return Conflict(
        "PostgreSQL has its own backup program.",
        hint="Run: pg_dump --format=custom --no-owner --file=FILE URL",
    )


def use_pg_restore() -> Conflict:
    return Conflict(
        "PostgreSQL has its own restore program.",
        hint="Stop every server and worker, run"
        " `pg_restore --clean --if-exists --no-owner --dbname=URL FILE`,"
        " and then `backburner db restore --loaded`.",
    )


def _count_lasting_connections(database: Database) -> int:
    """Count connections of others, apart from those that the server is still ending."""
    until = time.monotonic() + _ENDING_SECONDS
    while True:
        # Each look is a transaction of its own: within one the server repeats its first answer.
        with database.engine.begin() as connection:
            others = count_other_connections(connection)
        if not others or time.monotonic() > until:
            return others
        time.sleep(_LOOK_SECONDS)


def _need_file(url: str) -> Path:
    path = file_of(url)
    if path is None:
        raise use_pg_restore()
    return path


@contextmanager
def _open_copy(copy: Path) -> Iterator[Connection]:
    """Open a copy to read it; refuse a file that is no Backburner database."""
    if not copy.is_file():
        raise BadRequest(f"There is no file {copy}.")
    sqlite_file.check_head(copy)
    with sqlite_file.look(copy) as connection:
        check_tables(connection, f"The file {copy}")
        if find_revision(connection) is None:
            raise BadRequest(f"The file {copy} is not a copy of a Backburner database.")
        yield connection


def _copy_checked(copy: Path, fresh: Path) -> None:
    with _open_copy(copy) as source:
        if faults := find_faults(source):
            raise StoreFailed(
                f"The file {copy} is damaged: {faults[0]}",
                hint="Nothing was changed. Use another copy.",
                permanent=True,
            )
        with _writing(fresh) as target:
            _driver_of(source).backup(target)


def _connection_of(database: Database) -> sqlite3.Connection:
    if not is_sqlite(database.engine):
        raise use_pg_dump()
    # The writing connection: writes in the meantime get into the copy too. It is checked out of the
    # pool only for a moment.
    return database.run(lambda tx: _driver_of(tx.connection))


def _driver_of(connection: Connection) -> sqlite3.Connection:
    return cast("sqlite3.Connection", connection.connection.driver_connection)


@contextmanager
def _writing(to: Path) -> Iterator[sqlite3.Connection]:
    """Open a private new file, which gets its name when it is complete."""
    try:
        with draft_file(to) as draft:
            with _open_new(draft) as target:
                yield target
            _sync(draft)
            # Unlike a rename, this never replaces an existing file.
            to.hardlink_to(draft)
    except FileExistsError as error:
        raise Conflict(
            f"{error.filename2 or to} exists already.", hint="Choose another name."
        ) from None
    except OSError as error:
        raise StoreFailed(
            f"{to} cannot be written: {(error.strerror or str(error)).lower()}.", permanent=True
        ) from error


def _open_new(draft: Path) -> closing[sqlite3.Connection]:
    # Without the locks of SQLite: some systems do not tell them from the lock of the draft.
    return closing(sqlite3.connect(f"file:{quote(str(draft))}?nolock=1", uri=True))


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
