"""`backburner overview` and `backburner failures`, for operators."""

from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.output import local_time, print_fields, print_items, print_json, print_table
from backburner.cli.server_options import json_option, with_server


@click.command("overview")
@json_option
@with_server
def overview(server: Server, *, as_json: bool) -> None:
    """Show workers, queue, models and database (operators only)."""
    found = server.get("/api/operate/overview")
    if as_json:
        print_json(found)
        return
    queue, deliveries, database = found["queue"], found["deliveries"], found["database"]
    print_fields(
        {
            "version": found["version"],
            "started": local_time(found["started_at"]),
            "background": "paused for everybody" if found["paused"] else "on",
            "database": f"{database['kind']}, {database['size_bytes'] / 10**6:,.1f} MB",
            "running": str(queue["running"]),
            "due": _describe_due(queue),
            "handed back": str(queue["queued"]),
            "users waiting": str(queue["users_waiting"]),
            "deliveries": f"{deliveries['waiting']} waiting, {deliveries['failed']} failed today",
        }
    )
    workers = [
        {
            "WORKER": worker["name"],
            "VERSION": worker["version"],
            "STARTED": local_time(worker["started_at"]),
            "LAST SEEN": local_time(worker["seen_at"]),
            "SEATS": f"{worker['seats_used']} of {worker['seats']}",
            "": _state(worker),
        }
        for worker in found["workers"]
    ]
    click.echo()
    print_table(workers, empty="No worker is running.")
    if found["outages"]:
        rows = [
            {"MODEL": one["profile"], "SINCE": local_time(one["since"]), "TROUBLE": one["message"]}
            for one in found["outages"]
        ]
        click.echo()
        print_table(rows, empty="")


@click.command("failures")
@json_option
@with_server
def failures(server: Server, *, as_json: bool) -> None:
    """List what failed last, of all users (operators only).

    Nothing of their work is shown.
    """
    items = server.get("/api/operate/failures")["items"]
    rows = [
        {
            "WHEN": local_time(item["at"]),
            "KIND": item["kind"],
            "USER": item["login"] or item["name"] or item["user"] or "",
            "ID": item["id"],
            "MESSAGE": item["message"],
        }
        for item in items
    ]
    print_items(items, rows, empty="Nothing has failed.", as_json=as_json)


def _describe_due(queue: Any) -> str:
    if not queue["due"]:
        return "0"
    return f"{queue['due']}, the oldest for {queue['oldest_wait_seconds']} s"


def _state(worker: Any) -> str:
    if worker["missing"]:
        return "not seen lately"
    return "stopping" if worker["draining"] else ""
