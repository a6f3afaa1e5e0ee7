"""What every test gets: a hypothesis profile, an environment without our settings, databases.

Each test that wants a database gets its own, copied from one that was migrated once.
"""

import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import httpcore2
import pytest
import structlog
from hypothesis import HealthCheck, settings
from sqlalchemy import delete, make_url
from structlog.typing import Processor
from support.core_coverage import pytest_runtest_call, pytest_sessionstart
from support.doubles.clock import SetClock
from support.garbage import pytest_collection
from support.memory_disk import memory_disk
from support.programs.programs import Start, starter
from support.reports import pytest_runtest_makereport
from support.servers.postgres_server import new_postgres, postgres_server
from support.spread import pytest_collection_modifyitems, pytest_xdist_make_scheduler

from backburner.engine.addresses import ONLY_LOOPBACK
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date
from backburner.store.tables import install, install_secrets, users
from backburner.store.tx import Tx

__all__ = [
    "pytest_collection",
    "pytest_collection_modifyitems",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_sessionstart",
    "pytest_xdist_make_scheduler",
]

# Contract suites are not test files; their assertions should still explain themselves.
pytest.register_assert_rewrite("support.contracts.engine", "support.contracts.store")
# Kept even where the environment says otherwise: each process would compile all tests anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Child processes inherit both.
os.environ[ONLY_LOOPBACK] = "1"
os.environ["PYTHONPATH"] = str(Path(__file__).parent)
if (disk := memory_disk()) is not None:
    # Where `tmp_path` is made.
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(disk))
# A shell starts background jobs with interrupts ignored, and child processes would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: Plain lines: by default structlog colours each, and draws tracebacks with all variables.
PLAIN_LOG: list[Processor] = [
    structlog.processors.add_log_level,
    structlog.processors.format_exc_info,
    structlog.processors.KeyValueRenderer(),
]
structlog.configure(processors=PLAIN_LOG)

# Each client would load all certificates of the system anew.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

settings.register_profile("default", deadline=None, derandomize=True, print_blob=True)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=5_000,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("BACKBURNER_TEST_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("BACKBURNER_") and not name.startswith("BACKBURNER_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logging.root.manager.loggerDict}
    # So that setting up does not close the handlers of pytest.
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in logging.root.manager.loggerDict:
        logging.getLogger(name).setLevel(levels.get(name, logging.NOTSET))
    logging.captureWarnings(capture=False)
    logging.raiseExceptions = True
    structlog.reset_defaults()
    structlog.configure(processors=PLAIN_LOG)


@pytest.fixture
def start(request: pytest.FixtureRequest) -> Iterator[Start]:
    """Give what starts real programs, which end with the test."""
    is_the_point = request.node.get_closest_marker("starts") is not None
    with starter(forks=not is_the_point) as start:
        yield start


@pytest.fixture(scope="session")
def own_postgres_url() -> Iterator[str]:
    """Start a server that is ours alone, one for each process that runs tests."""
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> str:
    """Give the server that tests use; its user may make databases."""
    given = os.environ.get("BACKBURNER_TEST_PG")
    url: str = given or request.getfixturevalue("own_postgres_url")
    return url


@pytest.fixture
def empty_postgres_url(postgres_url: str) -> Iterator[str]:
    """Make a database without any table."""
    with new_postgres(postgres_url) as url:
        yield url


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
def memory_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bb-test-", dir=memory_disk()) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def sqlite_template(memory_folder: Path) -> Path:
    path = memory_folder / "backburner.sqlite3"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def migrated_sqlite_url(sqlite_template: Path, memory_folder: Path) -> Iterator[str]:
    """Make a file with all tables and no row, in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=memory_folder) as folder:
        yield f"sqlite:///{shutil.copyfile(sqlite_template, Path(folder, sqlite_template.name))}"


@pytest.fixture(scope="session")
def one_postgres(postgres_url: str, postgres_template: str) -> Iterator[Database]:
    """Make a database for all who empty it before they use it."""
    template = make_url(postgres_template).database
    with (
        new_postgres(postgres_url, template=template) as url,
        closing(Database(make_engine(url), SetClock())) as database,
    ):
        yield database


@pytest.fixture
def emptied_postgres(one_postgres: Database) -> Database:
    """Empty a database, which is faster than making one."""
    one_postgres.run(empty)
    return one_postgres


def empty(tx: Tx) -> None:
    for table in (users, install, install_secrets):
        tx.connection.execute(delete(table))
