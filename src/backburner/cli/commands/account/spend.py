"""`backburner spend`."""

import click

from backburner.cli import id_prefix
from backburner.cli.client import Server
from backburner.cli.commands.account.me import format_amount
from backburner.cli.output import local_time, print_fields, print_json, print_table
from backburner.cli.server_options import json_option, with_server


@click.command("spend")
@click.argument("conversation", required=False)
@json_option
@with_server
def spend(server: Server, *, conversation: str | None, as_json: bool) -> None:
    """Show what you have spent, by day, and what is left of your allowances.

    CONVERSATION is a title, an id, or the start of an id: its spend is shown as well, with that of
    its jobs.
    """
    conversation_id = conversation and id_prefix.find_conversation(server, conversation)
    spent = server.get("/api/spend", conversation_id=conversation_id)
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
            "": "used up" if allowance["is_used_up"] else "",
        }
        for allowance in spent["allowances"]
    ]
    days = [
        {"DAY": local_time(day["begins_at"])[:10], "SPENT": format_amount(day["spent"])}
        for day in spent["days"]
    ]
    for rows in (allowances, days):
        if rows:
            click.echo()
            print_table(rows, empty="")
