"""A command to start, and how it exited."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from backburner.core.errors import BadRequest
from backburner.process.confinement import Confinement, ProcessLimits

COMMAND_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program and everything it inherits from us.

    Arguments and variables may be secret, so `repr` leaves them out.
    """

    argv: tuple[str, ...] = field(repr=False)
    #: A program name without a slash is searched for along the PATH in here.
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    #: None: the program may use every file that we may.
    confinement: Confinement | None = None
    limits: ProcessLimits | None = None

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise BadRequest("There is no program to start.")
        if any("\0" in text for text in (*self.argv, *self.env.values(), str(self.cwd))):
            raise BadRequest(
                "An argument, a variable or the folder for a program contains a zero byte."
            )
        if any(not name or set(name) & set("=,\0") for name in self.env):
            raise BadRequest("A variable for a program has an invalid name.")

    @property
    def program(self) -> str:
        return self.argv[0]

    def options(self) -> list[str]:
        """Write it as command line options of the reaper, without argv and env."""
        options = reaper_options(self.confinement, self.limits)
        direct = () if self.confinement is None else self.confinement.direct
        if any(self.cwd.is_relative_to(folder) for folder in direct):
            options.append(f"cwd={self.cwd}")
        return options


def reaper_options(confinement: Confinement | None, limits: ProcessLimits | None) -> list[str]:
    """Write a confinement and limits as command line options of the reaper."""
    options = []
    if confinement is not None:
        options += [f"read={path}" for path in confinement.readable]
        options += [f"write={path}" for path in confinement.writable]
        options += [f"execute={path}" for path in confinement.executable]
        options += [f"direct={path}" for path in confinement.direct]
        options += [] if confinement.starts_programs else ["alone=1"]
        options += ["network=1"] if confinement.network else []
        options += ["namespace=1"] if confinement.process_namespace else []
    if limits is not None:
        options += [f"file_limit={limits.max_file_bytes}"]
        options += [f"process_limit={limits.max_new_processes}"]
        options += [f"max_processes={limits.max_processes}"]
        options += [f"max_memory={limits.max_memory_bytes}"]
        options += [f"group{number}={path}" for number, path in enumerate(limits.groups, 1)]
        options += [f"disk={limits.disk}"] if limits.disk else []
        options += [f"temporary={limits.temporary}"] if limits.temporary else []
        options += [f"min_free={limits.min_free_bytes}", f"min_free_files={limits.min_free_files}"]
        options += [f"poll={limits.poll.total_seconds()}"]
    return options


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command exited: with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, returncode: int) -> Self:
        return cls(code=returncode) if returncode >= 0 else cls(signal=-returncode)

    @property
    def ok(self) -> bool:
        return self.code == 0
