"""`backburner folders`: the folders in which conversations may work."""

import difflib
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import print_items, print_line, print_result, printable
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import NotFound

PATH = "/api/folders"


@click.group("folders", cls=ListGroup)
def folders() -> None:
    """Manage the folders that agents may work in. Without a command, list them.

    Agents run commands and change files in a folder that you added, without the network and without
    asking. PATH is a folder of this machine.
    """


@folders.command(LIST)
@json_option
@with_server
def list_folders(server: Server, *, as_json: bool) -> None:
    """List folders."""
    items = list(server.items(PATH))
    rows = [
        {
            "FOLDER": folder["path"],
            "USE": "read" if folder["read_only"] else "read and write",
            "MACHINE": folder["machine"] or "all",
            "STATE": _describe_state(folder),
        }
        for folder in items
    ]
    print_items(items, rows, empty="No folders: agents have private workspaces.", as_json=as_json)


@folders.command("add")
@click.argument("path")
@click.option("--read-only", is_flag=True, help="Let agents read the folder, and not change it.")
@json_option
@with_server
def add(server: Server, *, path: str, read_only: bool, as_json: bool) -> None:
    """Add a folder, or change its use.

    Agents follow the instructions in its AGENTS.md and CLAUDE.md as they are now. You are told when
    these files change.
    """
    print_result(
        folder := add_folder(server, path, read_only=read_only),
        describe_added(folder),
        as_json=as_json,
    )


@folders.command("remove")
@click.argument("path")
@with_server
def remove(server: Server, *, path: str) -> None:
    """Remove a folder. Its files stay."""
    wanted = absolute(path)
    server.delete(f"{PATH}?{urlencode({'path': wanted})}")
    print_line(printable(f"Removed {wanted}: agents can no longer use it."))


@folders.command("accept")
@click.argument("path")
@yes_option
@json_option
@with_server
def accept(server: Server, *, path: str, is_sure: bool, as_json: bool) -> None:
    """Show how the instructions in a folder changed, and accept them."""
    wanted = absolute(path)
    folder = next((one for one in server.items(PATH) if one["path"] == wanted), None)
    if folder is None:
        raise NotFound(f"{path} was not added.", hint="See `backburner folders`.")
    if folder["changed"] is None:
        print_result(folder, "Agents follow these instructions already.", as_json=as_json)
        return
    if not as_json:
        for line in _compare(folder["instructions"], folder["changed"]):
            print_line(line)
    confirm("Follow these instructions from now on?", is_sure=is_sure)
    body = {"path": folder["path"], "digest": folder["changed_digest"]}
    accepted = server.post(f"{PATH}/accept", body)
    print_result(accepted, "Accepted.", as_json=as_json)


def add_folder(server: Server, path: str, *, read_only: bool) -> Any:
    return server.post(PATH, {"path": absolute(path), "read_only": read_only})


def describe_added(folder: Any) -> str:
    use = "read" if folder["read_only"] else "read and change"
    names = " and ".join(folder["instructions"])
    followed = f" They follow {names} there." if names else ""
    return f"Added {folder['path']}: agents may {use} it, without the network.{followed}"


def absolute(path: str) -> str:
    """Return a path as the server knows it: without links."""
    return str(Path(path).expanduser().resolve())


def _describe_state(folder: Any) -> str:
    if not folder["available"]:
        return "not available here"
    return "instructions changed" if folder["changed"] is not None else "ok"


def _compare(old: Any, new: Any) -> list[str]:
    lines = list[str]()
    for name in sorted({*old, *new}):
        before, after = old.get(name, "").splitlines(), new.get(name, "").splitlines()
        lines += difflib.unified_diff(before, after, f"{name} (accepted)", name, lineterm="")
    return lines
