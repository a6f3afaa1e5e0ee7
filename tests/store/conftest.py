"""Real databases for tests: each gets its own, copied from one that was migrated once."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from postgres_server import new_postgres
from programs import Start, starter
from sqlalchemy import make_url

from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.schema import bring_up_to_date
from backburner.testing.clock import SetClock


def migrate(url: str) -> None:
    engine = make_engine(url)
    bring_up_to_date(engine)
    engine.dispose()


@pytest.fixture(scope="session")
def postgres_template(postgres_url: str) -> Iterator[str]:
    with new_postgres(postgres_url) as url:
        migrate(url)
        yield url


@pytest.fixture
def migrated_postgres_url(postgres_url: str, postgres_template: str) -> Iterator[str]:
    """Make a database with all tables and no row."""
    with new_postgres(postgres_url, template=make_url(postgres_template).database) as url:
        yield url


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "backburner.sqlite3"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def migrated_sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """Make a file with all tables and no row."""
    return f"sqlite:///{shutil.copy(sqlite_template, tmp_path)}"


@pytest.fixture
def start() -> Iterator[Start]:
    with starter() as start:
        yield start


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
