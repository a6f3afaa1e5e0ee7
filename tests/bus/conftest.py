"""Fixtures for tests of the bus: a server to stop and start, and a way to start processes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from support.servers import postgres_server


@pytest.fixture
def stopped_postgres() -> Iterator[Callable[[], AbstractContextManager[str]]]:
    """Return a function that starts a server of this test, also again after a stop."""
    with postgres_server.stopped_postgres() as start:
        yield start
