"""Task tools act once, though an answer of the database is lost."""

from typing import Any

import pytest
from support.people.task_calls import WATCH, all_tasks, call
from support.people.tool_calls import reply_turn, set_up
from support.simulator.world import FlakyDatabase
from support.stage.stage import Stage

from backburner.actions.origin import Origin
from backburner.core.conversation import Conversation, PauseReason, Status
from backburner.core.run import RunKind

BREAKS = pytest.mark.parametrize("breaks", ["before", "after"])


async def begin(flaky: FlakyDatabase) -> tuple[Stage, Origin]:
    stage = set_up(flaky)
    return stage, Origin.of(await reply_turn(stage, await stage.chat()))


async def steer(
    flaky: FlakyDatabase, name: str, breaks: str, /, *before: str, **more: Any
) -> tuple[Stage, Conversation]:
    stage, origin = await begin(flaky)
    await call(stage, origin, "task_add", **WATCH)
    for earlier in before:
        await call(stage, origin, earlier, task="watch-ci-main")
    flaky.breaks = (breaks,)
    result = await call(stage, origin, name, task="watch-ci-main", **more)
    assert not result.failed, result.text
    (task,) = all_tasks(stage)
    return stage, task


@BREAKS
@pytest.mark.parametrize("name", ["task_add", "task_propose"])
async def test_a_task_is_created_once_after_a_lost_answer(
    flaky: FlakyDatabase, breaks: str, name: str
) -> None:
    stage, origin = await begin(flaky)
    flaky.breaks = (breaks,)
    why = {"why": "It helps."} if name == "task_propose" else {}
    result = await call(stage, origin, name, **WATCH, **why)

    assert not result.failed, result.text
    (task,) = all_tasks(stage)
    assert f"'watch-ci-main' ({task.id})" in result.text


@BREAKS
async def test_a_task_is_paused_once_after_a_lost_answer(flaky: FlakyDatabase, breaks: str) -> None:
    _, task = await steer(flaky, "task_pause", breaks)
    assert task.pause_reason is PauseReason.USER


@BREAKS
async def test_a_task_is_resumed_once_after_a_lost_answer(
    flaky: FlakyDatabase, breaks: str
) -> None:
    _, task = await steer(flaky, "task_resume", breaks, "task_pause")
    assert task.status is Status.BACKGROUND


@BREAKS
async def test_a_task_is_cancelled_once_after_a_lost_answer(
    flaky: FlakyDatabase, breaks: str
) -> None:
    stage, task = await steer(flaky, "task_cancel", breaks, reason="Enough.")
    assert task.status is Status.ARCHIVED
    assert stage.said(task) == ["It was cancelled: Enough."]


@BREAKS
async def test_a_task_is_run_once_after_a_lost_answer(flaky: FlakyDatabase, breaks: str) -> None:
    stage, task = await steer(flaky, "task_run_now", breaks)
    items = stage.database.run(
        lambda tx: tx.inbox.waiting(task.user_id, task.id, RunKind.BACKGROUND)
    )
    assert len(items) == 1


@BREAKS
async def test_a_task_is_changed_once_after_a_lost_answer(
    flaky: FlakyDatabase, breaks: str
) -> None:
    _, task = await steer(flaky, "task_update", breaks, name="ci")
    assert task.title == "ci"
