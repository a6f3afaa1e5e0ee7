"""A program that stands in for another, for libraries that start one by its path themselves."""

import shlex
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from backburner.process.command import launching
from backburner.process.confinement import Confinement, Limits
from backburner.process.tree import GRACE, REAPER


def write_wrapper(
    path: Path,
    *,
    program: Path,
    keep: Iterable[str],
    grace: timedelta = GRACE,
    confined: Confinement | None = None,
    limits: Limits | None = None,
) -> None:
    """Write a program that runs another one as a tree, with the same arguments and streams.

    Of the environment it is started with, that one gets what is to be kept and nothing else.
    SIGTERM ends the tree, and so does the end of whoever started it, even by SIGKILL.
    """
    options = [f"env={','.join(keep)}", f"grace={grace.total_seconds()}", "rinse=1"]
    options += launching(confined, limits)
    before, after = shlex.join([*REAPER, *options]), shlex.join(["--", str(program)])
    new = path.with_name(f"{path.name}.new")
    new.write_text(f'#!/bin/sh\nexec {before} caller="$PPID" {after} "$@"\n', encoding="utf-8")
    # There is nothing secret in it, and the program may have to run as another user.
    new.chmod(0o755)
    new.replace(path)
