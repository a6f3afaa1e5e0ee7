"""`backburner notices`."""

import click

from backburner.cli.client import Server
from backburner.cli.output import local_time, print_json, print_table, short_id, truncate
from backburner.cli.server_options import json_option, limit_option, with_server


@click.command("notices")
@click.option("--new", "unseen", is_flag=True, help="Only notices that are not marked as seen.")
@click.option("--seen", is_flag=True, help="Mark all listed notices as seen.")
@limit_option(20)
@json_option
@with_server
def notices(server: Server, *, unseen: bool, seen: bool, limit: int, as_json: bool) -> None:
    """List notices, newest first."""
    items = list(server.items("/api/notices", limit=limit, unseen=unseen or None))
    if as_json:
        print_json(items)
    else:
        rows = [
            (
                "" if notice["seen_at"] else "new",
                local_time(notice["created_at"]),
                notice["kind"],
                short_id(notice["conversation_id"]),
                truncate(notice["text"]),
            )
            for notice in items
        ]
        heading = ("", "TIME", "KIND", "CONVERSATION", "TEXT")
        print_table([heading, *rows], empty="No notices.")
    if seen and items:
        server.post("/api/notices/seen", {"up_to": items[0]["id"]})
