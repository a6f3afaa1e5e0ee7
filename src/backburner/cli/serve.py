"""`backburner serve`: a server that leaves the work to workers on one PostgreSQL."""

from contextlib import suppress

import click

from backburner import __version__, log
from backburner.app.running import run
from backburner.cli.up import crashes_explained, say, setting
from backburner.core.errors import BadSetting
from backburner.settings import load


@click.command("serve")
@setting("data", "FOLDER")
@setting("host", "ADDRESS")
@setting("port", "NUMBER")
@setting("config", "FILE")
@setting("database_url", "URL")
@setting("log_level", "LEVEL")
def command(**options: str | None) -> None:
    """Start a server without a worker, on one PostgreSQL."""
    settings = load(**options)
    if settings.database.get_secret_value().startswith("sqlite"):
        raise BadSetting(
            "A server without a worker needs PostgreSQL: nobody else can work on a SQLite file.",
            hint="Set database_url, or use `backburner up`, which does both.",
        )
    log.set_up(level=settings.log_level, style=settings.log_format, secrets=settings.secrets())

    def announce(address: str) -> None:
        say(f"Backburner {__version__} is ready at {address}")
        say("It does no work itself: start `backburner worker` for that. Ctrl-C stops it.")

    with crashes_explained(settings), suppress(KeyboardInterrupt):
        run(settings, announce=announce, works=False)
    say("Stopped.")
