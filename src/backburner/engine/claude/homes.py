"""Home folders of Claude Code programs: one each, removed when it ends, or swept after a crash."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from backburner.process_folder import ProcessFolder


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
    """The home folders of one process."""

    def __init__(self, base: Path) -> None:
        self._folder = ProcessFolder(base)

    def make(self) -> ProgramFolder:
        folder = ProgramFolder(self._folder.make("home-"))
        for path in (folder.home, folder.home / ".claude", folder.home / "tmp"):
            path.mkdir(mode=0o700)
        return folder

    def remove(self, folder: ProgramFolder) -> None:
        shutil.rmtree(folder.path, ignore_errors=True)

    def close(self) -> None:
        self._folder.close()
