"""The file of a SQLite database: locked for one process, and checked before it is opened.

In SQLite before 3.51.3 several connections that write or checkpoint can race when the log is reset.
So only one connection does, which is another reason for the lock; the others are read-only.
"""

import fcntl
import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from textwrap import shorten
from urllib.parse import quote

from sqlalchemy import Connection, NullPool, create_engine

from backburner.core.errors import StoreFailed
from backburner.store.failures import FREE_SPACE, is_disk_full
from backburner.store.lifecycle.schema import APPLICATION_ID, REVISIONS, foreign_database

MAGIC = b"SQLite format 3\0"
#: The time limit of the quick check: the rest of a large file is not checked.
QUICK_CHECK_SECONDS = 0.3
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_UNUSABLE = (
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_READONLY,
)
#: Instructions of SQLite between two checks of the time.
_CHECK_INTERVAL = 10_000


@contextmanager
def owned(path: Path) -> Iterator[None]:
    """Lock a file for this process; the lock ends with the process."""
    lock = Path(f"{path}.lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise _unusable(path.parent, "folder", error) from error
    # Unbuffered: what could not be written would fail again when it is closed.
    with open(handle, "r+b", buffering=0) as file:  # noqa: PTH123 (it is a descriptor)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            file.truncate(0)
            file.write(f"{os.getpid()}\n".encode())
        except BlockingIOError:
            raise _taken(path, file.read(20).decode().strip()) from None
        except OSError as error:
            raise _unusable(path.parent, "folder", error) from error
        try:
            yield
        finally:
            # The lock file stays: another process may have opened it already.
            file.truncate(0)


def check(path: Path) -> bool:
    """See whether there is a writable database; create an empty file if there is no file."""
    try:
        if not path.exists():
            # Private, whatever the permissions of its folder.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
            return False
        if not stat.S_ISREG(path.stat().st_mode):
            raise _damaged(path, "it is not a file")
        # Before SQLite opens the database: closing a file drops all locks of the process on it.
        for file in (path, _log_of(path), Path(f"{path}-shm")):
            if file.exists():
                file.open("r+b").close()
        check_head(path)
    except OSError as error:
        raise _unusable(path, "file", error) from error
    return path.stat().st_size > 0


@contextmanager
def look(path: Path) -> Iterator[Connection]:
    """Open a database read-only, after checking that it is undamaged and ours."""
    # Reading a log creates files beside it, so that mode is used only if there is one.
    mode = "mode=ro" if _log_of(path).exists() else "immutable=1"
    with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as reader:
        try:
            _check_pages(path, reader)
            _check_owner(path, reader)
        except sqlite3.Error as error:
            raise explain(path, error) or _damaged(path, str(error)) from error
        engine = create_engine("sqlite://", creator=lambda: reader, poolclass=NullPool)
        with engine.connect() as connection:
            yield connection


def explain(path: Path, error: BaseException) -> StoreFailed | None:
    """Explain an error of the file; None: it is another error."""
    if isinstance(error, UnicodeError):
        return _damaged(path, "it has invalid text")
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code in _DAMAGED:
        return _damaged(path, str(error))
    if code in _BUSY:
        return StoreFailed(
            f"The database file {path} is in use by another program.",
            hint="Close that program.",
        )
    if is_disk_full(error):
        return StoreFailed(f"The disk of the database file {path} is full.", hint=FREE_SPACE)
    if code in _UNUSABLE:
        return StoreFailed(
            f"The database file {path} cannot be used: {_shorten(str(error))}.",
            hint="Check that it and its folder can be written.",
        )
    return None


def _log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def check_head(path: Path) -> None:
    """Refuse a file that is no database or is truncated."""
    with path.open("rb") as file:
        head, size = file.read(100), os.fstat(file.fileno()).st_size
    # The log may contain the missing pages.
    has_log = _log_of(path).exists() and _log_of(path).stat().st_size > 0
    if size == 0:
        if has_log:
            raise _damaged(path, "it is empty, though its log is not")
        return
    if not head.startswith(MAGIC[: len(head)]):
        raise StoreFailed(
            f"{path} is not a SQLite database.",
            hint="Choose another file with --database-url, or another folder with --data.",
            permanent=True,
        )
    page = int.from_bytes(head[16:18], "big")
    # 1 stands for the largest page size, which does not fit.
    expected = (65536 if page == 1 else page) * int.from_bytes(head[28:32], "big")
    if len(head) < 100 or (size < expected and not has_log):
        raise _damaged(path, f"it ends after {size:,} of {max(expected, 100):,} bytes")


def _check_pages(path: Path, reader: sqlite3.Connection) -> None:
    ends_at = time.monotonic() + QUICK_CHECK_SECONDS
    reader.set_progress_handler(lambda: time.monotonic() > ends_at, _CHECK_INTERVAL)
    result = "ok"
    try:
        result = reader.execute("PRAGMA quick_check(1)").fetchone()[0]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
            raise
    finally:
        reader.set_progress_handler(None, 0)
    if result != "ok":
        raise _damaged(path, result.removeprefix("*** in database main ***"))


def _check_owner(path: Path, reader: sqlite3.Connection) -> None:
    (owner,) = reader.execute("PRAGMA application_id").fetchone()
    tables = {name for (name,) in reader.execute("SELECT name FROM sqlite_master")}
    # A database restored from an SQL dump has the tables without the mark.
    if owner != APPLICATION_ID and (owner or (tables and REVISIONS not in tables)):
        raise foreign_database(f"The database file {path}")


def _taken(path: Path, owner: str) -> StoreFailed:
    who = f"Process {owner}" if owner else "Another process"
    return StoreFailed(
        f"{who} has the database file {path} open, and only one process may.",
        hint="Use the Backburner that is running, or stop it;"
        " several at once need PostgreSQL or a --data folder each.",
    )


def _damaged(path: Path, how: str) -> StoreFailed:
    return StoreFailed(
        f"The database file {path} is damaged: {_shorten(how)}.",
        hint="It was left unchanged. Restore a backup with `backburner db restore`.",
        permanent=True,
    )


def _shorten(message: str) -> str:
    """Shorten a message of SQLite, which may quote a whole table, to one line."""
    return shorten(message, 100, placeholder="...")


def _unusable(path: Path, what: str, error: OSError) -> StoreFailed:
    if is_disk_full(error):
        return StoreFailed(f"The disk of the database {what} {path} is full.", hint=FREE_SPACE)
    return StoreFailed(
        f"The database {what} {path} cannot be used: {(error.strerror or str(error)).lower()}.",
        hint="Make it writable, or choose another with --data or --database-url.",
        permanent=True,
    )
