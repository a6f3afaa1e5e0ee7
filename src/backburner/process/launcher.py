"""Starts other people's programs clean and confined, where a library starts them by a path."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from backburner.process.confinement import confine_to
from backburner.process.wrapper import write_wrapper

#: Between being asked to end and being made to.
GRACE = timedelta(seconds=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanLauncher:
    confined: bool = True
    #: Further folders that programs may read.
    readable: Sequence[Path] = ()

    def write(
        self, path: Path, *, program: Path, keep: Iterable[str], writable: Sequence[Path]
    ) -> None:
        readable = (program, *self.readable)
        confined = confine_to(*writable, readable=readable) if self.confined else None
        write_wrapper(path, program=program, keep=keep, grace=GRACE, confined=confined)
