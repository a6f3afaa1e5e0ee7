"""A database of either kind, for what has to be the same on both.

Whoever imports these fixtures leaves the clock alone: PostgreSQL has its own.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest

from backburner.store.db import Database
from backburner.store.dialect import make_engine
from support.doubles.clock import SetClock


@pytest.fixture
def one_sqlite(migrated_sqlite_url: str, clock: SetClock) -> Iterator[Database]:
    with closing(Database(make_engine(migrated_sqlite_url), clock)) as database:
        yield database


@pytest.fixture(params=["one_sqlite", "emptied_postgres"], ids=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found
