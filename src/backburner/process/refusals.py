"""Errors about a program that did not start. They never name its arguments or variables."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from backburner.core.errors import ProcessFailed
from backburner.process.command import Command
from backburner.process.confinement import confinement_missing
from backburner.process.landlock import (
    FOLDER_REPLACED,
    NAMESPACES_USED_UP,
    NO_NAMESPACE,
    NOT_CONFINED,
)


def not_run(command: Command, number: int) -> ProcessFailed:
    """Explain the errno of a failed exec."""
    if number == NOT_CONFINED:
        return not_confined(command, confinement_missing() or "The kernel refused.")
    if number == NO_NAMESPACE:
        return ProcessFailed(
            f"{command.program} was not run: the kernel gave it no namespace of its own.",
            hint="If namespaces were switched off on this machine, restart the server.",
            permanent=True,
        )
    if number == NAMESPACES_USED_UP:
        return ProcessFailed(
            f"{command.program} was not run: no namespaces are left on this machine to confine it.",
            hint="Try again when other programs have ended.",
        )
    if number == FOLDER_REPLACED:
        return ProcessFailed(
            f"{command.program} was not run: the folder {command.cwd} is gone, or was replaced by a"
            " link.",
            hint="Tell the user.",
        )
    if number in (errno.ENOENT, errno.ENOTDIR):
        return ProcessFailed(
            f"Program not found: {command.program}.",
            hint="Install it, and add it to the PATH of the command or give its full path.",
            permanent=True,
        )
    if number in (errno.EACCES, errno.EPERM, errno.ENOEXEC):
        return ProcessFailed(
            f"{command.program} cannot be executed.",
            hint="Make it executable; a script has to begin with #!."
            + (" Or it is outside the folders it is confined to." * bool(command.confinement)),
            permanent=True,
        )
    return not_started(command, number)


def not_confined(command: Command, why: str) -> ProcessFailed:
    return ProcessFailed(
        f"{command.program} was not run: it cannot be confined on this system. {why}",
        hint="The operator can allow unconfined commands in the settings.",
        permanent=True,
    )


def not_started(command: Command, number: int) -> ProcessFailed:
    """Explain an errno from before the exec."""
    if number == errno.E2BIG:
        return ProcessFailed(
            f"The arguments and variables for {command.program} are too long for this system.",
            hint="Pass long data in a file or through stdin.",
            permanent=True,
        )
    return ProcessFailed(f"{command.program} could not be started: {os.strerror(number)}.")


@contextmanager
def explain_errors(command: Command) -> Iterator[None]:
    """Turn each `OSError` into a `ProcessFailed`."""
    try:
        yield
    except OSError as error:
        number = error.errno or 0
        if error.filename != command.cwd:
            raise not_started(command, number) from None
        raise ProcessFailed(
            f"{command.program} cannot run in the folder {command.cwd}: {os.strerror(number)}.",
            permanent=True,
        ) from None
