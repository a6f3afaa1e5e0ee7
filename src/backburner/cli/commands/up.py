"""`backburner up`: everything in one process, for one machine."""

from collections.abc import Iterator

import click

from backburner import __version__
from backburner.cli.server_main import setting, start
from backburner.settings import Settings


@click.command("up")
@setting("data", "FOLDER")
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("config", "FILE")
@setting("database_url", "URL")
@setting("log_level", "LEVEL")
def command(**options: str | None) -> None:
    """Start Backburner on this machine."""
    start(options, _words)


def _words(settings: Settings, address: str) -> Iterator[str]:
    yield f"Backburner {__version__} is ready at {address}"
    yield f"Data: {settings.data}"
    yield "Press Ctrl-C to stop."
