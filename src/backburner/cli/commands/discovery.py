"""`backburner discovery`: whether the agent looks for work to propose."""

import click

from backburner.cli.client import Server
from backburner.cli.server_options import talks


@click.group("discovery")
def command() -> None:
    """Let the agent look for work to propose, or not.

    It looks now and then, when you have been silent for a while but not for long, and proposes
    what it finds: nothing begins without your yes.
    """


@command.command("on")
@talks
def switch_on(server: Server) -> None:
    """Let it look."""
    server.put("/api/me", {"discovery": True})


@command.command("off")
@talks
def switch_off(server: Server) -> None:
    """Stop it for good; what it has proposed stays."""
    server.put("/api/me", {"discovery": False})


@command.command("status")
@talks
def status(server: Server) -> None:
    """Say whether it looks: on or off."""
    click.echo("on" if server.get("/api/me")["discovery"] else "off")
