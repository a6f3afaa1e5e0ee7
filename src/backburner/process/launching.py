"""Starts other people's programs clean, where a library insists on starting them itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from backburner.process.wrapper import write_wrapper

#: Between being asked to end and being made to.
GRACE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class CleanLauncher:
    def write(
        self, path: Path, *, program: Path, keep: Iterable[str], writable: Sequence[Path]
    ) -> None:
        del writable
        write_wrapper(path, program=program, keep=keep, grace=GRACE)
