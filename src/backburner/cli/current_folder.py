"""The folder of a new conversation: by option, or the current one, which is added if need be."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import Declined, confirm
from backburner.core.errors import NotAllowed

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def folder_option(command: Decorated) -> Decorated:
    return click.option(
        "--folder",
        metavar="PATH",
        callback=_read_folder,
        help="Folder to work in: its path, or its name. See the command folders.",
    )(command)


def choose_current_folder(server: Server) -> str:
    """Find the folder that the current one is or lies in, or offer to add the current one."""
    current = Path.cwd().resolve()
    for folder in server.items("/api/folders"):
        if current.is_relative_to(folder["path"]):
            return str(folder["path"])
    question = f"Let agents read and change {current}, without the network and without asking?"
    try:
        hint = f"Add the folder first: `backburner folders add {shlex.quote(str(current))}`."
        confirm(question, is_sure=False, hint=hint)
    except Declined:
        text, hint = "Nothing was sent.", "Leave out --here to work without a folder."
        raise NotAllowed(text, hint=hint) from None
    added = server.post("/api/folders", {"path": str(current), "read_only": False})
    return str(added["path"])


def _read_folder(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    """Make a path absolute; a bare name is looked up by the server."""
    if value is None or ("/" not in value and not Path(value).is_dir()):
        return value
    return str(Path(value).expanduser().resolve())
