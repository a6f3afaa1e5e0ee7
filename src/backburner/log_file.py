"""Files of the log: private, of limited size, one for each process that runs."""

import fcntl
import os
from collections.abc import Iterator
from io import TextIOWrapper
from itertools import count
from logging.handlers import RotatingFileHandler
from pathlib import Path

MAX_BYTES = 10 * 2**20
#: Older files that are kept, as NAME.log.1 and so on.
OLD_FILES = 3
#: Processes of one kind on a data folder that can have a file of their own.
MAX_PROCESSES = 100


class RotatingLogFile(RotatingFileHandler):
    """Writes NAME.log; if another process does, NAME-2.log and so on."""

    def __init__(
        self, folder: Path, name: str, *, max_bytes: int = MAX_BYTES, old_files: int = OLD_FILES
    ) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        path, self._lock_fd = _take_name(folder, name)
        super().__init__(path, maxBytes=max_bytes, backupCount=old_files, encoding="utf-8")

    def close(self) -> None:
        super().close()
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        descriptor = os.open(self.baseFilename, flags, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")


def old_paths(path: Path) -> Iterator[Path]:
    """Yield the older files of a log, newest first."""
    for number in range(1, OLD_FILES + 1):
        yield path.with_name(f"{path.name}.{number}")


def _take_name(folder: Path, name: str) -> tuple[Path, int]:
    """Find a name that no other process uses, and hold a lock on it."""
    for number in count(1):
        stem = name if number == 1 else f"{name}-{number}"
        descriptor = os.open(folder / f".{stem}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            if number >= MAX_PROCESSES:
                raise
            continue
        return folder / f"{stem}.log", descriptor
    raise AssertionError
