"""What tests of the bus get: a server to stop and start, and a way to start real processes."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from support.programs.programs import Start, starter
from support.servers import postgres_server


@pytest.fixture
def stopped_postgres() -> Iterator[Callable[[], AbstractContextManager[str]]]:
    """Give what starts a server that is ours alone, also again after it was stopped."""
    with postgres_server.stopped_postgres() as start:
        yield start


@pytest.fixture
def start() -> Iterator[Start]:
    with starter() as start:
        yield start
