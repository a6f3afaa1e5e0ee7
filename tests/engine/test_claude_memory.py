"""The number of Claude Code programs that have started, and so have allocated their memory."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.contracts.engine.harness import EngineHarness, Shared, ends_soon
from support.model_api import ModelApi, Stall

from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.process.launcher import CleanLauncher


class BrokenLauncher:
    def write(self, path: Path, **_: Any) -> None:
        raise OSError(f"{path} must not be written.")


def make_engine(folder: Path, address: str, launcher: Any) -> ClaudeEngine:
    return ClaudeEngine(
        ClaudeModel(name="claude-sonnet-4-5", address=address, headers={}),
        launcher=launcher,
        homes=folder / "homes",
        workspace=lambda _: folder / "workspace",
    )


async def test_a_program_is_active_from_its_start_to_its_end(
    tmp_path: Path,
) -> None:
    async with ModelApi() as api:
        engine = make_engine(tmp_path, api.address, CleanLauncher())
        api.then(Stall())
        turn = asyncio.create_task(EngineHarness(Shared(engine)).turn())
        await asyncio.sleep(0)
        assert engine.active_programs == 0

        await api.wait_for_requests(1)
        assert engine.active_programs == 1

        turn.cancel()
        await ends_soon(turn)
        assert engine.active_programs == 0
        await engine.close()


async def test_a_program_that_does_not_start_is_never_active(tmp_path: Path) -> None:
    engine = make_engine(tmp_path, "http://127.0.0.1:9", BrokenLauncher())

    with pytest.raises(OSError, match="must not be written"):
        await EngineHarness(Shared(engine)).turn()

    assert engine.active_programs == 0
    await engine.close()
