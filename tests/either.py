"""A database of either kind, for what has to be the same on both.

Whoever imports these fixtures leaves the clock alone: PostgreSQL has its own.
"""

from collections.abc import Iterator
from contextlib import closing

import pytest
from postgres_server import new_postgres
from sqlalchemy import delete, make_url

from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tables import users
from backburner.testing.clock import SetClock


@pytest.fixture(scope="module")
def one_postgres(postgres_url: str, postgres_template: str) -> Iterator[Database]:
    with (
        new_postgres(postgres_url, template=make_url(postgres_template).database) as url,
        closing(Database(make_engine(url), SetClock())) as database,
    ):
        yield database


@pytest.fixture
def emptied_postgres(one_postgres: Database) -> Database:
    """Empty a database, which is faster than making one."""
    one_postgres.run(lambda tx: tx.connection.execute(delete(users)))
    return one_postgres


@pytest.fixture
def one_sqlite(migrated_sqlite_url: str, clock: SetClock) -> Iterator[Database]:
    with closing(Database(make_engine(migrated_sqlite_url), clock)) as database:
        yield database


@pytest.fixture(params=["one_sqlite", "emptied_postgres"], ids=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found
