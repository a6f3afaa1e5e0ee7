"""What people are told about a program that did not start; never its arguments or variables."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from backburner.core.errors import ProcessFailed
from backburner.process.command import Command
from backburner.process.confinement import confinement_missing
from backburner.process.landlock import NOT_CONFINED


def not_run(command: Command, number: int) -> ProcessFailed:
    """Say why the system did not run the program."""
    if number == NOT_CONFINED:
        return not_confined(command, confinement_missing() or "The kernel refused to.")
    if number in (errno.ENOENT, errno.ENOTDIR):
        return ProcessFailed(
            f"There is no program {command.program}.",
            hint="It has to be installed, and on the PATH it is given or named with its folder.",
            permanent=True,
        )
    if number in (errno.EACCES, errno.EPERM, errno.ENOEXEC):
        return ProcessFailed(
            f"{command.program} is not a program that we may run.",
            hint="It has to be executable, and begin with #! if it is a script."
            + (" It may also lie outside of the folders it is held to." * bool(command.confined)),
            permanent=True,
        )
    return not_tried(command, number)


def not_confined(command: Command, why: str) -> ProcessFailed:
    return ProcessFailed(
        f"{command.program} was not run, because it cannot be confined here. {why}",
        hint="Whoever runs this server can allow commands that are not confined.",
        permanent=True,
    )


def not_tried(command: Command, number: int) -> ProcessFailed:
    """Say what was in the way before it came to the program."""
    if number == errno.E2BIG:
        return ProcessFailed(
            f"The arguments and variables for {command.program} are too long for this system.",
            hint="Hand over what is long in a file or through stdin.",
            permanent=True,
        )
    return ProcessFailed(f"{command.program} could not be started: {os.strerror(number)}.")


@contextmanager
def explained(command: Command) -> Iterator[None]:
    """Put errors of the system into words for people."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        if error.filename != command.cwd:
            raise not_tried(command, number) from None
        raise ProcessFailed(
            f"{command.program} cannot run in the folder {command.cwd}: {os.strerror(number)}.",
            permanent=True,
        ) from None
