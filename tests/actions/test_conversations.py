"""What people do with background work, and what becomes of it."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End
from support.requirements import requirement
from support.stage.make import MATE, NOON, USER
from support.stage.stage import PLACE, Stage
from support.stage.until import until
from support.stage.work import set_schedule

from backburner.actions import conversations
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.core.conversation import Destination, EndedAs, Notify, PauseReason, State, Status
from backburner.core.errors import BadRequest, Conflict
from backburner.core.ids import UserId
from backburner.core.run import RunStatus, SkipReason
from backburner.core.schedule import After, Immediate, Interval
from backburner.core.work.views import TaskStatus, task_view
from backburner.store import tables
from backburner.worker.seats import Seats

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
EVERY_MINUTE = Interval(MINUTE, anchor=NOON)
TOLD = End({"complete": True, "message": "Found."})
#: Of five seats one is kept for chat.
AT_ONCE = 4


@requirement("A-pause")
async def test_paused_work_is_not_due_and_goes_on_from_when_it_is_resumed(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    await stage.work()
    await control.pause(stage.deps, Origin.by_user(task.user_id), task.id)
    clock.advance(10 * MINUTE + timedelta(seconds=30))
    await stage.work()
    assert len(stage.engine.requests) == 1
    assert stage.load(task).pause_reason is PauseReason.USER

    await control.resume(stage.deps, Origin.by_user(task.user_id), task.id)

    assert stage.load(task).next_run_at == NOON + 11 * MINUTE
    clock.advance(MINUTE)
    await stage.work()
    assert len(stage.engine.requests) == 2
    assert not [run for run in stage.history(task) if run.status is RunStatus.SKIPPED]


@requirement("B-run-now")
async def test_work_can_be_run_at_once_whatever_its_schedule_says(stage: Stage) -> None:
    task = await stage.task(Interval(DAY, anchor=NOON + DAY))
    await stage.work()
    assert stage.engine.requests == []

    await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
    await stage.work()

    assert "The user asked for a run now." in stage.engine.requests[0].prompt
    assert stage.load(task).next_run_at == NOON + DAY


@requirement("A-background", "A-active")
async def test_a_chat_that_is_given_a_schedule_works_in_the_background(
    stage: Stage, clock: SetClock
) -> None:
    here = await stage.chat()
    with pytest.raises(BadRequest):
        await set_schedule(stage.deps, here.user_id, here.id, EVERY_MINUTE)
    state = State(context={"prompt": "Watch the mail."})
    later = Interval(MINUTE, anchor=NOON + MINUTE)

    await set_schedule(stage.deps, here.user_id, here.id, later, state=state)
    clock.advance(MINUTE - timedelta(seconds=1))
    await stage.work()
    assert stage.engine.requests == []
    clock.advance(timedelta(seconds=1))
    await stage.work()

    assert "Watch the mail." in stage.engine.requests[0].prompt
    assert stage.load(here).status is Status.BACKGROUND


@requirement("A-after-complete")
async def test_one_time_work_that_has_completed_can_be_talked_to(stage: Stage) -> None:
    task = await stage.task()
    await stage.work()
    assert (stage.load(task).status, stage.load(task).ended_as) == (
        Status.ACTIVE,
        EndedAs.COMPLETED,
    )

    await stage.say(task, "And now?")
    await stage.work()

    assert stage.said(task) == ["Done.", "And now?", "Hello."]
    assert (stage.load(task).status, stage.load(task).ended_as) == (
        Status.ACTIVE,
        EndedAs.COMPLETED,
    )


@requirement("A-active")
async def test_nothing_starts_in_an_active_conversation_although_its_time_has_come(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    column = tables.conversations.c
    active = tables.conversations.update().where(column.id == task.id).values(status="active")
    stage.database.run(lambda tx: tx.connection.execute(active))
    clock.advance(MINUTE)

    await stage.work()

    assert (stage.load(task).next_run_at, stage.load(task).status) == (NOON, Status.ACTIVE)
    assert stage.engine.requests == []


@requirement("A-archived")
async def test_what_is_archived_is_never_taken_up_and_can_be_reopened(
    stage: Stage, clock: SetClock
) -> None:
    task = await stage.task(EVERY_MINUTE)
    await conversations.archive(stage.deps, task.user_id, task.id)
    clock.advance(MINUTE)
    await stage.work()
    assert stage.engine.requests == []
    assert stage.said(task) == ["Archived. Its background work was stopped."]
    with pytest.raises(Conflict):
        await stage.say(task, "Hello?")

    await conversations.reopen(stage.deps, task.user_id, task.id)
    await stage.say(task, "Hello?")
    await stage.work()

    assert stage.said(task)[-2:] == ["Hello?", "Hello."]


async def test_work_that_is_cancelled_is_over_and_the_conversation_stays(stage: Stage) -> None:
    task = await stage.task(EVERY_MINUTE)

    await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)

    assert stage.load(task).ended_as is EndedAs.CANCELLED
    with pytest.raises(Conflict):
        await control.cancel(stage.deps, Origin.by_user(task.user_id), task.id)


@requirement("Z-everything-off")
async def test_one_switch_lets_all_background_work_stand_still_and_chat_goes_on(
    stage: Stage,
) -> None:
    mine, theirs = await stage.task(), await stage.task(user=MATE)
    here = await stage.chat()
    await conversations.pause_everything(stage.deps, mine.user_id, paused=True)
    await stage.say(here, "Hello?")
    await stage.work()
    assert stage.said(here)[-1] == "Hello."
    assert not stage.history(mine)
    assert len(stage.history(theirs)) == 1
    await conversations.pause_everything(stage.deps, None, paused=True)
    other = await stage.task(user=MATE)
    await stage.work()
    assert not stage.history(other)

    await conversations.pause_everything(stage.deps, None, paused=False)
    await conversations.pause_everything(stage.deps, mine.user_id, paused=False)
    await stage.work()

    assert [len(stage.history(task)) for task in (mine, other)] == [1, 1]


@requirement("Z-honest", "B-runs")
async def test_after_forty_days_down_each_schedule_is_caught_up_with_once(
    set_up: Callable[..., Stage], clock: SetClock
) -> None:
    stage = set_up(otherwise=lambda _: (Call("look"),), seats=Seats(total=5))
    stage.tools.handlers["look"] = partial(wait_for_others, stage)
    make_fast(stage)
    tasks = [
        await stage.task(EVERY_MINUTE, user=UserId(f"u_{number % 25}")) for number in range(100)
    ]
    clock.advance(40 * DAY)

    await stage.work()

    assert stage.engine.most_underway == AT_ONCE
    for task in tasks:
        caught_up, gap = stage.history(task)
        assert (caught_up.status, gap.status) == (RunStatus.SUCCESS, RunStatus.SKIPPED)
        assert gap.skipped is not None
        assert (gap.skipped.reason, gap.skipped.gap.first_at) == (SkipReason.MISSED, NOON)
        assert caught_up.slot_at is not None
        assert gap.skipped.gap.last_at < caught_up.slot_at


async def wait_for_others(stage: Stage, arguments: object) -> str:
    """Take until as many work at once as may."""
    del arguments
    await until(lambda: stage.engine.most_underway >= AT_ONCE)
    return ""


def make_fast(stage: Stage) -> None:
    """Do without what a power failure would need."""
    with closing(stage.database.engine.raw_connection()) as connection:
        connection.cursor().execute("PRAGMA synchronous = OFF")


async def test_what_comes_after_other_work_begins_when_that_is_complete(stage: Stage) -> None:
    first = await stage.task(Interval(DAY, anchor=NOON + DAY))
    then = await stage.task(After(first.id))
    await stage.work()
    assert not stage.history(then)

    await control.run_now(stage.deps, Origin.by_user(first.user_id), first.id)
    await stage.work()

    assert [run.status for run in stage.history(then)] == [RunStatus.SUCCESS]


async def test_what_a_child_found_is_told_in_the_conversation_it_came_from(stage: Stage) -> None:
    here = await stage.chat()
    stage.engine.then(TOLD)
    await stage.task(parent_id=here.id)

    await stage.work()

    assert stage.said(here) == ["Work: Found."]


@requirement("B-notify")
@pytest.mark.parametrize(
    ("notify", "told"),
    [
        (Notify.ALWAYS, 3),
        (Notify.ON_CHANGE, 2),
        (Notify.ON_FAILURE, 0),
        (Notify.NEVER, 0),
    ],
)
async def test_results_are_told_as_somebody_wants_to_hear_of_them(
    stage: Stage, clock: SetClock, notify: Notify, told: int
) -> None:
    for found in ("one", "one", "two"):
        stage.engine.then(End({"complete": True, "message": f"Found {found}.", "result": found}))
    here = await stage.chat()
    place = (Destination(PLACE, "me"),)
    task = await stage.task(EVERY_MINUTE, notify=notify, reports_to=place, parent_id=here.id)
    for _ in range(3):
        await stage.work()
        clock.advance(MINUTE)
    while await stage.deliverer.run_once():
        pass

    assert len(stage.notices()) == told
    sent = [text for _, text, _ in stage.channel.sent]
    assert sent == [
        f"Work: {text}\n\nTo read on: `backburner conversations {task.id}`."
        for text in stage.notices()
    ]
    # The conversation it came from hears of the same results, and its own has all of them.
    assert stage.said(here) == [f"Work: {text}" for text in stage.notices()]
    assert stage.said(task) == ["Found one.", "Found one.", "Found two."]


@requirement("A-one-model")
async def test_a_chat_that_is_given_work_and_a_task_that_is_talked_to_are_one_and_the_same(
    stage: Stage,
) -> None:
    chat, task = await stage.chat(), await stage.task()
    state = State({"prompt": "Do it."})
    await set_schedule(stage.deps, USER, chat.id, Immediate(), state=state)
    await stage.say(task, "Hello?")

    await stage.work()

    for conversation in (chat, task):
        view = task_view(stage.load(conversation))
        assert view is not None
        assert (view.prompt, view.status) == ("Do it.", TaskStatus.DONE)
    assert stage.said(chat) == ["Done."]
    assert sorted(stage.said(task)) == ["Done.", "Hello.", "Hello?"]
    assert not {"tasks", "jobs", "proposals"} & set(tables.metadata.tables)
