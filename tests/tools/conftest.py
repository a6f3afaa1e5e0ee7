"""Tools are tried on a stage, with the agent's real toolbox."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from stages import clock, database, either
from tool_calls import set_up

from backburner.store.db import Database
from backburner.testing.clock import SetClock
from backburner.testing.simulator.world import FlakyDatabase
from backburner.testing.stage import Stage

__all__ = ["clock", "database", "either"]


@pytest.fixture
def stage(database: Database) -> Stage:
    return set_up(database)


@pytest.fixture
def flaky(database: Database, clock: SetClock) -> Iterator[FlakyDatabase]:
    with closing(FlakyDatabase(database.engine, clock)) as flaky:
        yield flaky
