"""`backburner upcoming`: the calendar of what will run."""

from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.output import local_time, print_json, print_table, short_id, truncate
from backburner.cli.server_options import json_option, with_server

MAX_DAYS = 31
_STATES = {"scheduled": "", "needs_you": "needs you", "paused": "paused"}


@click.command("upcoming")
@click.option(
    "--days",
    type=click.IntRange(1, MAX_DAYS),
    default=7,
    show_default=True,
    help="How many days from now.",
)
@click.option("--paused", is_flag=True, help="Include work that is paused.")
@json_option
@with_server
def upcoming(server: Server, *, days: int, paused: bool, as_json: bool) -> None:
    """List what will run.

    Many times of a day are one line, with how many they are.
    """
    found = server.get("/api/upcoming", days=days, paused=paused or None)
    if as_json:
        print_json(found)
        return
    rows = [
        {
            "AT": local_time(entry["at"]),
            "TIMES": _count(entry),
            "ID": short_id(entry["conversation_id"]),
            "WORK": truncate(entry["title"]),
            "STATE": "due" if entry["is_due"] else _STATES[entry["state"]],
            "SCHEDULE": truncate(entry["schedule_in_words"]),
        }
        for entry in found["entries"]
    ]
    print_table(rows, empty="Nothing will run.")
    for work in found["untimed"]:
        click.echo(f"{truncate(work['title'])}: {work['schedule_in_words']}")
    if found["all_paused"]:
        click.echo("All background work is paused: nothing of this runs.")
    if found["is_cut"]:
        click.echo("There is more: ask for fewer days.")


def _count(entry: Any) -> str:
    if entry["count"] == 1:
        return ""
    more = "+" if entry["or_more"] else ""
    return f"{entry['count']}{more}, until {local_time(entry['until'])}"
