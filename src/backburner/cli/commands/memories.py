"""`backburner memories`: facts that agents remember across conversations."""

from typing import Any
from urllib.parse import quote

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import (
    local_time,
    print_items,
    print_line,
    print_result,
    printable,
    truncate,
)
from backburner.cli.server_options import json_option, limit_option, with_server
from backburner.core.errors import NotFound


@click.group("memories", cls=ListGroup)
def memories() -> None:
    """Manage memories. Without a command, list them.

    A memory is a short text that agents remember across conversations.
    """


@memories.command(LIST)
@limit_option(50)
@json_option
@with_server
def list_memories(server: Server, *, limit: int, as_json: bool) -> None:
    """List memories by key."""
    _print_memories(list(server.items("/api/memories", limit=limit)), as_json=as_json)


@memories.command("search")
@click.argument("words", nargs=-1, required=True)
@limit_option(20, maximum=200)
@json_option
@with_server
def search(server: Server, *, words: tuple[str, ...], limit: int, as_json: bool) -> None:
    """Find memories that contain any of WORDS, best match first.

    The last word may be incomplete.
    """
    items = server.get("/api/memories", q=" ".join(words), limit=limit)["items"]
    _print_memories(items, as_json=as_json)


@memories.command("show")
@click.argument("key")
@json_option
@with_server
def show(server: Server, *, key: str, as_json: bool) -> None:
    """Print the whole text of a memory."""
    memory = _load(server, key)
    print_result(memory, memory["text"], as_json=as_json)


@memories.command("set")
@click.argument("key")
@click.argument("text")
@json_option
@with_server
def set_memory(server: Server, *, key: str, text: str, as_json: bool) -> None:
    """Create or replace a memory."""
    memory = server.put(_path(key), {"text": text})
    print_result(memory, f"Remembered: {key}.", as_json=as_json)


@memories.command("forget")
@click.argument("key")
@yes_option
@with_server
def forget(server: Server, *, key: str, is_sure: bool) -> None:
    """Delete a memory."""
    text = truncate(_load(server, key)["text"])
    confirm(f"Forget {key!r}, which says: {text!r}?", is_sure=is_sure)
    server.delete(_path(key))
    print_line(printable(f"Forgotten: {key}."))


def _load(server: Server, key: str) -> Any:
    try:
        return server.get(_path(key))
    except NotFound:
        hint = "See `backburner memories`."
        raise NotFound(f"There is no memory {key!r}.", hint=hint) from None


def _path(key: str) -> str:
    return f"/api/memories/{quote(key, safe='')}"


def _print_memories(items: list[dict[str, Any]], *, as_json: bool) -> None:
    rows = [
        {
            "KEY": memory["key"],
            "CHANGED": local_time(memory["updated_at"]),
            "CONTAINS": "outside text" if memory["outside"] else "",
            "TEXT": truncate(memory["text"]),
        }
        for memory in items
    ]
    print_items(items, rows, empty="No memories.", as_json=as_json)
