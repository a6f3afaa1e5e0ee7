"""`backburner serve`: a server that leaves the work to workers on one PostgreSQL."""

from collections.abc import Iterator

import click

from backburner import __version__
from backburner.cli.server_main import setting, start
from backburner.settings import Settings

WHY_APART = "A server without a worker needs PostgreSQL: nobody else can work on a SQLite file."


@click.command("serve")
@setting("data", "FOLDER")
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("config", "FILE")
@setting("database_url", "URL")
@setting("log_level", "LEVEL")
def command(**options: str | None) -> None:
    """Start a server without a worker, on one PostgreSQL."""
    start(options, _words, apart=WHY_APART, works=False)


def _words(_: Settings, address: str) -> Iterator[str]:
    yield f"Backburner {__version__} is ready at {address}"
    yield "It does no work itself: start `backburner worker` for that. Ctrl-C stops it."
