"""Databases that each cell gets a fresh copy of: one full of work that is due, one with none."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
from _databases import durable_postgres, fill, vacuum
from _processes import parent
from sqlalchemy import Engine, make_url
from support.people.a_token import put_token
from support.servers.postgres_server import new_postgres

from backburner.core.ids import UserId
from backburner.settings import load
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date

USERS = 50
#: Conversations that are not due, which a table of a real installation holds as well.
OTHERS = 4_000


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is done in a round."""

    rounds: int
    #: Runs, jobs of peers that are fast, samples of a delay, claims, messages of a client.
    runs: int
    jobs: int
    samples: int
    claims: int
    messages: int
    is_quick: bool


@dataclass(frozen=True, slots=True)
class Grounds:
    scale: Scale
    #: URL and process of the PostgreSQL server.
    server: str
    server_pid: int
    #: Names of databases, and folders with files of SQLite, to be copied.
    templates: dict[str, str]
    folder: Path

    @contextmanager
    def postgres(self, kind: str | None = None) -> Iterator[str]:
        """Give the URL of a new database: `due`, `quiet`, or empty."""
        template = self.templates[kind] if kind else None
        with new_postgres(self.server, template) as url:
            with psycopg.connect(self.server, autocommit=True) as connection:
                # The log then holds whole pages, in each cell alike.
                connection.execute("CHECKPOINT")
            yield url

    @contextmanager
    def data(self, kind: str | None = None) -> Iterator[Path]:
        """Give a new data folder, with a copy of a SQLite file if a kind is named."""
        with tempfile.TemporaryDirectory(prefix="data-", dir=self.folder) as made:
            if kind:
                shutil.copytree(self.folder / kind, made, dirs_exist_ok=True)
            yield Path(made)


def token(user: int) -> str:
    return f"bb_bench-{user}"


@contextmanager
def open_grounds(scale: Scale) -> Iterator[Grounds]:
    with ExitStack() as opened:
        server = opened.enter_context(durable_postgres())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="bb-bench-")))
        with psycopg.connect(server) as connection:
            server_pid = parent(connection.info.backend_pid)
        templates = {}
        for kind, due in (("due", scale.runs), ("quiet", 0)):
            url = opened.enter_context(new_postgres(server))
            templates[kind] = str(make_url(url).database)
            (folder / kind).mkdir(mode=0o700)
            file = load(data=str(folder / kind)).database.get_secret_value()
            for database in (url, file):
                engine = make_engine(database)
                _prepare(engine, due)
                engine.dispose()
        yield Grounds(scale, server, server_pid, templates, folder)


def _prepare(engine: Engine, due: int) -> None:
    bring_up_to_date(engine)
    fill(engine, conversations=OTHERS + due, due=due, people=USERS, busy=USERS, reports_to=())
    with engine.begin() as connection:
        for user in range(USERS):
            put_token(connection, UserId(f"u_{user}"), token(user))
    vacuum(engine)
