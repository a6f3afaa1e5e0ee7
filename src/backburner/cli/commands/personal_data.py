"""`backburner export` and `erase`: all data of the signed-in user."""

import os
import sys
from pathlib import Path

import click

from backburner.actions.personal_data import ERASE_CONFIRMATION
from backburner.cli.client import Server
from backburner.cli.save_file import save
from backburner.cli.server_options import with_server


@click.command("export")
@click.argument("file", required=False, metavar="[FILE]")
@with_server
def export(server: Server, *, file: str | None) -> None:
    """Export all your data as JSON.

    Without FILE, it is written to standard output.
    """
    chunks = server.download("/api/export")
    if file is None:
        for chunk in chunks:
            os.write(1, chunk)
        return
    click.echo(f"Saved: {save(chunks, Path(file))}")


@click.command("erase")
@click.option(
    "--yes",
    "confirmation",
    metavar="TEXT",
    help=f'Skip the prompt; TEXT must be "{ERASE_CONFIRMATION}".',
)
@with_server
def erase(server: Server, *, confirmation: str | None) -> None:
    """Erase your account and all your data.

    This deletes your conversations, files and tokens, and signs you out. It cannot be undone.
    """
    if confirmation is None:
        confirmation = _ask_confirmation()
    server.post_once("/api/erase", {"confirm": confirmation})
    click.echo("Your account and all your data were erased.")


def _ask_confirmation() -> str:
    if not sys.stdin.isatty():
        raise click.UsageError(f'Without a terminal, --yes "{ERASE_CONFIRMATION}" is required.')
    click.echo("This cannot be undone. To keep a copy, run `backburner export FILE` first.")
    text: str = click.prompt(
        f'Type "{ERASE_CONFIRMATION}" to confirm', default="", show_default=False
    )
    return text
