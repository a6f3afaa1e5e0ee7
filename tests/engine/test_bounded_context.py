"""Requests for recurring work stay bounded, however often it has run."""

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
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.engine.openai import OpenAIEngine
from backburner.process.launcher import CleanLauncher
from backburner.runs.prepare import SESSION_RENEWED

#: In tokens; reached after a few runs, again and again.
SHORT = 4_000
NEVER_REACHED = 10**9
STALL = timedelta(seconds=20)
MAX_GROWTH = 1.2


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
    model = ClaudeModel(name="claude-sonnet-4-5", address=api.address, headers={}, stall=STALL)
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

    assert work.growth <= MAX_GROWTH
    assert [run.status for run in stage.history(task)] == [RunStatus.SUCCESS] * runs
    # Each run found the count of the one before, also after its session was renewed.
    assert stage.load(task).state.data == {"count": runs}
    assert stage.tools.count("look") == runs
    assert len(work.sessions) > 2
    assert [(one.role, one.content) for one in stage.messages(task)] == [
        (MessageRole.SYSTEM, SESSION_RENEWED)
    ]


@requirement("Z-context")
async def test_requests_of_openai_runs_do_not_grow(
    openai: OpenAIEngine, api: ModelApi, tmp_path: Path
) -> None:
    clock = SetClock()
    with work_stage(openai, tmp_path, clock, context=SHORT) as stage:
        await stay_within_bounds(SteadyWork(stage, api, clock), 20)


@requirement("Z-context")
async def test_requests_of_claude_code_runs_do_not_grow(
    claude: ClaudeEngine, api: ModelApi, tmp_path: Path
) -> None:
    clock = SetClock()
    with work_stage(claude, tmp_path, clock, context=SHORT) as stage:
        await stay_within_bounds(SteadyWork(stage, api, clock), 10)


async def test_requests_without_a_session_limit_would_grow(
    openai: OpenAIEngine, api: ModelApi, tmp_path: Path
) -> None:
    clock = SetClock()
    with work_stage(openai, tmp_path, clock, context=NEVER_REACHED) as stage:
        work = SteadyWork(stage, api, clock)
        task = await work.run(12)

        assert stage.said(task) == []
    assert work.growth > MAX_GROWTH
