"""`backburner discovery`: turn the agent's search for work to propose on or off."""

import click

from backburner.cli.client import Server
from backburner.cli.server_options import with_server


@click.group("discovery")
def discovery() -> None:
    """Turn discovery on or off.

    While you are idle, the agent looks for work to propose. Nothing starts without your approval.
    """


@discovery.command("on")
@with_server
def turn_on(server: Server) -> None:
    """Turn discovery on."""
    server.put("/api/me", {"discovery": True})


@discovery.command("off")
@with_server
def turn_off(server: Server) -> None:
    """Turn discovery off. Existing proposals stay."""
    server.put("/api/me", {"discovery": False})


@discovery.command("status")
@with_server
def status(server: Server) -> None:
    """Print "on" or "off"."""
    click.echo("on" if server.get("/api/me")["discovery"] else "off")
