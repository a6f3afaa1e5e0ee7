"""`backburner erase`: everything that is the user's, for good."""

import sys

import click

from backburner.actions.personal_data import ERASE_CONFIRMATION
from backburner.cli.client import Server
from backburner.cli.server_options import talks


@click.command("erase")
@click.option(
    "--yes",
    "confirmation",
    metavar="CONFIRMATION",
    help=f'For scripts: exactly "{ERASE_CONFIRMATION}".',
)
@talks
def command(server: Server, *, confirmation: str | None) -> None:
    """Erase everything that is yours, for good: conversations, files, sign-ins, the account."""
    if confirmation is None:
        confirmation = _ask()
    server.post_once("/api/erase", {"confirm": confirmation})
    click.echo("Everything that was yours is erased.")


def _ask() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(f'Nobody is there to be asked: say --yes "{ERASE_CONFIRMATION}".')
    click.echo("This cannot be undone. `backburner export FILE` takes everything out first.")
    answer: str = click.prompt(
        f'Type "{ERASE_CONFIRMATION}" to go on', default="", show_default=False
    )
    return answer
