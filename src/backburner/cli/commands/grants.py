"""`backburner grants`: calls that agents may make without asking."""

from collections.abc import Mapping
from itertools import chain

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.list_group import LIST, ListGroup
from backburner.cli.output import local_time, print_items, print_line, short_id, truncate
from backburner.cli.server_options import json_option, with_server


@click.group("grants", cls=ListGroup)
def grants() -> None:
    """Manage the calls that agents may make without asking. Without a command, list them.

    GRANT is an id, or the start of it.
    """


@grants.command(LIST)
@click.option(
    "--in",
    "conversation",
    metavar="CONVERSATION",
    help="Only of this conversation: its title, its id, or the start of it.",
)
@json_option
@with_server
def list_grants(server: Server, *, conversation: str | None, as_json: bool) -> None:
    """List grants, newest first."""
    path = "/api/grants"
    if conversation is not None:
        conversation_id = id_prefix.find_conversation(server, conversation)
        path = f"/api/conversations/{conversation_id}/grants"
    items = list(server.items(path))
    titles = _load_titles(server) if items and not as_json else {}
    rows = [
        {
            "ID": short_id(grant["id"]),
            "CONVERSATION": truncate(titles.get(grant["conversation_id"]))
            or short_id(grant["conversation_id"]),
            "GIVEN": local_time(grant["given_at"]),
            "TOOL": f"{grant['server']}/{grant['tool']}",
            "ARGUMENTS": " ".join(grant["words"]),
            "USES": "always" if grant["lasting"] else "once",
        }
        for grant in items
    ]
    print_items(
        items, rows, empty="No grants: each call that needs approval asks.", as_json=as_json
    )


def _load_titles(server: Server) -> Mapping[str, str]:
    path = "/api/conversations"
    found = chain(server.items(path, all=True), server.items(path, all=True, archived=True))
    return {one["id"]: one["title"] for one in found}


@grants.command("revoke")
@click.argument("grant")
@with_server
def revoke(server: Server, *, grant: str) -> None:
    """Revoke a grant. The agent asks again before the next such call."""
    server.delete(f"/api/grants/{id_prefix.find_grant(server, grant)}")
    print_line("Revoked. The agent asks again.")
