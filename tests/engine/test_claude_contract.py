"""The Claude engine, with the real program from the SDK, keeps the engine contract."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest
from support.contracts.engine import OF_ANY_ENGINE, WITH_MODEL, Promise
from support.contracts.engine.harness import STALL_LIMIT
from support.model_api import ModelApi

from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.process.launcher import CleanLauncher

PROMISES = OF_ANY_ENGINE | WITH_MODEL


@dataclass
class Claude:
    api: ModelApi
    folder: Path
    model: str = "claude-sonnet-5-5"
    made: list[ClaudeEngine] = field(default_factory=list)

    def engine(self, *, stall: timedelta = STALL_LIMIT) -> ClaudeEngine:
        engine = ClaudeEngine(
            ClaudeModel(
                name=self.model,
                address=self.api.address,
                headers={"x-api-key": "secret"},
                stall=stall,
            ),
            launcher=CleanLauncher(),
            homes=self.folder / "homes",
            workspace=lambda user: self.folder / "workspaces" / user,
            warm=0,
        )
        self.made.append(engine)
        return engine


@pytest.fixture
async def claude(tmp_path: Path) -> AsyncIterator[Claude]:
    async with ModelApi() as api:
        subject = Claude(api, tmp_path)
        yield subject
        for engine in subject.made:
            await engine.close()
    assert list((tmp_path / "homes").iterdir()) == []


@pytest.mark.parametrize("promise", PROMISES.values(), ids=PROMISES)
async def test_the_claude_engine_promises_that(claude: Claude, promise: Promise) -> None:
    await promise(claude)
