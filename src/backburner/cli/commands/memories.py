"""`backburner memories`: what is remembered across conversations."""

from typing import Any
from urllib.parse import quote

import click

from backburner.cli.client import Server
from backburner.cli.output import brief, say_json, say_table, when
from backburner.cli.server_options import shows, talks


@click.group("memories")
def command() -> None:
    """List, search, write and delete what is remembered for you."""


@command.command("list")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True)
@shows
@talks
def list_all(server: Server, *, limit: int, in_json: bool) -> None:
    """List what is remembered, by key."""
    _show(list(server.items("/api/memories", limit=limit)), in_json=in_json)


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True)
@shows
@talks
def search(server: Server, *, words: tuple[str, ...], limit: int, in_json: bool) -> None:
    """Find what has any of the words, best first; the last may be a beginning."""
    found = server.get("/api/memories", q=" ".join(words), limit=limit)["items"]
    _show(found, in_json=in_json)


@command.command("set")
@click.argument("key")
@click.argument("text")
@talks
def write(server: Server, *, key: str, text: str) -> None:
    """Remember a text under a key, in place of what was there."""
    server.put(_path(key), {"text": text})


@command.command("forget")
@click.argument("key")
@talks
def forget(server: Server, *, key: str) -> None:
    """Forget what is remembered under a key."""
    server.delete(_path(key))


def _path(key: str) -> str:
    return f"/api/memories/{quote(key, safe='')}"


def _show(found: list[dict[str, Any]], *, in_json: bool) -> None:
    if in_json:
        say_json(found)
        return
    rows = [
        (
            one["key"],
            when(one["updated_at"]),
            "others' words" if one["outside"] else "",
            brief(one["text"]),
        )
        for one in found
    ]
    say_table([("KEY", "CHANGED", "MAY HOLD", "TEXT"), *rows], empty="There is nothing.")
