"""The revision of a database, the check whether its tables are ours, and migrations.

All missing revisions are applied in one transaction, on both databases: if one of them fails, the
database is left unchanged.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, Engine, inspect, text

from backburner.core.errors import StoreFailed
from backburner.store.dialect import is_sqlite
from backburner.store.tables import conversations, metadata, users

MIGRATIONS = Path(__file__).parents[1] / "migrations"
#: Folders with a file for each revision.
Versions = tuple[Path, ...]
OUR_VERSIONS: Versions = (MIGRATIONS / "versions",)

#: Marks a SQLite file as ours: "BKBR".
APPLICATION_ID = 0x424B4252
#: The advisory lock of migrations on PostgreSQL: "backburn".
MIGRATION_LOCK = 0x6261636B6275726E
#: How long one process waits for another to finish a migration.
MIGRATION_LOCK_TIMEOUT = "10min"

#: Alembic's own table.
REVISIONS = "alembic_version"
#: Tables that every revision has.
_OUR_TABLES = {REVISIONS, users.name, conversations.name}


def known_revisions(versions: Versions) -> list[str]:
    """List the revisions in order; the name of each file starts with its revision."""
    files = (file for folder in versions for file in folder.glob("[0-9]*.py"))
    return sorted(file.name.partition("_")[0] for file in files)


def find_revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table(REVISIONS):
        return None
    # Our databases have one row; those of other programs that use Alembic may have several.
    revision: str | None = connection.execute(
        text(f"SELECT max(version_num) FROM {REVISIONS}")  # noqa: S608 (a constant)
    ).scalar()
    return revision


def check_tables(connection: Connection, name: str, *, versions: Versions = OUR_VERSIONS) -> None:
    """Refuse tables of another program, of a newer Backburner, or of an alpha version.

    A database of an alpha version is not upgraded: its revisions are gone.
    """
    tables = set(inspect(connection).get_table_names())
    revision, known = find_revision(connection), known_revisions(versions)
    is_ours = tables >= _OUR_TABLES
    is_new = not tables & {REVISIONS, *metadata.tables}
    if is_new or (is_ours and revision in known):
        return
    if is_ours and revision is not None and revision > known[-1]:
        raise StoreFailed(
            f"{name} was last used by a newer Backburner:"
            f" its tables have revision {revision}, and this version knows up to {known[-1]}.",
            hint="Start the newer version, or restore a backup that is older.",
            permanent=True,
        )
    if is_ours and revision is not None and revision < known[0]:
        raise StoreFailed(
            f"{name} was created by an unreleased alpha version of Backburner, and cannot be used:"
            f" its tables have revision {revision}, and the first released one is {known[0]}.",
            hint="Export your data with that version, then move the database away and start again.",
            permanent=True,
        )
    raise foreign_database(name)


def foreign_database(name: str) -> StoreFailed:
    return StoreFailed(
        f"{name} has tables of another program.",
        hint="Choose an empty or new one with --database-url.",
        permanent=True,
    )


def bring_up_to_date(engine: Engine, *, versions: Versions = OUR_VERSIONS) -> None:
    """Apply the revisions that are missing, all or none."""
    newest = known_revisions(versions)[-1]
    with engine.begin() as connection:
        if find_revision(connection) == newest:
            return
    with _migrating(engine) as connection:
        # Another process may have done it meanwhile.
        if find_revision(connection) != newest:
            upgrade(connection, newest, versions=versions)


def upgrade(connection: Connection, revision: str, *, versions: Versions = OUR_VERSIONS) -> None:
    # Imported late: it takes as long as everything else, and few starts need it.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    config = Config(attributes={"connection": connection})
    for option, value in {
        "script_location": str(MIGRATIONS),
        "path_separator": "newline",
        "version_locations": "\n".join(map(str, versions)),
    }.items():
        config.set_main_option(option, value.replace("%", "%%"))
    command.upgrade(config, revision)


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that is the only one to migrate."""
    with engine.connect() as connection:
        if is_sqlite(engine):
            yield from _migrating_sqlite(connection)
        else:
            with connection.begin():
                for name in ("statement_timeout", "idle_in_transaction_session_timeout"):
                    connection.exec_driver_sql(f"SET LOCAL {name} = 0")
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{MIGRATION_LOCK_TIMEOUT}'")
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
                yield connection


def _migrating_sqlite(connection: Connection) -> Iterator[Connection]:
    driver = connection.connection.cursor()
    # A table is changed by creating a new one, and dropping the old one would delete the rows that
    # refer to it. This can be set only outside a transaction.
    driver.execute("PRAGMA foreign_keys = OFF")
    try:
        with connection.begin():
            connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
            yield connection
            if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                raise StoreFailed("A migration would have left dangling references.")
    finally:
        driver.execute("PRAGMA foreign_keys = ON")
        driver.close()
