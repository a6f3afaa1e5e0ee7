"""The product as it is: its own program, a real PostgreSQL, the real Claude Code. Only the model
is a stand-in.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.faults.outside import Outside
from support.model_api import ModelApi
from support.programs.programs import Start
from support.programs.real_workers import RealWorkers
from support.servers.model_threads import model_in_thread


@pytest.fixture
def model() -> Iterator[ModelApi]:
    with model_in_thread() as model:
        yield model
        assert model.complaints == []


@pytest.fixture
def outside(migrated_postgres_url: str) -> Iterator[Outside]:
    """The user, and whoever looks at what became of it all."""
    with Outside(migrated_postgres_url) as outside:
        yield outside


@pytest.fixture
def workers(
    model: ModelApi, start: Start, tmp_path: Path, migrated_postgres_url: str
) -> RealWorkers:
    return RealWorkers(start, tmp_path, migrated_postgres_url, model.address)
