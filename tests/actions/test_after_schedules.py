"""Work that comes after other work begins when that has ended, and no chain leads back."""

import pytest
from support.doubles.engine import End, Fail
from support.requirements import requirement
from support.stage.either import database, one_sqlite
from support.stage.make import MATE, USER
from support.stage.stage import Stage, prompts

from backburner.actions import conversations, schedules
from backburner.actions.after_schedules import MAX_CHAIN_LENGTH
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control, tasks
from backburner.actions.work.tasks import NewTask
from backburner.core.conversation import Conversation, EndedAs, PauseReason, Status
from backburner.core.errors import BadSchedule, Conflict, EngineFailed, NotFound
from backburner.core.run import RunStatus
from backburner.core.schedule import After, AfterCondition, Cron

__all__ = ["database", "one_sqlite"]

#: Its next time is never while a test runs.
MONDAYS = "every monday at 3:33"
BROKEN = Fail(EngineFailed("Broken.", permanent=True))


async def make(stage: Stage, name: str, **when: str | AfterCondition) -> Conversation:
    stage.user()
    times = when or {"phrase": MONDAYS}
    new = NewTask(name=name, prompt=f"Do {name}.", timing=Timing(**times))  # type: ignore[arg-type]
    return (await tasks.add(stage.deps, Origin.by_user(USER), new)).work


async def once_later(stage: Stage, name: str) -> Conversation:
    return await make(stage, name, phrase="in 5 days")


async def run(stage: Stage, task: Conversation) -> None:
    await control.run_now(stage.deps, Origin.by_user(task.user_id), task.id)
    await stage.work()


def runs(stage: Stage, task: Conversation) -> int:
    return len([one for one in stage.history(task) if one.status is not RunStatus.SKIPPED])


@requirement("B-chaining")
async def test_what_comes_after_one_time_work_is_done_once(stage: Stage) -> None:
    first = await once_later(stage, "build")
    then = await make(stage, "deploy", after="build")
    last = await make(stage, "tell", after=then.id)
    assert then.schedule == After(first.id, AfterCondition.SUCCESS, once=True)
    await stage.work()
    assert runs(stage, then) == 0

    await run(stage, first)

    assert [stage.load(task).ended_as for task in (first, then, last)] == [EndedAs.COMPLETED] * 3
    assert "Do deploy." in prompts(stage.engine, then.id)[0]
    assert [runs(stage, task) for task in (first, then, last)] == [1, 1, 1]


@requirement("B-chaining")
async def test_what_comes_after_recurring_work_is_done_every_time(stage: Stage) -> None:
    first = await make(stage, "build")
    then = await make(stage, "deploy", after="build")
    assert then.schedule == After(first.id, AfterCondition.SUCCESS, once=False)
    await run(stage, first)
    await run(stage, first)

    assert runs(stage, then) == 2
    assert stage.load(then).status is Status.BACKGROUND


@requirement("B-chaining")
@pytest.mark.parametrize(("on", "count"), [(AfterCondition.SUCCESS, 0), (AfterCondition.ANY, 1)])
async def test_an_error_starts_only_what_comes_after_any_end(
    stage: Stage, on: AfterCondition, count: int
) -> None:
    first = await once_later(stage, "build")
    then = await make(stage, "deploy", after="build", on=on)
    stage.engine.then(BROKEN)
    await run(stage, first)

    assert stage.load(first).ended_as is EndedAs.ERROR
    assert runs(stage, then) == count


@requirement("B-chaining")
@pytest.mark.parametrize(("on", "count"), [(AfterCondition.SUCCESS, 0), (AfterCondition.ANY, 1)])
async def test_so_does_a_pause_for_failures(stage: Stage, on: AfterCondition, count: int) -> None:
    first = await make(stage, "build")
    then = await make(stage, "deploy", after="build", on=on)
    for _ in range(2):
        stage.engine.then(Fail(EngineFailed("Broken.")))
        await run(stage, first)

    assert stage.load(first).pause_reason is PauseReason.FAILURES
    assert runs(stage, then) == count


@requirement("B-chaining")
@pytest.mark.parametrize(("on", "count"), [(AfterCondition.SUCCESS, 0), (AfterCondition.ANY, 1)])
async def test_so_does_stopped_work(stage: Stage, on: AfterCondition, count: int) -> None:
    first = await make(stage, "build")
    then = await make(stage, "deploy", after="build", on=on)
    await control.cancel(stage.deps, Origin.by_user(USER), first.id)
    await stage.work()

    assert runs(stage, then) == count
    assert stage.load(then).pause_reason is None


@requirement("B-chaining")
async def test_a_cancelled_task_starts_what_comes_after_any_end_for_the_last_time(
    stage: Stage,
) -> None:
    first = await make(stage, "build")
    hopeful = await make(stage, "deploy", after="build")
    then = await make(stage, "tell", after="build", on=AfterCondition.ANY)
    await control.cancel_and_archive(stage.deps, Origin.by_user(USER), first.id)
    await stage.work()

    assert (runs(stage, then), stage.load(then).ended_as) == (1, EndedAs.COMPLETED)
    assert (runs(stage, hopeful), stage.load(hopeful).pause_reason) == (0, PauseReason.USER)


@requirement("B-chaining")
@pytest.mark.parametrize("goes", ["archived", "deleted"])
async def test_what_comes_after_something_gone_pauses_and_says_so(stage: Stage, goes: str) -> None:
    first = await make(stage, "build")
    then = await make(stage, "deploy", after="build", on=AfterCondition.ANY)
    if goes == "archived":
        await conversations.archive(stage.deps, USER, first.id)
    else:
        await conversations.delete(stage.deps, USER, first.id)
    await stage.work()

    told = "The work is paused: the work it was scheduled after no longer exists."
    assert stage.load(then).pause_reason is PauseReason.USER
    assert stage.said(then) == [told]
    assert stage.notices() == [told]
    assert runs(stage, then) == 0
    with pytest.raises(Conflict, match="no longer exists"):
        await control.resume(stage.deps, Origin.by_user(USER), then.id)


@requirement("B-chaining")
async def test_a_chain_that_leads_back_is_refused_in_words(stage: Stage) -> None:
    first = await make(stage, "build")
    then = await make(stage, "deploy", after="build")
    last = await make(stage, "tell", after="deploy")
    back = Timing(structured={"type": "after", "conversation": last.id})

    with pytest.raises(BadSchedule) as refused:
        await schedules.set_schedule(stage.deps, USER, first.id, back)
    assert refused.value.message == (
        "This would never start: 'tell' runs after 'deploy', which would run after it."
    )
    itself = Timing(after="build")
    with pytest.raises(BadSchedule, match="cannot run after itself"):
        await schedules.set_schedule(stage.deps, USER, first.id, itself)
    assert stage.load(first) == first
    assert isinstance(stage.load(then).schedule, After)


async def test_a_chain_has_an_end(stage: Stage) -> None:
    before = await make(stage, "0")
    for number in range(1, MAX_CHAIN_LENGTH):
        # Paused, they take no room.
        before = await make(stage, f"n{number}", after=before.id)
        await control.pause(stage.deps, Origin.by_user(USER), before.id)
    with pytest.raises(BadSchedule, match="20 tasks in a chain"):
        await make(stage, "one more", after=(await make(stage, "last", after=before.id)).id)


async def test_nothing_comes_after_what_has_no_work_or_is_somebody_elses(stage: Stage) -> None:
    chat, theirs = await stage.chat(), await stage.task(Cron("33 3 * * 1", "UTC"), user=MATE)
    gone = await make(stage, "build")
    await conversations.archive(stage.deps, USER, gone.id)
    for which, error in ((chat, Conflict), (gone, Conflict), (theirs, NotFound)):
        after = {"type": "after", "conversation": which.id}
        new = NewTask(name="deploy", prompt="Deploy.", timing=Timing(structured=after))
        with pytest.raises(error):
            await tasks.add(stage.deps, Origin.by_user(USER), new)


async def test_work_that_had_nothing_to_say_is_followed_all_the_same(
    stage: Stage,
) -> None:
    first = await make(stage, "build")
    then = await make(stage, "deploy", after="build")
    stage.engine.then(End({"complete": True}))
    await run(stage, first)

    assert runs(stage, then) == 1


async def test_work_after_other_work_can_be_previewed(stage: Stage) -> None:
    first = await make(stage, "first")

    previewed = await schedules.preview(stage.deps, USER, Timing(after="first"))

    assert previewed.schedule == After(first.id)
    assert previewed.times == ()
