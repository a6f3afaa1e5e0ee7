"""`backburner export`: everything that is the user's, in one file."""

import os
from pathlib import Path

import click

from backburner.cli.client import Server
from backburner.cli.save_file import keep
from backburner.cli.server_options import talks


@click.command("export")
@click.argument("file", required=False, metavar="[FILE]")
@talks
def command(server: Server, *, file: str | None) -> None:
    """Take out everything that is yours, as JSON; without a file it is printed."""
    pieces = server.download("/api/export")
    if file is None:
        for piece in pieces:
            os.write(1, piece)
        return
    click.echo(f"Written: {keep(pieces, Path(file))}")
