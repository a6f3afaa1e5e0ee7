"""`backburner connections catalogue`: well-known servers that can be connected by their names."""

import click

from backburner.cli.client import Server
from backburner.cli.output import print_fields, print_items
from backburner.cli.server_options import json_option, with_server

CATALOGUE_PATH = "/api/connections/catalogue"
#: Servers that are shown whole, and not as lines of a table.
MAX_WHOLE = 3
_SIGN_INS = {"none": "no sign-in", "header": "key", "oauth": "sign-in"}


@click.command("catalogue")
@click.argument("words", nargs=-1)
@json_option
@with_server
def catalogue(server: Server, *, words: tuple[str, ...], as_json: bool) -> None:
    """List well-known public servers.

    With WORDS, only those that have all of them in their line. Connect to one with
    `backburner connect NAME`.
    """
    items = [
        item
        for item in server.items(CATALOGUE_PATH)
        if all(
            word.casefold() in f"{item['name']} {item['title']} {item['purpose']}".casefold()
            for word in words
        )
    ]
    rows = [
        {
            "NAME": item["name"],
            "WANTS": "your own client" if item["own_client"] else _SIGN_INS[item["auth"]],
            "PURPOSE": item["purpose"],
            "BEFORE": item["before"],
        }
        for item in items
    ]
    if not as_json and 0 < len(rows) <= MAX_WHOLE:
        for number, row in enumerate(rows):
            click.echo("\n" * bool(number), nl=False)
            print_fields({name.lower(): text for name, text in row.items()})
        return
    print_items(items, rows, empty="The catalogue has no such server.", as_json=as_json)
