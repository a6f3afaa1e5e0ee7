"""Errors of the database driver: lost connections, full disks, locks, and unexpected ones."""

import errno
import os
import sqlite3

import structlog
from sqlalchemy.exc import (
    DatabaseError,
    DataError,
    DBAPIError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    SQLAlchemyError,
)
from sqlalchemy.exc import TimeoutError as PoolTimeout

from backburner.core.errors import StoreBusy, StoreFailed

NO_ANSWER = "The database does not answer."
DISK_FULL = "The disk is full."
LOCKED = "Another transaction has locked this for too long."
#: How an operator ends a full disk.
FREE_SPACE = "Free some space: nothing can be saved until then."
#: The index by which only one run at a time writes in a folder.
FOLDER_IN_USE = "uq_conversations_folder_in_use"
_SERIALIZATION, _DEADLOCK = "40001", "40P01"
_DISK_FULL, _LOCK_TIMEOUT, _READ_ONLY = "53100", "55P03", "25006"
#: Of this process, or of the system.
NO_HANDLES = (errno.EMFILE, errno.ENFILE)

_log = structlog.get_logger(__name__)


def is_retryable(error: DBAPIError) -> bool:
    return _state(error) in (_SERIALIZATION, _DEADLOCK) or _is_folder_taken(error)


def _is_folder_taken(error: DBAPIError) -> bool:
    """See whether another claim has just taken a turn in the same folder."""
    diagnosis = getattr(error.orig, "diag", None)
    return getattr(diagnosis, "constraint_name", None) == FOLDER_IN_USE


def is_connection_lost(error: DBAPIError) -> bool:
    return bool(error.connection_invalidated) or isinstance(
        error, OperationalError | InterfaceError
    )


def is_refused_write(error: DBAPIError) -> bool:
    """See whether a statement would have written in a transaction that only reads."""
    code: int = getattr(error.orig, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code == sqlite3.SQLITE_READONLY or _state(error) == _READ_ONLY


def is_disk_full(error: BaseException | None) -> bool:
    """Recognize a full disk in an error of either driver, or of the system."""
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK)
    return code & 0xFF == sqlite3.SQLITE_FULL or getattr(error, "sqlstate", None) == _DISK_FULL


def explain(error: SQLAlchemyError) -> StoreFailed | None:
    """Explain an error that is not due to one statement; None: it is, so it is a bug."""
    if isinstance(error, PoolTimeout):
        return StoreFailed("All connections to the database are in use.", hint="Try again.")
    if not isinstance(error, DBAPIError) or isinstance(error, DataError | IntegrityError):
        return None
    if is_disk_full(error.orig):
        return StoreFailed(DISK_FULL, hint=FREE_SPACE)
    if _state(error) == _LOCK_TIMEOUT:
        return StoreBusy(LOCKED, hint="Try again.")
    if is_connection_lost(error):
        # The driver does not tell why it could not connect.
        return StoreFailed(NO_ANSWER) if _has_free_handle() else no_handles()
    if isinstance(error, DatabaseError):
        _log.error("store.failed", error=str(error.orig).partition("\n")[0])
        return StoreFailed("The database failed.", hint="The log of the server says why.")
    return None


def no_handles() -> StoreFailed:
    return StoreFailed(
        "This process has no free file handles to connect to the database.",
        hint="Raise its limit (ulimit -n, or LimitNOFILE of systemd).",
    )


def _has_free_handle() -> bool:
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno not in NO_HANDLES
    return True


def _state(error: DBAPIError) -> str | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    return state
