"""`backburner db`: back up, restore, check and migrate the database."""

from pathlib import Path

import click

from backburner.app import backup as backups
from backburner.app import vault
from backburner.cli.output import print_line
from backburner.cli.save_file import save
from backburner.cli.server_options import find_server
from backburner.cli.setting_options import file_options
from backburner.core.content.file import format_size
from backburner.core.errors import BackburnerError
from backburner.settings import load


@click.group("db")
def db() -> None:
    """Back up, restore, check or migrate the database."""


@db.command("backup")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--token-file", metavar="FILE", help="File with an operator's token, if the server is running."
)
@click.option("--url", metavar="URL", help="Address of the server, if it is running.")
@file_options
def backup(file: Path, *, token_file: str | None, url: str | None, **options: str | None) -> None:
    """Back up the SQLite database to FILE.

    It works while the server is running. Only you can read FILE. For PostgreSQL, use pg_dump.
    """
    settings = load(**options)
    if backups.is_sqlite(settings) and backups.is_in_use(settings):
        server = find_server(url, token_file, str(settings.data))
        print_line(f"Saved: {save(server.download('/api/backup', method='POST'), file)}")
        return
    backups.back_up_offline(settings, file)
    print_line(f"Saved: {file} ({format_size(file.stat().st_size)})")


@db.command("restore")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--loaded", is_flag=True, help="The backup is already loaded, e.g. by pg_restore.")
@file_options
def restore(file: Path | None, *, loaded: bool, **options: str | None) -> None:
    """Replace the database with a backup. Stop the server first.

    So that nothing is done twice, all background work is paused, unsent notices are not
    delivered, and all users have to sign in again. The replaced database is kept.
    """
    if loaded == (file is not None):
        raise click.UsageError("Pass either FILE or --loaded.")
    settings = load(**options)
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    if file is None:
        settled, replaced = backups.settle_loaded(settings), None
    else:
        restored = backups.restore(settings, file)
        settled, replaced = restored.what, restored.kept
    print_line(f"Restored. Paused conversations: {settled.paused}. Resume those you want.")
    print_line(f"Revoked sessions and tokens: {settled.signed_out}.")
    if replaced is not None:
        print_line(f"Previous database: {replaced}")
    for warning in vault.find_restore_problems(settings):
        click.echo(warning, err=True)


@db.command("check")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@file_options
def check(file: Path | None, **options: str | None) -> None:
    """Check the database, or the backup FILE, for errors."""
    faults = backups.check_backup(file) if file else backups.check(load(**options))
    if faults:
        raise BackburnerError(" ".join(faults), hint="Restore an earlier backup.")
    print_line("No errors found.")


@db.command("migrate")
@file_options
def migrate(**options: str | None) -> None:
    """Update the tables to this version. `backburner up` does the same at start."""
    print_line(f"The database is at revision {backups.migrate(load(**options))}.")
