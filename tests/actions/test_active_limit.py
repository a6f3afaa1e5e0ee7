"""A user has so many active tasks and no more, whichever way work begins."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from datetime import timedelta

import pytest
from support.doubles.engine import ScriptedEngine
from support.requirements import requirement
from support.stage.either import database, one_sqlite
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions import create, questions, schedules
from backburner.actions.deps import Limits
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, tasks
from backburner.actions.work.tasks import NewTask, add
from backburner.bus.local import LocalBus
from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import BadSchedule, LimitReached
from backburner.core.ids import new_conversation_id
from backburner.core.schedule import Cron
from backburner.core.transitions import Brief
from backburner.ports import Tx
from backburner.store.db import Database

__all__ = ["database", "one_sqlite"]

MONDAYS = Cron("33 3 * * 1", "UTC")
LATER = Timing("every monday at 3:33")
LIMIT = 3


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine(), limits=Limits(max_tasks=LIMIT))


async def fill(stage: Stage) -> list[Conversation]:
    """Let there be as many active tasks as there may be, one of them the work of a chat."""
    chat = await stage.chat()
    made = [await stage.task(MONDAYS, title=f"task {number}") for number in range(LIMIT - 1)]
    await schedules.set_schedule(stage.deps, USER, chat.id, LATER, prompt="Look.")
    return [*made, chat]


async def by_start(stage: Stage) -> None:
    await stage.task(MONDAYS)


async def by_api(stage: Stage) -> None:
    new = NewTask(name="new", prompt="Look.", timing=LATER)
    await tasks.add(stage.deps, Origin.by_user(USER), new)


async def by_tool(stage: Stage) -> None:
    chat = await stage.chat()
    new = NewTask(name="new", prompt="Look.", timing=LATER)
    await add(stage.deps, Origin(USER, chat.id), new)


async def by_schedule(stage: Stage) -> None:
    chat = await stage.chat()
    await schedules.set_schedule(stage.deps, USER, chat.id, LATER, prompt="Look.")


WAYS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    "start": by_start,
    "API": by_api,
    "tool": by_tool,
    "schedule": by_schedule,
}


@requirement("B-limit")
@pytest.mark.parametrize("way", WAYS)
async def test_one_task_more_is_refused_with_those_that_could_be_stopped(
    stage: Stage, way: str
) -> None:
    full = await fill(stage)
    with pytest.raises(LimitReached, match="Limit reached: 3 active tasks") as refused:
        await WAYS[way](stage)
    assert "Pause or cancel one first: " in refused.value.hint
    assert "task 0" in refused.value.hint
    assert full[-1].id in refused.value.hint

    await control.cancel_and_archive(stage.deps, Origin.by_user(USER), full[0].id)
    await WAYS[way](stage)
    assert len(stage.database.run(lambda tx: tx.tasks.active(USER))) == LIMIT


@requirement("B-limit")
async def test_paused_work_is_resumed_only_if_there_is_room(stage: Stage) -> None:
    paused = await stage.task(MONDAYS, title="paused")
    await control.pause(stage.deps, Origin.by_user(USER), paused.id)
    full = await fill(stage)
    chat = full[-1]
    for resuming in (
        control.resume(stage.deps, Origin.by_user(USER), paused.id),
        control.resume(stage.deps, Origin.by_user(USER), paused.id, task_only=True),
        control.resume(stage.deps, Origin(USER, chat.id), "paused"),
        schedules.set_schedule(stage.deps, USER, paused.id, LATER),
    ):
        with pytest.raises(LimitReached):
            await resuming

    await control.pause(stage.deps, Origin.by_user(USER), full[0].id)
    await control.resume(stage.deps, Origin.by_user(USER), paused.id)


@requirement("B-limit")
async def test_a_proposal_takes_no_room_before_it_is_approved(stage: Stage) -> None:
    full = await fill(stage)
    new = NewTask(name="new", prompt="Look.", timing=LATER)
    made = await add(stage.deps, Origin(USER, full[-1].id), new, proposed_because="It helps.")
    asked = stage.question(made.work)
    with pytest.raises(LimitReached):
        await tasks.approve(stage.deps, USER, made.work.id)
    with pytest.raises(LimitReached):
        await questions.answer(stage.deps, USER, asked.id, "yes")
    assert stage.question(made.work) == asked

    await control.cancel(stage.deps, Origin.by_user(USER), full[0].id)
    await tasks.approve(stage.deps, USER, made.work.id)


def hand_out(stage: Stage) -> None:
    brief = Brief(title="job", prompt="Look.", schedule=MONDAYS)
    which = new_conversation_id()
    stage.database.run(
        lambda tx: tx.conversations.add(transitions.start_job(which, USER, brief, now=tx.now))
    )


@requirement("B-limit")
async def test_jobs_and_the_tasks_of_others_take_no_room(stage: Stage) -> None:
    await stage.task(MONDAYS, user=MATE)
    stage.user()
    for _ in range(LIMIT):
        hand_out(stage)
    assert len(await fill(stage)) == LIMIT


async def test_active_tasks_can_be_rescheduled_at_the_limit(stage: Stage) -> None:
    full = await fill(stage)
    for task in full:
        await schedules.set_schedule(stage.deps, USER, task.id, Timing("every tuesday at 3:33"))

    assert [stage.load(task).schedule for task in full] == [Cron("33 3 * * 2", "UTC")] * LIMIT


async def test_work_that_stands_still_for_an_allowance_keeps_its_room(stage: Stage) -> None:
    full = await fill(stage)
    stage.database.run(
        lambda tx: tx.conversations.save(
            transitions.pause_for_allowance(tx.conversations.lock(USER, full[0].id))
        )
    )
    with pytest.raises(LimitReached):
        await stage.task(MONDAYS)


@pytest.mark.parametrize("way", WAYS)
async def test_two_at_once_do_not_both_get_the_last_place(stage: Stage, way: str) -> None:
    await stage.task(MONDAYS)
    await stage.task(MONDAYS)
    loop, others = asyncio.get_running_loop(), list[Future[None]]()

    def work(tx: Tx) -> None:
        tx.users.lock(USER)
        brief = Brief(title="last", prompt="Look.", schedule=MONDAYS)
        create.start(tx, stage.deps, Origin.by_user(USER), new_conversation_id(), brief)
        others.append(asyncio.run_coroutine_threadsafe(_go(way, stage), loop))
        # As long as this is not committed, nobody else can know that it is there.
        with pytest.raises(TimeoutError):
            others[0].result(timeout=0.3)

    await asyncio.to_thread(stage.database.run, work)

    with pytest.raises(LimitReached):
        await asyncio.wrap_future(others[0])


async def _go(way: str, stage: Stage) -> None:
    await WAYS[way](stage)


async def test_work_with_a_real_model_does_not_run_every_few_seconds(database: Database) -> None:
    limits = Limits(min_interval=timedelta(minutes=1))
    stage = Stage(database, LocalBus(), ScriptedEngine(), limits=limits)
    often, seldom = Timing(interval="59s"), Timing(interval="60s")
    chat = await stage.chat()
    for attempt in (
        lambda: schedules.set_schedule(stage.deps, USER, chat.id, often, prompt="Look."),
        lambda: tasks.add(
            stage.deps, Origin.by_user(USER), NewTask(name="new", prompt="Look.", timing=often)
        ),
    ):
        with pytest.raises(BadSchedule, match="every 60 seconds at most"):
            await attempt()

    await schedules.set_schedule(stage.deps, USER, chat.id, seldom, prompt="Look.")
    with pytest.raises(BadSchedule):
        await schedules.set_schedule(stage.deps, USER, chat.id, often)
    demo = Stage(
        database,
        LocalBus(),
        ScriptedEngine(),
        limits=limits,
        injection_proof=frozenset({"scripted"}),
    )
    await schedules.set_schedule(demo.deps, USER, chat.id, often)
