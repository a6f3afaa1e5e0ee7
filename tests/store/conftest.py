"""Databases as the store sees them, with a clock that stands still until a test moves it."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from support.doubles.clock import SetClock

from backburner.store.db import Database
from backburner.store.dialect import make_engine


@pytest.fixture
def clock() -> SetClock:
    """The clock of the SQLite database of this test; PostgreSQL has its own."""
    return SetClock()


@pytest.fixture
def postgres(migrated_postgres_url: str, clock: SetClock) -> Iterator[Database]:
    with closing(Database(make_engine(migrated_postgres_url), clock)) as database:
        yield database


@pytest.fixture
def sqlite(migrated_sqlite_url: str, clock: SetClock) -> Iterator[Database]:
    with closing(Database(make_engine(migrated_sqlite_url), clock)) as database:
        yield database


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found
