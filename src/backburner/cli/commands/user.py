"""`backburner user`: who there is, and how they get in."""

from collections.abc import Callable
from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.id_prefix import choose
from backburner.cli.offline import or_here
from backburner.cli.output import say_json, say_table, short, when
from backburner.cli.server_options import shows, talks
from backburner.core.errors import NotFound


@click.group("user")
def command() -> None:
    """See to accounts: who there is, and how they get in."""


def with_role(of: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--role", type=click.Choice(["member", "operator"]), default="member", show_default=True
    )(of)


@command.command("list")
@shows
@talks
def list_all(server: Server, *, in_json: bool) -> None:
    """List everybody who has an account."""
    found = list(server.items("/api/users"))
    if in_json:
        say_json(found)
        return
    rows = [
        (
            short(one["id"]),
            one["login"] or "-",
            one["name"],
            one["role"],
            "disabled" if one["disabled_at"] else "password" if one["has_password"] else "link",
            when(one["created_at"]),
        )
        for one in found
    ]
    say_table([("ID", "LOGIN", "NAME", "ROLE", "SIGNS IN", "SINCE"), *rows], empty="Nobody.")


@command.command("add")
@click.argument("login")
@click.option("--name", default="", help="What they are called.")
@with_role
@talks
def add(server: Server, *, login: str, name: str, role: str) -> None:
    """Add somebody, and print the link with which they set their password."""
    added = server.post_once("/api/users", {"login": login, "name": name, "role": role})
    click.echo(added["reset"]["link"])


@command.command("invite")
@click.option("--name", default="", help="For whom it is, as a reminder.")
@with_role
@talks
def invite(server: Server, *, name: str, role: str) -> None:
    """Print a link with which one person makes an account."""
    click.echo(server.post_once("/api/invitations", {"name": name, "role": role})["link"])


@command.command("invitations")
@shows
@talks
def invitations(server: Server, *, in_json: bool) -> None:
    """List the invitations that can still be used."""
    found = list(server.items("/api/invitations"))
    if in_json:
        say_json(found)
        return
    rows = [
        (short(one["id"]), one["name"] or "-", one["role"], when(one["expires_at"]))
        for one in found
    ]
    say_table([("ID", "FOR", "ROLE", "EXPIRES"), *rows], empty="There is none.")


@command.command("uninvite")
@click.argument("invitation")
@talks
def uninvite(server: Server, *, invitation: str) -> None:
    """Take an invitation back: its id, or as much of it as is needed."""
    found = choose(invitation, server.items("/api/invitations"), "invitation", "name")
    server.delete(f"/api/invitations/{found}")


@command.command("reset")
@click.argument("login", required=False)
@or_here("make_reset")
@talks
def reset(server: Server, *, login: str | None) -> None:
    """Print a link with which somebody sets a new password."""
    if login is None:
        raise click.UsageError("Say whose, or --here for the owner's.")
    click.echo(server.post_once(f"/api/users/{_find(server, login)}/reset")["link"])


@command.command("disable")
@click.argument("login")
@click.option("--undo", is_flag=True, help="Let them in again.")
@talks
def disable(server: Server, *, login: str, undo: bool) -> None:
    """Shut somebody out at once."""
    server.patch(f"/api/users/{_find(server, login)}", {"disabled": not undo})


@command.command("link")
@click.argument("login", required=False)
@or_here("make_link")
@talks
def link(server: Server, *, login: str | None) -> None:
    """Print a link that signs you in once, within 15 minutes."""
    if login is not None:
        raise click.UsageError("For somebody else there is a link only with --here.")
    click.echo(server.post_once("/api/sign-in-links")["link"])


def _find(server: Server, login: str) -> str:
    """Find the id of somebody by login or id."""
    wanted = login.strip().lower()
    for one in server.items("/api/users"):
        if wanted in (one["login"], one["id"]):
            found: str = one["id"]
            return found
    raise NotFound("There is nobody of that name.", hint="`backburner user list` lists all.")
