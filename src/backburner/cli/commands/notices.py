"""`backburner notices`: what the user was told."""

import click

from backburner.cli.client import Server
from backburner.cli.output import brief, say_json, say_table, short, when
from backburner.cli.server_options import shows, talks


@click.command("notices")
@click.option("--new", "unseen", is_flag=True, help="Only those you have not seen.")
@click.option("--seen", is_flag=True, help="Note that you have seen all that is listed.")
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True)
@shows
@talks
def command(server: Server, *, unseen: bool, seen: bool, limit: int, in_json: bool) -> None:
    """List what you were told, newest first."""
    found = list(server.items("/api/notices", limit=limit, unseen=unseen or None))
    if in_json:
        say_json(found)
    else:
        rows = [
            (
                "" if one["seen_at"] else "new",
                when(one["created_at"]),
                one["kind"],
                short(one["conversation_id"]),
                brief(one["text"]),
            )
            for one in found
        ]
        head = ("", "WHEN", "KIND", "CONVERSATION", "TEXT")
        say_table([head, *rows], empty="There is nothing.")
    if seen and found:
        server.post("/api/notices/seen", {"up_to": found[0]["id"]})
