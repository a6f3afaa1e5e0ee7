"""The demo on a stage: its real tools, and a folder with files to be read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import Field
from stages import clock, database

from backburner.bus.local import LocalBus
from backburner.core.errors import BadRequest, NotFound
from backburner.engine.demo import DemoEngine
from backburner.store.db import Database
from backburner.testing.engine import ScriptedEngine
from backburner.testing.stage import Stage
from backburner.tools.define import Arguments, define
from backburner.tools.toolbox import Toolbox

__all__ = ["clock", "database"]


class File(Arguments):
    path: str = Field(description="Which one.")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


@pytest.fixture
def set_up(database: Database, folder: Path) -> Callable[..., Stage]:
    """Give what sets up a stage on which reading a file is free, or needs consent."""

    async def read(asked: File) -> str:
        """Read a file."""
        path = folder / asked.path
        if path.is_dir():
            raise BadRequest(f"{asked.path} is a folder.")
        if not path.exists():
            raise NotFound(f"There is no file {asked.path}.")
        return path.read_bytes().decode(errors="replace")

    def make(*, free: bool = True) -> Stage:
        offer = define("read_file", File, read, free=free, read_only=True, outside=True)
        return Stage(
            database,
            LocalBus(),
            ScriptedEngine(),
            toolbox=lambda deps: Toolbox(deps, lambda _: [offer]),
            engines={"demo": DemoEngine()},
            default_engine="demo",
        )

    return make


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up()
