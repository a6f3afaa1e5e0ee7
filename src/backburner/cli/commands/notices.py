"""`backburner notices`."""

from collections.abc import Mapping
from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.output import local_time, print_items, short_id, truncate
from backburner.cli.server_options import json_option, limit_option, with_server


@click.command("notices")
@click.option("--new", "unseen", is_flag=True, help="Only notices that are not marked as seen.")
@click.option("--seen", "mark_seen", is_flag=True, help="Mark all listed notices as seen.")
@limit_option(20)
@json_option
@with_server
def notices(server: Server, *, unseen: bool, mark_seen: bool, limit: int, as_json: bool) -> None:
    """List notices, newest first."""
    items = list(server.items("/api/notices", limit=limit, unseen=unseen or None))
    is_sent = any(notice["deliveries"] for notice in items)
    rows = [
        {
            "": "" if notice["seen_at"] else "new",
            "TIME": local_time(notice["created_at"]),
            "KIND": notice["kind"],
            "ID": short_id(notice["conversation_id"]),
            "CONVERSATION": truncate(notice["title"]),
            "TEXT": truncate(notice["text"]),
            **({"DELIVERY": _describe_deliveries(notice)} if is_sent else {}),
        }
        for notice in items
    ]
    print_items(items, rows, empty="No notices.", as_json=as_json)
    if mark_seen and items:
        server.post("/api/notices/seen", {"up_to": items[0]["id"]})


def _describe_deliveries(notice: Mapping[str, Any]) -> str:
    return "; ".join(describe_delivery(delivery) for delivery in notice["deliveries"])


def describe_delivery(delivery: Mapping[str, Any]) -> str:
    """Say what became of a notice on its way to one place."""
    channel, error = delivery["channel"], delivery["error"]
    match delivery["state"]:
        case "sent":
            return f"sent through {channel}"
        case "failed":
            return f"not delivered through {channel}: {error}"
        case _ if error and delivery["next_try_at"]:
            return f"waits for {channel}: {error} Next try {local_time(delivery['next_try_at'])}"
        case _:
            return f"waits for {channel}"
