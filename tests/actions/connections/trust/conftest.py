"""A stage with a vault and servers that can be connected to."""

from pathlib import Path

import pytest
from support.doubles.engine import ScriptedEngine
from support.doubles.listed_servers import ListedServers
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.ports import StdioProgram
from backburner.store.db import Database
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault


@pytest.fixture
def servers() -> ListedServers:
    return ListedServers()


@pytest.fixture
def stage(database: Database, servers: ListedServers, tmp_path: Path) -> Stage:
    return make_stage(database, servers, tmp_path)


@pytest.fixture
def either_stage(either: Database, servers: ListedServers, tmp_path: Path) -> Stage:
    """The same on SQLite, and on PostgreSQL, where transactions meet."""
    return make_stage(either, servers, tmp_path)


def make_stage(database: Database, servers: ListedServers, keys: Path) -> Stage:
    stage = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        tool_servers=servers,
        vault=SealingVault(MasterKeys(keys / "master_keys")),
        mcp_programs={"wiki": StdioProgram(command=("wiki-server",))},
    )
    stage.user()
    return stage
