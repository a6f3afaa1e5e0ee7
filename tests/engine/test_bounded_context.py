"""What a model is sent for work that comes back stays within bounds, however often it came back."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.doubles.clock import SetClock
from support.model_api import ModelApi
from support.requirements import requirement
from support.stage.steady_work import SteadyWork, look_and_count, work_stage

from backburner.core.conversation import MessageRole
from backburner.core.run import RunStatus
from backburner.engine.claude.engine import ClaudeEngine, Model
from backburner.engine.openai import OpenAIEngine
from backburner.process.launcher import CleanLauncher
from backburner.runs.prepare import SESSION_RENEWED

#: In tokens; reached after a few runs, again and again.
SHORT = 4_000
NEVER_REACHED = 10**9
STALL = timedelta(seconds=20)
MOST_GROWTH = 1.2


@pytest.fixture
async def api() -> AsyncIterator[ModelApi]:
    async with ModelApi(otherwise=look_and_count) as api:
        yield api
        assert api.complaints == []


@pytest.fixture
async def openai(api: ModelApi) -> AsyncIterator[OpenAIEngine]:
    engine = OpenAIEngine(model="scripted", address=f"{api.address}/v1", stall=STALL)
    yield engine
    await engine.close()


@pytest.fixture
async def claude(api: ModelApi, tmp_path: Path) -> AsyncIterator[ClaudeEngine]:
    model = Model(name="claude-sonnet-4-5", address=api.address, headers={}, stall=STALL)
    engine = ClaudeEngine(
        model,
        launcher=CleanLauncher(),
        homes=tmp_path / "homes",
        workspace=lambda user: tmp_path / "workspaces" / user,
    )
    yield engine
    await engine.close()


async def stay_within_bounds(work: SteadyWork, runs: int) -> None:
    stage = work.stage

    task = await work.run(runs)

    assert work.growth <= MOST_GROWTH
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS] * runs
    # Each run found what the one before had counted, also where it remembered nothing else.
    assert stage.load(task).state.data == {"count": runs}
    assert stage.tools.count("look") == runs
    assert len(work.sessions) > 2
    assert [(one.role, one.content) for one in stage.messages(task)] == [
        (MessageRole.SYSTEM, SESSION_RENEWED)
    ]


@requirement("Z-context")
async def test_a_hundred_runs_ask_no_more_of_an_openai_model_than_the_first_did(
    openai: OpenAIEngine, api: ModelApi, tmp_path: Path
) -> None:
    clock = SetClock()
    with work_stage(openai, tmp_path, clock, context=SHORT) as stage:
        await stay_within_bounds(SteadyWork(stage, api, clock), 100)


@requirement("Z-context")
async def test_twenty_runs_of_claude_code_ask_no_more_of_the_model_than_the_first_did(
    claude: ClaudeEngine, api: ModelApi, tmp_path: Path
) -> None:
    clock = SetClock()
    with work_stage(claude, tmp_path, clock, context=SHORT) as stage:
        await stay_within_bounds(SteadyWork(stage, api, clock), 20)


async def test_without_a_limit_what_is_asked_would_grow(
    openai: OpenAIEngine, api: ModelApi, tmp_path: Path
) -> None:
    clock = SetClock()
    with work_stage(openai, tmp_path, clock, context=NEVER_REACHED) as stage:
        work = SteadyWork(stage, api, clock)
        task = await work.run(20)

        assert stage.said(task) == []
    assert work.growth > MOST_GROWTH
