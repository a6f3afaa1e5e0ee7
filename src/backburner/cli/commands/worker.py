"""`backburner worker`: one of many, on any machine, that share a PostgreSQL database."""

from collections.abc import Iterator

import click

from backburner import __version__
from backburner.cli.server_main import setting, start
from backburner.settings import Settings

WHY_APART = "A worker of its own needs PostgreSQL."


@click.command("worker")
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
@setting("concurrency", "NUMBER")
@setting("log_level", "LEVEL")
def command(**options: str | None) -> None:
    """Start a worker beside others on one PostgreSQL."""
    start(options, _words, apart=WHY_APART, serves=False)


def _words(_: Settings, name: str) -> Iterator[str]:
    yield f"Backburner {__version__} works as {name}"
    yield "Press Ctrl-C to stop."
