"""A real server with the demo agent, for commands that talk to one; tests import what they need."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from backburner.app.clock import Clock
from backburner.core.ids import UserId, new_user_id
from backburner.store.accounts import users
from backburner.store.lifecycle.opening import open_database
from backburner.store.tx import Tx
from support.people.a_token import TOKEN, put_token
from support.programs.programs import PATIENCE, Ended, starter

Call = Callable[..., Ended]
Ask = Callable[..., Any]


@dataclass(frozen=True)
class Running:
    address: str
    data: Path


def nothing(_tx: Tx, _user: UserId) -> None:
    pass


@contextmanager
def serving(data: Path, furnish: Callable[[Tx, UserId], object] = nothing) -> Iterator[Running]:
    """Start `backburner up` for somebody who has a token, and whatever `furnish` gives them."""

    def begin(tx: Tx) -> None:
        user = new_user_id()
        users.add(tx.connection, user, name="Ann", now=tx.now)
        put_token(tx.connection, user)
        furnish(tx, user)

    with closing(open_database(f"sqlite:///{data / 'backburner.sqlite3'}", Clock().read)) as made:
        made.run(begin)
    with starter() as start:
        yield Running(start("up", "--port", "0", "--data", data).wait_until_ready(), data)


@pytest.fixture
def talk(call: Call, running: Running, monkeypatch: pytest.MonkeyPatch) -> Call:
    monkeypatch.setenv("BACKBURNER_URL", running.address)
    monkeypatch.setenv("BACKBURNER_TOKEN", TOKEN)
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
    raise AssertionError("It did not happen.")
