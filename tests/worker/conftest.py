"""A whole worker on a real SQLite file, by the real clock."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from backburner.app import Clock
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tables import metadata


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    engine = make_engine(f"sqlite:///{tmp_path / 'backburner.sqlite3'}")
    metadata.create_all(engine)
    with closing(Database(engine, Clock().read)) as database:
        yield database
