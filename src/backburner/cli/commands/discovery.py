"""`backburner discovery`: turn the agent's search for work to propose on or off."""

from typing import Any

import click

from backburner.cli.client import Server
from backburner.cli.confirmation import confirm, yes_option
from backburner.cli.current_folder import folder_option
from backburner.cli.output import print_line
from backburner.cli.server_options import with_server
from backburner.core.work.discovery import check_repository, gh_arguments


@click.group("discovery")
def discovery() -> None:
    """Turn discovery on or off.

    While you are idle, the agent looks for work to propose. Nothing starts without your approval.
    """


@discovery.command("on")
@folder_option
@click.option(
    "--repository", metavar="OWNER/NAME", help="List its CI and pull requests with your gh sign-in."
)
@yes_option
@with_server
def turn_on(server: Server, *, folder: str | None, repository: str | None, is_sure: bool) -> None:
    """Turn discovery on.

    It looks at your recent chats and tasks, and at the git repository in a folder that you added.
    """
    body: dict[str, Any] = {"discovery": True}
    if repository is not None:
        for arguments in gh_arguments(check_repository(repository)):
            print_line(f"gh {' '.join(arguments)}")
        confirm("Run these lines with your gh sign-in before each look?", is_sure=is_sure)
        body["discovery_repository"] = repository
    if folder is not None:
        body["discovery_folder"] = folder
    server.put("/api/me", body)
    print_line("Discovery is on. It looks for work while you are idle.")


@discovery.command("off")
@with_server
def turn_off(server: Server) -> None:
    """Turn discovery off. Existing proposals stay."""
    server.put("/api/me", {"discovery": False})
    print_line("Discovery is off.")


@discovery.command("status")
@with_server
def status(server: Server) -> None:
    """Print "on" or "off"."""
    click.echo("on" if server.get("/api/me")["discovery"] else "off")
