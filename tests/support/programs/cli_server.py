"""A real server with the demo agent, for commands that talk to one; tests import what they need.

All tests of a process share one, and each has a user of its own.
"""

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest

from backburner.app.clock import Clock
from backburner.core.ids import UserId, new_user_id
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tx import Tx
from support.people.a_token import put_token
from support.people.users import add_user
from support.programs.programs import PATIENCE, Ended, starter

T = TypeVar("T")
POLL_SECONDS = 0.1
Call = Callable[..., Ended]
Ask = Callable[..., Any]


@dataclass(frozen=True)
class Running:
    address: str
    #: What the user of this test is let in with.
    token: str
    user: UserId
    _database: Database

    def transact(self, work: Callable[[Tx], T]) -> T:
        return self._database.run(work)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Database]]:
    """Start `backburner up`, and give its address and its database."""
    data = tmp_path_factory.mktemp("data")
    with starter() as start:
        address = start("up", "--port", "0", "--data", data).wait_until_ready()
        engine = make_engine(f"sqlite:///{data / 'backburner.sqlite3'}")
        with closing(Database(engine, Clock().read)) as database:
            yield address, database


@pytest.fixture
def running(server: tuple[str, Database]) -> Running:
    """Give the server, with a user nobody else has."""
    address, database = server
    running = Running(address, f"bb_{secrets.token_urlsafe()}", new_user_id(), database)

    def begin(tx: Tx) -> None:
        add_user(tx, running.user, name="Ann")
        put_token(tx.connection, running.user, running.token)

    running.transact(begin)
    return running


@pytest.fixture
def talk(call: Call, running: Running, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("BACKBURNER_URL", running.address)
    monkeypatch.setenv("BACKBURNER_TOKEN", running.token)
    return call


@pytest.fixture
def ask(talk: Call) -> Ask:
    """Give what a command answers in JSON."""

    def ask(*arguments: str) -> Any:
        ended = talk(*arguments, "--json")
        assert ended.code == 0, ended.err
        return json.loads("\n".join(ended.out))

    return ask


def wait_for(look: Callable[[], Any]) -> Any:
    """Look until there is something."""
    ends_at = time.monotonic() + PATIENCE
    while time.monotonic() < ends_at:
        if found := look():
            return found
        time.sleep(POLL_SECONDS)
    raise AssertionError("It did not happen.")
