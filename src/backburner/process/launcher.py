"""Wrapper scripts: run another program clean, confined and as a tree, for libraries that start a
program by its path themselves.
"""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from backburner.process.command import reaper_options
from backburner.process.confinement import (
    REAPER_COMMAND,
    Confinement,
    ProcessLimits,
    confine_to,
    memory_limit,
)
from backburner.process.tree import DEFAULT_GRACE

#: Between SIGTERM and SIGKILL, for programs started through `CleanLauncher`.
PROGRAM_GRACE = timedelta(seconds=2)
#: Of such a program and all it starts; it has many threads of its own.
MAX_PROCESSES = 4096
#: They live long, so they are looked at less often than commands.
LIMIT_POLL = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanLauncher:
    confined: bool = True
    #: Further folders that programs may read.
    readable: Sequence[Path] = ()
    #: Where there has to be space left for others.
    disk: Path | None = None

    def write(
        self,
        path: Path,
        *,
        program: Path,
        keep: Iterable[str],
        writable: Sequence[Path],
        limit_report: Path,
        readable: Sequence[Path] = (),
        direct: Sequence[Path] = (),
    ) -> None:
        readable = (program, *self.readable, *readable)
        confinement = None
        if self.confined:
            confinement = confine_to(
                *writable, readable=readable, direct=direct, sees_processes=False
            )
        limits = ProcessLimits(
            max_new_processes=MAX_PROCESSES,
            max_processes=MAX_PROCESSES,
            max_memory_bytes=memory_limit(),
            disk=self.disk,
            # No control group: to join one would delay the first word of a chat.
            poll=LIMIT_POLL,
        )
        write_wrapper(
            path,
            program=program,
            keep=keep,
            grace=PROGRAM_GRACE,
            confinement=confinement,
            limits=limits,
            limit_report=limit_report,
        )


def write_wrapper(
    path: Path,
    *,
    program: Path,
    keep: Iterable[str],
    grace: timedelta = DEFAULT_GRACE,
    confinement: Confinement | None = None,
    limits: ProcessLimits | None = None,
    limit_report: Path | None = None,
) -> None:
    """Write a script that runs a program as a tree, with the same arguments and streams.

    Of its environment the script passes on the variables named in `keep`. SIGTERM ends the tree,
    and so does the end of the process that started it, even by SIGKILL. If the tree is ended
    because it exceeds a limit, that is named in a file.
    """
    options = [f"env={','.join(keep)}", f"grace={grace.total_seconds()}", "clean=1"]
    options += reaper_options(confinement, limits)
    options += [] if limit_report is None else [f"limit_report={limit_report}"]
    before, after = shlex.join([*REAPER_COMMAND, *options]), shlex.join(["--", str(program)])
    new = path.with_name(f"{path.name}.new")
    new.write_text(f'#!/bin/sh\nexec {before} caller="$PPID" {after} "$@"\n', encoding="utf-8")
    # It holds no secrets, and the program may have to run as another user.
    new.chmod(0o755)
    new.replace(path)
