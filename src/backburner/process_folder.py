"""The private folder of one process: removed when it ends, or swept after it was killed."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from functools import cached_property
from pathlib import Path

_PREFIX = "p-"


class ProcessFolder:
    """While the process lives, it holds a lock that protects its folder."""

    def __init__(self, base: Path) -> None:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(dir=base, prefix=_PREFIX))
        self._lock = os.open(self.path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for other in base.glob(f"{_PREFIX}*"):
            if other != self.path:
                _sweep(other)

    def make(self, prefix: str) -> Path:
        """Make a new folder in it."""
        return Path(tempfile.mkdtemp(dir=self.path, prefix=prefix))

    def close(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


class LateProcessFolder:
    """A folder of this process that is made when it is first needed."""

    def __init__(self, base: Path) -> None:
        self._base = base

    @cached_property
    def _folder(self) -> ProcessFolder:
        return ProcessFolder(self._base)

    def make(self, prefix: str) -> Path:
        return self._folder.make(prefix)

    def close(self) -> None:
        if made := vars(self).pop("_folder", None):
            made.close()


def _sweep(folder: Path) -> None:
    """Remove the folder of a process that has ended."""
    # A folder that is just being made has no lock file yet, and is left alone.
    with suppress(OSError):
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
