"""`backburner me`: your settings."""

from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.output import print_fields, print_json
from backburner.cli.server_options import json_option, with_server
from backburner.core.errors import BadRequest

SCOPES = ("run", "day", "user")


@click.command("me")
@click.option("--name", metavar="TEXT", help="Set your name, as others see it.")
@click.option(
    "--zone",
    metavar="NAME",
    help="Set your time zone, such as Europe/Berlin. It counts for new schedules; those that exist"
    " keep theirs.",
)
@click.option(
    "--allowance",
    "allowances",
    metavar="SCOPE=AMOUNT",
    multiple=True,
    help="Limit what a run, a day or you as a user may spend: day=5 USD, run=20000 tokens,"
    " user=none; day=default restores the default. Repeatable.",
)
@click.option("--discovery", type=click.Choice(["on", "off"]), help="Turn discovery on or off.")
@json_option
@with_server
def me(
    server: Server,
    *,
    name: str | None,
    zone: str | None,
    allowances: tuple[str, ...],
    discovery: str | None,
    as_json: bool,
) -> None:
    """Show your settings, or change them.

    These are your name, your time zone, your allowances and discovery.
    """
    body: dict[str, Any] = {}
    if name is not None:
        body["name"] = name
    if zone is not None:
        body["zone"] = zone
    if allowances:
        body["allowances"] = dict(map(_read_allowance, allowances))
    if discovery is not None:
        body["discovery"] = discovery == "on"
    user = server.put("/api/me", body) if body else server.get("/api/me")
    if as_json:
        print_json(user)
        return
    print_fields(
        {
            "id": user["id"],
            "name": user["name"],
            "login": user["login"],
            "role": user["role"],
            "time zone": describe_zone(user),
            "background": "paused" if user["paused"] or user["all_paused"] else "on",
            "discovery": "on" if user["discovery"] else "off",
            **{
                f"per {allowance['scope']}": format_amount(allowance)
                for allowance in user["allowances"]
            },
        }
    )


def describe_zone(user: Any) -> str:
    sources = {
        "none": "not set",
        "terminal": "from your terminal",
        "browser": "from your browser",
        "user": "set by you",
    }
    return f"{user['zone']} ({sources[user['zone_source']]})"


def format_amount(amount: Any) -> str:
    """Format an amount or a limit in money and tokens."""
    parts = []
    if amount["micros"] is not None:
        parts.append(f"{amount['micros'] / 10**6:.2f} USD")
    if amount["tokens"] is not None:
        parts.append(f"{amount['tokens']:,} tokens")
    return ", ".join(parts) or "no limit"


def _read_allowance(text: str) -> tuple[str, str | None]:
    scope, separator, amount = text.partition("=")
    if not separator or scope not in SCOPES or not amount.strip():
        raise BadRequest(
            f"{text!r} is not an allowance.",
            hint=f"Write SCOPE=AMOUNT, such as day=5 USD; scopes are {', '.join(SCOPES)}.",
        )
    return scope, None if amount.strip() == "default" else amount
