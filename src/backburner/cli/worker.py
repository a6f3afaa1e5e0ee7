"""`backburner worker`: one of many, on any machine, that share a PostgreSQL database."""

from contextlib import suppress

import click

from backburner import __version__, log
from backburner.app.running import run
from backburner.cli.up import crashes_explained, say, setting
from backburner.core.errors import BadSetting
from backburner.settings import load


@click.command("worker")
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
@setting("concurrency", "NUMBER")
@setting("log_level", "LEVEL")
def command(**options: str | None) -> None:
    """Start a worker beside others on one PostgreSQL."""
    settings = load(**options)
    if settings.database.get_secret_value().startswith("sqlite"):
        raise BadSetting(
            "A worker of its own needs PostgreSQL.",
            hint="Set database_url, or use `backburner up`, which works on a SQLite file itself.",
        )
    log.set_up(level=settings.log_level, style=settings.log_format, secrets=settings.secrets())

    def announce(name: str) -> None:
        say(f"Backburner {__version__} works as {name}")
        say("Press Ctrl-C to stop.")

    with crashes_explained(settings), suppress(KeyboardInterrupt):
        run(settings, announce=announce, serves=False)
    say("Stopped.")
