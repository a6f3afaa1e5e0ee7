"""`backburner sessions`: browsers that are signed in."""

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.id_prefix import match_prefix
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import local_time, print_items, print_line, short_id
from backburner.cli.server_options import json_option, with_server


@click.group("sessions", cls=ListGroup)
def sessions() -> None:
    """Manage your sessions in browsers. Without a command, list them."""


@sessions.command(LIST)
@json_option
@with_server
def list_sessions(server: Server, *, as_json: bool) -> None:
    """List the browsers that are signed in."""
    items = list(server.items("/api/sessions"))
    rows = [
        {
            "ID": short_id(item["id"]),
            "BROWSER": item["device"],
            "SIGNED IN": local_time(item["created_at"]),
            "LAST USED": local_time(item["used_at"]) or "never",
            "EXPIRES": local_time(item["expires_at"]),
        }
        for item in items
    ]
    print_items(items, rows, empty="No browser is signed in.", as_json=as_json)


@sessions.command("end")
@click.argument("session", required=False)
@click.option(
    "--everywhere",
    is_flag=True,
    help="End all your sessions, and revoke all your tokens, that of this command line included.",
)
@yes_option
@with_server
def end(server: Server, *, session: str | None, everywhere: bool, is_sure: bool) -> None:
    """Sign a browser out. SESSION is its id, or the start of it."""
    if everywhere == (session is not None):
        raise click.UsageError("Pass either SESSION or --everywhere.")
    if session is not None:
        session_id = match_prefix(session, server.items("/api/sessions"), "session", label="name")
        server.delete(f"/api/sessions/{session_id}")
        print_line("Signed out.")
        return
    confirm("End all your sessions and revoke all your tokens?", is_sure=is_sure)
    server.post_once("/api/sign-out-everywhere")
    print_line("Signed out everywhere. Restart `up` to use this command line again.")
