"""A task is seen before it runs, with what it is likely to cost, and tried without a trace."""

from datetime import timedelta

import pytest
from support.doubles.engine import MODEL, Call, End, ScriptedEngine, Spend, Wait
from support.requirements import requirement
from support.stage.make import MATE, USER
from support.stage.stage import PLACE, Stage, prompts

from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, preview, tasks
from backburner.actions.work.tasks import NewTask, add
from backburner.bus.local import LocalBus
from backburner.core.allowance import Amount, Price
from backburner.core.conversation import Conversation, Destination, EndedAs, Kind, Notify
from backburner.core.errors import Conflict, NotFound
from backburner.core.schedule import Cron
from backburner.core.transitions import TEST_RUN_BATCH
from backburner.core.work.views import TaskStatus, task_status
from backburner.store.db import Database

MONDAYS = Cron("33 3 * * 1", "UTC")
PRICES = {MODEL: Price(input=0, output=1_000_000)}


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine(), price_of=PRICES.get)


async def proposed(stage: Stage) -> Conversation:
    chat = await stage.chat()
    new = NewTask(name="watch", prompt="Look.", timing=Timing("every monday at 3:33"))
    made = await add(stage.deps, Origin(USER, chat.id), new, proposed_because="It helps.")
    return made.work


async def run(stage: Stage, task: Conversation, *tokens: int) -> None:
    for spent in tokens:
        stage.engine.then(Spend(spent), End({"complete": True}))
        await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
        await stage.work()


def children(stage: Stage, task: Conversation) -> list[Conversation]:
    user = task.user_id
    return stage.database.run(
        lambda tx: [
            tx.conversations.load(user, child) for child in tx.conversations.children(user, task.id)
        ]
    )


@requirement("B-tool-scope")
async def test_a_preview_shows_times_tools_and_recipients(stage: Stage) -> None:
    places = (Destination(PLACE, "me"),)
    task = await stage.task(MONDAYS, tools=("look",), reports_to=places)
    seen = await preview.preview(stage.deps, USER, task.id)

    assert len(seen.times) == 5
    assert [(time.weekday(), time.hour, time.minute) for time in seen.times] == [(0, 3, 33)] * 5
    assert (seen.task.tools, seen.task.reports_to) == (("look",), places)
    assert (seen.zone, seen.profile, seen.cost) == ("UTC", "scripted", None)


async def test_a_proposal_and_paused_work_show_when_they_would_run(stage: Stage) -> None:
    task = await proposed(stage)
    paused = await stage.task(MONDAYS)
    await control.pause(stage.deps, Origin.by_user(USER), paused.id)
    for one in (task, paused):
        assert len((await preview.preview(stage.deps, USER, one.id)).times) == 5
    await control.cancel(stage.deps, Origin.by_user(USER), paused.id)
    assert (await preview.preview(stage.deps, USER, paused.id)).times == ()


async def test_what_it_costs_is_learned_from_its_own_runs_else_from_others(stage: Stage) -> None:
    task, other = await stage.task(MONDAYS, max_runs=3), await stage.task(MONDAYS)
    theirs = await stage.task(MONDAYS, user=MATE)
    await run(stage, theirs, 1_000)
    assert (await preview.preview(stage.deps, USER, task.id)).cost is None

    await run(stage, other, 100)
    alike = (await preview.preview(stage.deps, USER, task.id)).cost
    await run(stage, task, 10, 30)
    own = (await preview.preview(stage.deps, USER, task.id)).cost

    assert alike is not None
    assert own is not None
    assert (alike.own, alike.runs, alike.per_run) == (False, 1, Amount(100, 100))
    assert alike.runs_per_month == 3
    assert (own.own, own.runs, own.per_run) == (True, 2, Amount(20, 20))
    assert (own.runs_per_month, own.per_month, own.priced) == (1, Amount(20, 20), True)


async def test_a_model_without_a_price_has_a_cost_in_tokens_only(database: Database) -> None:
    stage = Stage(database, LocalBus(), ScriptedEngine())
    task = await stage.task(MONDAYS)
    await run(stage, task, 10)
    seen = await preview.preview(stage.deps, USER, task.id)

    assert seen.cost is not None
    assert (seen.cost.priced, seen.cost.per_run) == (False, Amount(0, 10))


async def test_a_test_run_does_the_work_and_leaves_only_a_message(stage: Stage) -> None:
    task = await stage.task(
        MONDAYS, tools=("look",), run_timeout=timedelta(minutes=1), notify=Notify.ALWAYS
    )
    stage.engine.then(Call("look"), End({"complete": True, "message": "Green.", "result": "g"}))
    job = await preview.start_test_run(stage.deps, USER, task.id)
    with pytest.raises(Conflict, match="already running"):
        await preview.start_test_run(stage.deps, USER, task.id)
    await stage.work()

    (child,) = children(stage, task)
    assert (child.id, child.kind, child.batch) == (job.id, Kind.JOB, TEST_RUN_BATCH)
    assert (child.tools, child.run_timeout, child.profile) == (
        task.tools,
        task.run_timeout,
        task.profile,
    )
    (prompt,) = prompts(stage.engine, job.id)
    assert "Do it." in prompt
    # Nobody answers it, and of the task nothing has changed.
    assert len(stage.engine.requests) == 1
    (said,) = stage.said(task)
    assert said.startswith("Test run of Work: Green.")
    assert stage.load(task) == task
    assert (stage.history(task), stage.notices()) == ((), [])
    await preview.start_test_run(stage.deps, USER, task.id)


@requirement("B-propose")
async def test_a_proposal_is_tried_and_nothing_else_of_it_runs(stage: Stage) -> None:
    task = await proposed(stage)
    stage.engine.then(End({"complete": True, "message": "Green."}))
    await preview.start_test_run(stage.deps, USER, task.id)
    await stage.work()

    assert stage.said(task) == ["Test run of watch: Green."]
    assert task_status(stage.load(task)) is TaskStatus.PROPOSED
    assert stage.load(task) == task
    await tasks.approve(stage.deps, USER, task.id, shown=task.questions[0].id)


async def test_a_test_run_ends_with_its_task(stage: Stage) -> None:
    task = await stage.task(MONDAYS, title="watch")
    stage.engine.then(Wait())
    job = await preview.start_test_run(stage.deps, USER, task.id)
    await stage.take_up()
    await control.cancel_and_archive(stage.deps, Origin.by_user(USER), task.id)

    assert stage.load(job).schedule is None
    stage.kill()
    with pytest.raises(Conflict, match="archived"):
        await preview.start_test_run(stage.deps, USER, task.id)


async def test_a_test_run_ends_when_what_it_tries_is_rejected(stage: Stage) -> None:
    task = await proposed(stage)
    stage.engine.then(Wait())
    job = await preview.start_test_run(stage.deps, USER, task.id)
    await stage.take_up()
    await tasks.reject(stage.deps, USER, task.id)

    assert stage.load(job).ended_as is EndedAs.CANCELLED
    stage.kill()


async def test_what_is_no_task_or_somebody_elses_is_not_found(stage: Stage) -> None:
    chat, theirs = await stage.chat(), await stage.task(MONDAYS, user=MATE)
    for which in (chat, theirs):
        with pytest.raises(NotFound):
            await preview.preview(stage.deps, USER, which.id)
        with pytest.raises(NotFound):
            await preview.start_test_run(stage.deps, USER, which.id)
