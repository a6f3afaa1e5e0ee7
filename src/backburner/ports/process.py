"""Programs that libraries start by a path of their own."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol


class Launcher(Protocol):
    def write(
        self, path: Path, *, program: Path, keep: Iterable[str], writable: Sequence[Path]
    ) -> None:
        """Write a program that starts another one clean, and ends it with all that it started.

        It gets what is to be kept of its environment, and may write in some folders.
        """
