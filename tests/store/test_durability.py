"""What was committed is on the disk: both databases are asked to wait for it."""

import psycopg
from sqlalchemy import make_url

from backburner.store.db import Database


def ask(database: Database, question: str) -> object:
    return database.run(lambda tx: tx.connection.exec_driver_sql(question).scalar_one())


def test_sqlite_waits_for_the_disk_at_every_commit(sqlite: Database) -> None:
    full = 2

    assert ask(sqlite, "PRAGMA synchronous") == full
    assert ask(sqlite, "PRAGMA journal_mode") == "wal"


def test_postgresql_waits_for_the_disk_whatever_the_database_would_do(
    migrated_postgres_url: str, postgres: Database
) -> None:
    name = make_url(migrated_postgres_url).database
    with psycopg.connect(migrated_postgres_url, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    with psycopg.connect(migrated_postgres_url) as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("off",)

    assert ask(postgres, "SHOW synchronous_commit") == "on"
