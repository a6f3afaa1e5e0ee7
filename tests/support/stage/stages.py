"""A stage on a real SQLite file, with a clock that stands still until a test moves it.

The folders that use it import these fixtures into their conftest.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from backburner.bus.local import LocalBus
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from support.doubles.clock import SetClock
from support.doubles.engine import Script, ScriptedEngine
from support.stage.stage import Stage


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def database(migrated_sqlite_url: str, clock: SetClock) -> Iterator[Database]:
    with closing(Database(make_engine(migrated_sqlite_url), clock)) as database:
        yield database


@pytest.fixture(params=["database", "emptied_postgres"], ids=["sqlite", "postgres"])
def either(request: pytest.FixtureRequest) -> Database:
    """Give one database after the other; PostgreSQL goes by its own clock."""
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def set_up(database: Database) -> Callable[..., Stage]:
    """Give what sets up a stage with settings of its own."""

    def make(*scripts: Any, otherwise: Script | None = None, **more: Any) -> Stage:
        engine = ScriptedEngine(*scripts, otherwise=otherwise)
        return Stage(database, LocalBus(), engine, **more)

    return make


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up()
