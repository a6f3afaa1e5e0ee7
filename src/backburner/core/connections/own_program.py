"""A program of one user, imported on the command line of this machine: what it may be."""

import json
from collections.abc import Iterable
from dataclasses import asdict, replace

from backburner.core.connections.imports.packages import read_launch
from backburner.core.connections.imports.shown_program import (
    check_command,
    check_environment,
    check_values,
)
from backburner.core.connections.program import StdioProgram
from backburner.core.errors import BadRequest
from backburner.core.work.folders import ForbiddenPlaces, lies_in, overlap

#: In place of the name of a program of the operator's; none can have it.
IMPORTED = "(imported)"
MAX_PLACES = 20
#: Each program in a cage reads these, and unlike other folders of the system agents can be given
#: folders in them.
READ_BY_ALL = ("/nix/store", "/opt")
_SYSTEM_PATH = ("/usr/local/bin", "/usr/bin", "/bin")


def check_program(program: StdioProgram) -> None:
    """Refuse a program that is not exactly one, or that its user could not be shown."""
    check_command(program.command)
    if not program.command[0].startswith("/"):
        raise BadRequest("The path of the program begins with /.")
    launch = read_launch(program.command)
    if launch is not None and launch.unpinned:
        names = ", ".join(package.name for package in launch.unpinned)
        raise BadRequest(f"{names} has no exact version.", hint="Give one.")
    check_environment(program.environment)
    check_values(program.environment)


def check_places(program: StdioProgram, forbidden: ForbiddenPlaces) -> None:
    """Refuse folders that a program must not see; their paths have no links."""
    places = [*program.readable, *program.writable]
    if len(places) > MAX_PLACES:
        raise BadRequest(f"A program may use {MAX_PLACES} folders at most.")
    for place in places:
        if any(lies_in(home, place) for home in ("/", *forbidden.homes)):
            raise BadRequest(f"{place} is or contains a home folder.", hint="Name a folder in it.")
        for private, meaning in forbidden.private.items():
            if overlap(place, private):
                raise BadRequest(f"{place} would let it see {meaning}.", hint="Name another.")


def with_path(program: StdioProgram) -> StdioProgram:
    """Add the folder of a program to its path, for the interpreter of its script."""
    beside = program.command[0].rpartition("/")[0] or "/"
    folders: Iterable[str] = dict.fromkeys((beside, *_SYSTEM_PATH))
    return replace(program, environment={**program.environment, "PATH": ":".join(folders)})


def write_program(program: StdioProgram, machine: str) -> bytes:
    """Write a program, and the id of the machine that it was imported on."""
    return json.dumps({**asdict(program), "machine": machine}).encode()


def read_program(stored: bytes) -> tuple[StdioProgram, str]:
    found = json.loads(stored)
    program = StdioProgram(
        command=tuple(found["command"]),
        environment=found["environment"],
        network=found["network"],
        readable=tuple(found["readable"]),
        writable=tuple(found["writable"]),
    )
    return program, found["machine"]
