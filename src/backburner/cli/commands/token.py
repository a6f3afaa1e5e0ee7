"""`backburner token`: what programs are let in with."""

import click

from backburner.cli.client import Server
from backburner.cli.output import say_json, say_table, short, when
from backburner.cli.server_options import shows, talks
from backburner.core.errors import BadRequest, NotFound


@click.group("token")
def command() -> None:
    """Make, list and revoke tokens for programs."""


@command.command("create")
@click.option("--name", required=True, help="What it is for, as a reminder.")
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write", "operate"]),
    multiple=True,
    default=["read"],
    help="What it is good for; may be given more than once. [default: read]",
)
@click.option("--expires", metavar="TIME", default="90d", show_default=True, help="Or `never`.")
@talks
def create(server: Server, *, name: str, scopes: tuple[str, ...], expires: str) -> None:
    """Make a token, and print it alone. It is shown this once."""
    body = {
        "name": name,
        "scopes": sorted(set(scopes)),
        "expires": None if expires == "never" else expires,
    }
    click.echo(server.post_once("/api/tokens", body)["token"])


@command.command("list")
@shows
@talks
def list_all(server: Server, *, in_json: bool) -> None:
    """List the tokens you have that are good."""
    found = list(server.items("/api/tokens"))
    if in_json:
        say_json(found)
        return
    rows = [
        (
            short(one["id"]),
            one["name"],
            " ".join(one["scopes"]),
            when(one["expires_at"]) or "never",
            when(one["used_at"]) or "never",
        )
        for one in found
    ]
    say_table([("ID", "NAME", "SCOPES", "EXPIRES", "USED"), *rows], empty="There is none.")


@command.command("revoke")
@click.argument("token")
@talks
def revoke(server: Server, *, token: str) -> None:
    """End a token at once: its id, as much of it as is needed, or its name."""
    found = [
        one["id"]
        for one in server.items("/api/tokens")
        if one["id"].startswith(token) or one["name"] == token
    ]
    if not found:
        raise NotFound("You have no such token.", hint="`backburner token list` lists them.")
    if len(found) > 1:
        raise BadRequest(f"{token} stands for {len(found)} tokens.", hint="Give more of the id.")
    server.delete(f"/api/tokens/{found[0]}")
