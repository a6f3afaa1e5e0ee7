"""Connections are tried with the peer in a process of its own, and the real vault."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.people.users import add_user
from support.programs.programs import Start
from support.stage.connections import sign_in_deps
from support.stage.make import MATE, USER
from support.stage.stages import clock, database, either, set_up, stage

from backburner.actions.deps import Deps
from backburner.bus.local import LocalBus
from backburner.store.db import Database

__all__ = ["clock", "database", "either", "set_up", "stage"]


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return tmp_path / "master_keys"


@pytest.fixture
def deps(database: Database, keys: Path) -> Deps:
    """Make a process on SQLite; `test_sign_in_processes` has several on PostgreSQL."""
    for user in (USER, MATE):
        database.run(partial(add_user, user=user))
    database.bus = bus = LocalBus()
    return sign_in_deps(database, keys, bus)
