"""Images in results, as Claude Code and its sessions have them."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.cases.images import png
from support.contracts.engine.harness import STALL_LIMIT, EngineHarness
from support.model_api import CallTool, ModelApi, Refuse, Say

from backburner.core.errors import EngineFailed, SessionGone
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.ports import Blob, ToolResult
from backburner.process.launcher import CleanLauncher

REFUSAL = Refuse(400, message="messages.1.content.0: Could not process image")
IMAGE = Blob(png(30, 20), "image/png", "a.png")


class Subject:
    def __init__(self, api: ModelApi, folder: Path) -> None:
        self.api = api
        self.model = "claude-sonnet-5-5"
        self._folder = folder
        self.made: list[ClaudeEngine] = []

    def engine(self, *, stall: timedelta = STALL_LIMIT) -> ClaudeEngine:
        engine = ClaudeEngine(
            ClaudeModel(
                name=self.model,
                address=self.api.address,
                headers={"x-api-key": "secret"},
                stall=stall,
            ),
            launcher=CleanLauncher(),
            homes=self._folder / "homes",
            workspace=lambda user: self._folder / user,
            warm=0,
        )
        self.made.append(engine)
        return engine


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[EngineHarness]:
    async with ModelApi() as api:
        subject = Subject(api, tmp_path)
        yield EngineHarness(subject)
        for engine in subject.made:
            await engine.close()


@pytest.fixture
def api(harness: EngineHarness) -> ModelApi:
    api: ModelApi = harness.subject.api  # type: ignore[attr-defined]  # Of a model.
    return api


async def test_a_session_that_the_model_refuses_for_an_image_is_replaced(
    harness: EngineHarness, api: ModelApi
) -> None:
    harness.gate.answers.append(ToolResult("Here.", blobs=(IMAGE,)))
    api.then(CallTool("look"))
    api.then(REFUSAL)
    with pytest.raises(EngineFailed) as failed:
        await harness.turn()
    assert not isinstance(failed.value, SessionGone), "Calls were made, and are not made again."

    api.then(REFUSAL)
    with pytest.raises(SessionGone):
        await harness.turn()


async def test_calls_of_a_turn_are_not_made_again_because_of_an_image(
    harness: EngineHarness, api: ModelApi
) -> None:
    await harness.turn()
    api.then(CallTool("send"), CallTool("look"))
    api.then(REFUSAL)
    harness.gate.answers += [ToolResult("Here.", blobs=(IMAGE,))] * 2

    with pytest.raises(EngineFailed) as failed:
        await harness.turn()

    assert not isinstance(failed.value, SessionGone)


async def test_a_session_has_each_image_once(harness: EngineHarness, api: ModelApi) -> None:
    harness.gate.answers.append(ToolResult("Here.", blobs=(IMAGE,)))
    api.then(CallTool("look"))
    api.then(Say("A small one."))
    await harness.turn()

    entries = [json.loads(text)[1] for text in harness.memory]
    (with_image,) = [entry for entry in entries if '"base64"' in json.dumps(entry)]
    assert json.dumps(with_image).count('"base64"') == 1
    assert (await harness.turn()).ended
