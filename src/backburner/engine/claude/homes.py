"""Home folders of Claude Code programs: one each, removed when it ends, or swept after a crash."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


class ProgramHomes:
    """The home folders of one process. While it lives, it holds a lock that protects them."""

    def __init__(self, base: Path) -> None:
        base.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(dir=base, prefix="p-"))
        self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for other in base.glob("p-*"):
            if other != self.folder:
                _sweep(other)

    def make(self) -> Path:
        home = Path(tempfile.mkdtemp(dir=self.folder, prefix="home-"))
        for name in (".claude", "tmp"):
            (home / name).mkdir(mode=0o700)
        return home

    def remove(self, home: Path) -> None:
        shutil.rmtree(home, ignore_errors=True)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)


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
