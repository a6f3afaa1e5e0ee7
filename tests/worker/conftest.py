"""A whole worker in this process on a SQLite file, or workers in their own on a PostgreSQL."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.faults.outside import Outside
from support.programs.programs import Start
from support.programs.workers import Workers
from support.stage.stages import either

from backburner.app.clock import Clock
from backburner.store.db import Database
from backburner.store.dialect import make_engine

__all__ = ["database", "either", "outside", "workers"]


@pytest.fixture
def database(migrated_sqlite_url: str) -> Iterator[Database]:
    with closing(Database(make_engine(migrated_sqlite_url), Clock().read)) as database:
        yield database


@pytest.fixture
def workers(start: Start, tmp_path: Path, migrated_postgres_url: str) -> Workers:
    return Workers(start, tmp_path, migrated_postgres_url)


@pytest.fixture
def outside(migrated_postgres_url: str) -> Iterator[Outside]:
    """Somebody who gives them work."""
    with Outside(migrated_postgres_url) as outside:
        yield outside
