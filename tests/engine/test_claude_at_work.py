"""How many programs of Claude Code have taken their memory: those that have started."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.contracts.engine.trial import Shared, Trial, ends_soon
from support.model_api import ModelApi, Stall

from backburner.engine.claude.engine import ClaudeEngine, Model
from backburner.process.launcher import CleanLauncher


class BrokenLauncher:
    def write(self, path: Path, **_: Any) -> None:
        raise OSError(f"{path} is not to be written.")


def make_engine(folder: Path, address: str, launcher: Any) -> ClaudeEngine:
    return ClaudeEngine(
        Model(name="claude-sonnet-4-5", address=address, headers={}),
        launcher=launcher,
        homes=folder / "homes",
        workspace=lambda _: folder / "workspace",
    )


async def test_a_turn_is_at_work_once_its_program_has_started_and_until_it_ends(
    tmp_path: Path,
) -> None:
    async with ModelApi() as api:
        engine = make_engine(tmp_path, api.address, CleanLauncher())
        api.then(Stall())
        turn = asyncio.create_task(Trial(Shared(engine)).turn())
        await asyncio.sleep(0)
        assert engine.at_work == 0

        await api.wait_for_requests(1)
        assert engine.at_work == 1

        turn.cancel()
        await ends_soon(turn)
        assert engine.at_work == 0
        await engine.close()


async def test_a_turn_whose_program_does_not_start_is_never_at_work(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, "http://127.0.0.1:9", BrokenLauncher())

    with pytest.raises(OSError, match="not to be written"):
        await Trial(Shared(engine)).turn()

    assert engine.at_work == 0
    await engine.close()
