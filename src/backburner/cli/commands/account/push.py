"""`backburner push`: browsers that take push messages."""

from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.id_prefix import match_prefix
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import (
    local_time,
    print_items,
    print_line,
    print_result,
    printable,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, with_server

PATH = "/api/push/subscriptions"


@click.group("push", cls=ListGroup)
def push() -> None:
    """Manage the browsers that take push messages. Without a command, list them.

    They show your notices while no page is open. Turn them on in the browser itself. BROWSER is an
    id, or the start of one.
    """


@push.command(LIST)
@json_option
@with_server
def list_browsers(server: Server, *, as_json: bool) -> None:
    """List the browsers that take push messages."""
    items = list(server.items(PATH))
    rows = [
        {
            "ID": short_id(item["id"]),
            "BROWSER": item["label"],
            "SINCE": local_time(item["created_at"]),
            "LAST MESSAGE": local_time(item["sent_at"]) or "never",
            "STATE": truncate(item["error"] or "ok"),
        }
        for item in items
    ]
    print_items(items, rows, empty="No browser takes push messages.", as_json=as_json)


@push.command("remove")
@click.argument("browser")
@yes_option
@with_server
def remove(server: Server, *, browser: str, is_sure: bool) -> None:
    """Send a browser no more messages. It stays signed in."""
    found = _find(server, browser)
    confirm("Send it no more messages?", is_sure=is_sure)
    server.delete(f"{PATH}/{found}")
    print_line("Removed: it gets no more push messages.")


@push.command("test")
@click.argument("browser")
@json_option
@with_server
def test(server: Server, *, browser: str, as_json: bool) -> None:
    """Send a message to a browser, and print what its push service says."""
    result = server.post_once(f"{PATH}/{_find(server, browser)}/test")
    print_result(result, printable(_describe(result)), as_json=as_json)


def _find(server: Server, browser: str) -> str:
    return match_prefix(browser, server.items(PATH), "browser", label="label")


def _describe(result: Any) -> str:
    if result["sent"]:
        return "Sent: the browser shows it as soon as it is reached."
    removed = " It was removed." if result["removed"] else ""
    return f"Not sent: {result['problem']}{removed} {result['hint']}".rstrip()
