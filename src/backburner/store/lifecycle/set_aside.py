"""The database that a restore replaces: kept beside the new one as `.before-N`.

A restore renames one file. Killed before that, it has changed nothing, and the next start removes
its traces.
"""

import glob
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

from backburner.core.errors import StoreFailed
from backburner.private_file import remove_abandoned


def restoring(path: Path) -> Path:
    """Return the file in which a restore prepares the new database."""
    return path.with_name(f"{path.name}.restoring")


def keep(path: Path) -> Path | None:
    """Give a database, which may be damaged, a second name; its log moves to that name."""
    if not path.exists():
        return None
    names = (path.with_name(f"{path.name}.before-{number}") for number in count(1))
    kept = next(name for name in names if not name.exists())
    _link_or_copy(path, kept)
    log, kept_log = _log_of(path), _log_of(kept)
    if log.exists():
        # First: SQLite deletes the log of a file that it cannot read.
        _link_or_copy(log, kept_log)
        with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            # The file is complete without it.
            kept_log.unlink()
            if not kept.samefile(path):
                shutil.copyfile(path, kept)
    # A log beside the new file would be taken for its own.
    log.unlink(missing_ok=True)
    Path(f"{path}-shm").unlink(missing_ok=True)
    return kept


def undo_interrupted(path: Path) -> None:
    """Undo a restore that did not get to its last step; the caller owns the file."""
    for kept in _kept(path):
        if path.exists() and kept.samefile(path):
            if _log_of(kept).exists() and not _log_of(path).exists():
                _log_of(kept).replace(_log_of(path))
            _log_of(kept).unlink(missing_ok=True)
            kept.unlink()
    remove_restoring(path)


def remove_restoring(path: Path) -> None:
    fresh = restoring(path)
    remove_abandoned(fresh)
    for ending in ("", "-wal", "-shm", "-journal", ".lock"):
        Path(f"{fresh}{ending}").unlink(missing_ok=True)


def refuse_empty(path: Path) -> None:
    """Refuse a missing or empty database while another one was set aside beside it."""
    if path.exists() and path.stat().st_size:
        return
    beside = [*_kept(path), *([fresh] if (fresh := restoring(path)).exists() else [])]
    if beside:
        newest = max(beside, key=lambda file: file.stat().st_mtime)
        raise StoreFailed(
            f"There is no database at {path}, but there is {newest}.",
            hint=f"Rename it to {path.name}, or restore a backup with `backburner db restore`."
            " To start with an empty database, move it to another folder.",
            permanent=True,
        )


def _kept(path: Path) -> Iterator[Path]:
    for file in path.parent.glob(f"{glob.escape(path.name)}.before-*"):
        if file.name.rpartition("-")[2].isdecimal():
            yield file


def _link_or_copy(path: Path, to: Path) -> None:
    try:
        to.hardlink_to(path)
    except OSError:
        # Not every file system has hard links.
        shutil.copyfile(path, to)
        to.chmod(0o600)


def _log_of(path: Path) -> Path:
    return Path(f"{path}-wal")
