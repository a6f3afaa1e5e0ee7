"""`backburner questions`: what waits for an answer."""

import click

from backburner.cli.client import Server
from backburner.cli.output import brief, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks


@click.command("questions")
@shows
@talks
def command(server: Server, *, in_json: bool) -> None:
    """List what waits for your answer; `backburner answer` gives it."""
    found = list(server.items("/api/questions"))
    if in_json:
        say_json(found)
        return
    rows = [
        (
            short(one["id"]),
            one["purpose"],
            when(one["asked_at"]),
            brief(one["prompt"]),
            " / ".join(one["options"]),
        )
        for one in found
    ]
    say_table([("ID", "ABOUT", "ASKED", "QUESTION", "ANSWERS"), *rows], empty="Nothing waits.")
