"""Home folders of Claude Code programs: one each, removed when it ends, or swept after a crash."""

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ProgramFolder:
    """The folder of one program, which can write in its home only: not what controls it."""

    path: Path

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def launcher(self) -> Path:
        return self.path / "launch"

    @property
    def wrapper(self) -> Path:
        return self.path / "wrapper"

    @property
    def pid(self) -> Path:
        return self.path / "pid"

    @property
    def limit_report(self) -> Path:
        return self.path / "limit"

    def read_limit(self) -> str:
        """Return what the program was ended for using too much of, if it was."""
        try:
            return self.limit_report.read_text(encoding="ascii")
        except FileNotFoundError:
            return ""


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

    def make(self) -> ProgramFolder:
        folder = ProgramFolder(Path(tempfile.mkdtemp(dir=self.folder, prefix="home-")))
        for path in (folder.home, folder.home / ".claude", folder.home / "tmp"):
            path.mkdir(mode=0o700)
        return folder

    def remove(self, folder: ProgramFolder) -> None:
        shutil.rmtree(folder.path, ignore_errors=True)

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
