"""`backburner db`: the database itself, copied, put back, checked and brought up to date."""

from pathlib import Path
from typing import Any

import click

from backburner.app import backup as copies
from backburner.cli.save_file import in_words, keep
from backburner.cli.server_main import say, setting
from backburner.cli.server_options import find_server
from backburner.core.errors import BackburnerError
from backburner.settings import Settings, load


@click.group("db")
def command() -> None:
    """Copy, put back, check or migrate the database."""


@command.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--token-file", metavar="FILE", help="With an operator's token, where it runs.")
@click.option("--url", metavar="ADDRESS", help="Of the server, where it runs.")
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
def backup(file: Path, *, token_file: str | None, url: str | None, **options: str | None) -> None:
    """Copy the database to FILE, also while Backburner runs. It is for your eyes only.

    PostgreSQL has a program of its own for this, and is told which.
    """
    settings = load(**options)
    if _is_file(settings) and copies.is_in_use(settings):
        server = find_server(url, token_file, str(settings.data))
        say(f"Written: {keep(server.download('/api/backup', method='POST'), file)}")
        return
    copies.copy_at_rest(settings, file)
    say(f"Written: {file} ({in_words(file.stat().st_size)})")


@command.command("restore")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--loaded", is_flag=True, help="Something else has loaded a copy already, such as pg_restore."
)
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
def restore(file: Path | None, *, loaded: bool, **options: str | None) -> None:
    """Put a copy in the place of the database, while no Backburner runs.

    Nobody knows what was done after the copy was made. So background work is paused until you
    resume it, nothing that waited goes out, and everybody signs in anew. The database that was
    there is kept beside the other.
    """
    if loaded == (file is not None):
        raise click.UsageError("Name the copy, or say --loaded.")
    settings = load(**options)
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file is None:
        done: Any = copies.settle_loaded(settings)
        kept = None
    else:
        put = copies.put_back(settings, file)
        done, kept = put.what, put.kept
    say(f"Restored. Conversations that are paused now: {done.paused}. Resume what should go on.")
    say(f"Sign-ins and tokens that are good no longer: {done.signed_out}.")
    if kept is not None:
        say(f"What was there before: {kept}")


@command.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
def check(file: Path | None, **options: str | None) -> None:
    """Look through the database, or through a copy of it, for whatever is wrong."""
    faults = copies.check_copy(file) if file else copies.check(load(**options))
    if faults:
        raise BackburnerError(" ".join(faults), hint="Put back a copy from before.")
    say("Nothing is wrong.")


@command.command("migrate")
@setting("data", "FOLDER")
@setting("config", "FILE")
@setting("database_url", "URL")
def migrate(**options: str | None) -> None:
    """Bring the tables up to date, as a start does."""
    say(f"The tables are of revision {copies.migrate(load(**options))}.")


def _is_file(settings: Settings) -> bool:
    return settings.database.get_secret_value().startswith("sqlite")
