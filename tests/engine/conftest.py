"""The demo on a stage: with its real tools, and a folder with files to read."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.doubles.engine import ScriptedEngine
from support.doubles.tools import ALONE
from support.stage.stage import Stage
from support.stage.stages import clock, database

from backburner.bus.local import LocalBus
from backburner.engine.demo import DemoEngine
from backburner.gateway.network import CheckedNetwork
from backburner.process.shell import ConfinedShell
from backburner.store.db import Database
from backburner.tools.toolbox import Toolbox
from backburner.tools.workspace import workspace_offers

__all__ = ["clock", "database"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


@pytest.fixture
def set_up(database: Database, folder: Path) -> Callable[..., Stage]:
    """Return a function that sets up a stage; reading a file is free, or needs approval."""
    offers = workspace_offers(folder, folder / "kept", ConfinedShell(), CheckedNetwork(), ALONE)
    (reading,) = (offer for offer in offers if offer.tool.name == "read_file")

    def make(*, free: bool = True) -> Stage:
        offer = replace(reading, tool=replace(reading.tool, free=free))
        return Stage(
            database,
            LocalBus(),
            ScriptedEngine(),
            toolbox=lambda deps: Toolbox(deps, lambda _user, _cage: [offer]),
            engines={"demo": DemoEngine("backburner")},
            default_profile="demo",
        )

    return make


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up()
