"""`backburner spend`."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands.account.me import format_amount
from backburner.cli.output import (
    local_time,
    print_fields,
    print_json,
    print_table,
    short_id,
    truncate,
)
from backburner.cli.server_options import json_option, with_server


@click.command("spend")
@click.argument("conversation", required=False)
@click.option(
    "--limit",
    metavar="AMOUNT",
    help="Limit what CONVERSATION may spend with its jobs: 5 USD, 20000 tokens, none; default"
    " restores the default.",
)
@json_option
@with_server
def spend(server: Server, *, conversation: str | None, limit: str | None, as_json: bool) -> None:
    """Show what you have spent, by day and conversation, and what is left of your allowances.

    CONVERSATION is a title, an id, or the start of an id: its spend is shown as well, with that of
    its jobs.
    """
    if limit is not None and conversation is None:
        raise click.UsageError("Pass CONVERSATION with --limit.")
    conversation_id = conversation and id_prefix.find_conversation(server, conversation)
    if limit is None:
        spent = server.get("/api/spend", conversation_id=conversation_id)
    else:
        body = {"limit": None if limit.strip() == "default" else limit}
        spent = server.put(f"/api/conversations/{conversation_id}/allowance", body)
    if as_json:
        print_json(spent)
        return
    of_conversation = spent["conversation"]
    print_fields(
        {
            "today": format_amount(spent["today"]),
            "in all": format_amount(spent["total"]),
            "conversation": format_amount(of_conversation) if of_conversation else "",
        }
    )
    allowances = [
        {
            "ALLOWANCE": f"per {allowance['scope']}",
            "LIMIT": format_amount(allowance),
            "SPENT": format_amount(allowance["spent"]) if allowance["spent"] else "",
            "AT MOST": format_amount(allowance["at_most"]) if allowance["at_most"] else "",
            "": "used up" if allowance["is_used_up"] else "",
        }
        for allowance in spent["allowances"]
    ]
    days = [
        {"DAY": local_time(day["begins_at"])[:10], "SPENT": format_amount(day["spent"])}
        for day in spent["days"]
    ]
    top = [
        {
            "ID": short_id(one["conversation_id"]),
            "CONVERSATION": truncate(one["title"]),
            "SPENT": format_amount(one["spent"]),
        }
        for one in spent["top"]
    ]
    for rows in (allowances, days, top):
        if rows:
            click.echo()
            print_table(rows, empty="")
