"""`backburner files`: files of messages, and what tools returned besides text."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.id_prefix import find_file
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.live.attachment_text import DIGEST_CHARS_SHOWN
from backburner.cli.output import local_time, print_items, print_line, short_id
from backburner.cli.save_file import save
from backburner.cli.server_options import json_option, limit_option, with_server
from backburner.core.content.file import format_size

PATH = "/api/files"


@click.group("files", cls=ListGroup)
def files() -> None:
    """Manage the files of messages and of tools. Without a command, list them.

    FILE is the digest of a file, or the start of it.
    """


@files.command(LIST)
@limit_option(50)
@json_option
@with_server
def list_files(server: Server, *, limit: int, as_json: bool) -> None:
    """List files, newest first."""
    items = list(server.items(PATH, limit=limit))
    rows = [
        {
            **describe_file(file),
            "CREATED": local_time(file["created_at"]),
            "CONVERSATION": short_id(file["conversation_id"]),
        }
        for file in items
    ]
    print_items(items, rows, empty="No files.", as_json=as_json)


def describe_file(file: Any) -> dict[str, str]:
    return {
        "FILE": file["digest"][:DIGEST_CHARS_SHOWN],
        "SIZE": format_size(file["size"]),
        "TYPE": file["media_type"],
        "NAME": file["name"],
    }


@files.command("get")
@click.argument("file")
@click.argument("to", required=False, metavar="[TO]")
@with_server
def get(server: Server, *, file: str, to: str | None) -> None:
    """Save a file as TO.

    Without TO, it is written to standard output, unless that is a terminal.
    """
    if to is None and sys.stdout.isatty():
        # Its bytes could be commands for the terminal; and its name is not ours to choose.
        raise click.UsageError("Name the file to save it as.")
    chunks = server.download(f"{PATH}/{find_file(server, file)}")
    if to is None:
        for chunk in chunks:
            os.write(1, chunk)
        return
    click.echo(f"Saved: {save(chunks, Path(to))}")


@files.command("delete")
@click.argument("file")
@yes_option
@with_server
def delete(server: Server, *, file: str, is_sure: bool) -> None:
    """Delete a file, whatever names it."""
    digest = find_file(server, file)
    confirm(f"Delete the file {digest[:DIGEST_CHARS_SHOWN]}?", is_sure=is_sure)
    server.delete(f"{PATH}/{digest}")
    print_line(f"Deleted: {digest[:DIGEST_CHARS_SHOWN]}.")
