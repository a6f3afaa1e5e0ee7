"""What is to be started, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from backburner.core.errors import BadRequest
from backburner.process.confinement import Confinement, Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A program with all that it gets from us: what is not in here, it does not inherit.

    Arguments and variables may be secret, so they are not shown.
    """

    argv: tuple[str, ...] = field(repr=False)
    #: Without a slash in its name, the program is looked for along the PATH in here.
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    #: All that it may see of files; None: what we may.
    confined: Confinement | None = None
    limits: Limits | None = None

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise BadRequest("There is no program to start.")
        if any("\0" in text for text in (*self.argv, *self.env.values(), str(self.cwd))):
            raise BadRequest(
                "An argument, a variable or the folder for a program has a zero byte in it."
            )
        if any(not name or set(name) & set("=,\0") for name in self.env):
            raise BadRequest("A variable for a program has a name that cannot be passed on.")

    @property
    def program(self) -> str:
        return self.argv[0]


def launching(confined: Confinement | None, limits: Limits | None) -> list[str]:
    """Put what is to hold a program into the words of the reaper."""
    options = []
    if confined is not None:
        options += [f"read={path}" for path in confined.readable]
        options += [f"write={path}" for path in confined.writable]
        options += ["sockets=1"] if confined.unix_sockets else []
    if limits is not None:
        options += [f"largest={limits.largest_file}", f"processes={limits.processes}"]
    return options


@dataclass(frozen=True, slots=True)
class Exit:
    """How a command ended: with a code, or by a signal."""

    code: int | None = None
    signal: int | None = None

    @classmethod
    def of(cls, returned: int) -> Self:
        return cls(code=returned) if returned >= 0 else cls(signal=-returned)

    @property
    def ok(self) -> bool:
        return self.code == 0
