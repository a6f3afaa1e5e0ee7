"""Stages with the real toolbox."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from support.doubles.clock import SetClock
from support.people.tool_calls import set_up
from support.simulator.world import FlakyDatabase
from support.stage.stage import Stage
from support.stage.stages import clock, database, either

from backburner.store.db import Database

__all__ = ["clock", "database", "either"]


@pytest.fixture
def stage(database: Database) -> Stage:
    return set_up(database)


@pytest.fixture
def flaky(database: Database, clock: SetClock) -> Iterator[FlakyDatabase]:
    with closing(FlakyDatabase(database.engine, clock)) as flaky:
        yield flaky
