"""Work that a reply has set up is stopped when the message that it answers is replaced."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Call, End, Fail, Say, Step, Wait
from support.people.task_calls import add, propose
from support.people.tool_calls import (
    STRETCH,
    WATCH,
    ask,
    call,
    children,
    reply_turn,
    schedule,
    set_up,
)
from support.stage.stage import LEASE, Stage

from backburner.actions import chat, schedules
from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work import control
from backburner.actions.work.control import TaskChanges
from backburner.core.conversation import Conversation, EndedAs, Status
from backburner.core.errors import Conflict, EngineFailed
from backburner.core.run import RunStatus
from backburner.core.schedule import Interval
from backburner.store.db import Database

MINUTE = timedelta(minutes=1)
OTHER = {**STRETCH, "when": "in 40 seconds"}
SEPARATE = {**STRETCH, "separate": True}
JOB = Call("background_task", {"description": "Gold", "prompt": "Find gold."})
HOURLY = {**SEPARATE, "when": "every 1h"}
STOPPED = "Stopped “Stretch”: the message that asked for it was changed."


@pytest.fixture
def stage(database: Database) -> Stage:
    return set_up(database)


async def edit(stage: Stage, here: Conversation, text: str = "Rather later.") -> None:
    await chat.edit_last(stage.deps, here.user_id, here.id, text)


async def begin(stage: Stage, here: Conversation, *steps: Step) -> None:
    """Let a reply make its calls until it waits."""
    begun = asyncio.Event()
    stage.engine.then_as(lambda _: _until_it_waits(steps, begun))
    await stage.say(here, "Please.")
    await stage.take_up()
    async with asyncio.timeout(5):
        await begun.wait()


def _until_it_waits(steps: Sequence[Step], begun: asyncio.Event) -> Iterator[Step]:
    for step in steps:
        if isinstance(step, Wait):
            begun.set()
        yield step


async def test_the_own_work_of_a_replaced_reply_is_stopped(stage: Stage) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**STRETCH))
    stage.engine.then(schedule(**OTHER), Say("Done."))

    await edit(stage, here)

    between = stage.load(here)
    assert (between.schedule, between.ended_as) == (None, EndedAs.CANCELLED)
    await stage.work()
    assert children(stage, here) == []
    assert stage.load(here).status is Status.BACKGROUND
    assert stage.said(here) == [
        "Stopped “Remind the user to stretch”: the message that asked for it was changed.",
        "Rather later.",
        "Done.",
    ]


async def test_tasks_and_jobs_of_a_replaced_reply_are_stopped_and_archived(stage: Stage) -> None:
    here = await stage.chat()
    stage.engine.then(schedule(**SEPARATE), JOB, Say("Done."))
    await stage.say(here, "Please.")
    await stage.take_up()
    await stage.idle()

    await edit(stage, here)

    task, job = children(stage, here)
    for child in (task, job):
        assert (child.status, child.ended_as) == (Status.ARCHIVED, EndedAs.CANCELLED)
        said = "It was cancelled: the message that asked for it was changed."
        assert stage.said(child)[-1] == said
    assert stage.said(here)[0] == (
        f"Stopped “Stretch” and “{job.title}”: the message that asked for them was changed."
    )


async def test_a_message_that_is_sent_again_leaves_one_piece_of_work(stage: Stage) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**SEPARATE))
    for _ in range(2):
        stage.engine.then(schedule(**SEPARATE), Say("Done."))
        await edit(stage, here, "Please.")
        await stage.work()

    assert [child.status for child in children(stage, here)] == [
        Status.ARCHIVED,
        Status.ARCHIVED,
        Status.BACKGROUND,
    ]
    note = "Stopped “Stretch”: the message that asked for it was sent again."
    assert stage.said(here) == [note, note, "Please.", "Done."]


async def test_older_work_stays_whatever_the_replaced_reply_made_of_it(
    stage: Stage, clock: SetClock
) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**WATCH), schedule(**SEPARATE))
    clock.advance(timedelta(seconds=1))
    await ask(stage, here, schedule(**OTHER, change="Stretch"))

    await edit(stage, here)

    (child,) = children(stage, here)
    assert (child.status, child.set_up_by) == (Status.BACKGROUND, None)
    assert stage.load(here).status is Status.BACKGROUND
    assert stage.said(here) == ["Please.", "Done.", "Rather later."]


async def test_work_that_its_user_changed_or_made_stays(stage: Stage, clock: SetClock) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**WATCH), schedule(**SEPARATE))
    (child,) = children(stage, here)
    by_user = Origin.by_user(here.user_id)
    renamed = TaskChanges(terms=lambda terms: replace(terms, title="Bend"))
    await control.update(stage.deps, by_user, child.id, renamed)
    own = await stage.task(Interval(MINUTE, clock.now), parent_id=here.id)
    await schedules.set_schedule(stage.deps, here.user_id, here.id, Timing(interval="1h"))

    await edit(stage, here)

    for kept in (here, child, own):
        assert stage.load(kept).schedule is not None
    assert stage.said(here) == ["Rather later."]


async def test_an_open_proposal_of_a_replaced_reply_is_withdrawn_and_an_approved_one_stays(
    stage: Stage,
) -> None:
    here = await stage.chat()
    await ask(stage, here, *(propose(name=name, prompt=name) for name in ("bread", "milk")))
    bread, milk = children(stage, here)
    await stage.answer(bread, "yes")

    await edit(stage, here)

    assert stage.load(bread).status is Status.BACKGROUND
    withdrawn = stage.load(milk)
    assert (withdrawn.status, withdrawn.questions) == (Status.ARCHIVED, ())
    assert stage.said(here)[0] == STOPPED.replace("Stretch", "milk")


async def test_work_that_has_run_is_stopped_and_keeps_what_it_did(
    stage: Stage, clock: SetClock
) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**HOURLY))
    (child,) = children(stage, here)
    stage.engine.then(End({"continue": True, "message": "Stretch!"}))
    clock.advance(60 * MINUTE)
    await stage.work()
    assert "Stretch!" in stage.said(child)

    await edit(stage, here)

    assert stage.load(child).status is Status.ARCHIVED
    assert "Stretch!" in stage.said(child)


async def test_work_that_is_over_is_left_as_it_is(stage: Stage, clock: SetClock) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**SEPARATE))
    (child,) = children(stage, here)
    stage.engine.then(End({"complete": True, "message": "Stretch!"}))
    clock.advance(MINUTE)
    await stage.work()

    await edit(stage, here)

    now = stage.load(child)
    assert (now.status, now.ended_as) == (Status.ACTIVE, EndedAs.COMPLETED)


async def test_a_question_of_stopped_work_is_withdrawn(stage: Stage) -> None:
    here = await stage.chat()
    stage.engine.then(schedule(what="Look.", when="now"), Say("Done."))
    await stage.say(here, "Please.")
    question = {"type": "confirmation", "prompt": "Really?"}
    stage.engine.then(End({"needs_input": True, "message": "Hm.", "question": question}))
    await stage.work()
    assert stage.load(here).status is Status.WAITING_INPUT

    await edit(stage, here)

    now = stage.load(here)
    assert (now.status, now.questions, now.schedule) == (Status.ACTIVE, (), None)


async def test_an_edit_during_the_reply_stops_what_it_has_set_up_and_what_it_would(
    stage: Stage,
) -> None:
    waits, here = asyncio.Event(), await stage.chat()
    await begin(stage, here, schedule(**SEPARATE), Wait(waits), schedule(**SEPARATE))

    await edit(stage, here)
    # It has not heard yet that it is to stop.
    waits.set()
    await stage.idle()
    await stage.work()

    (child,) = children(stage, here)
    assert child.status is Status.ARCHIVED
    assert stage.said(here)[:2] == [STOPPED, "Rather later."]
    assert not any("had made these calls" in text for text in stage.said(here))


@pytest.mark.parametrize("arguments", [STRETCH, SEPARATE], ids=["own work", "task"])
async def test_a_reply_that_failed_half_way_is_given_again_with_one_piece_of_work(
    stage: Stage, arguments: dict[str, object]
) -> None:
    here = await stage.chat()
    stage.engine.then(schedule(**arguments), Fail(EngineFailed("It broke.", permanent=True)))
    await stage.say(here, "Please.")
    await stage.work()
    assert stage.history(here)[0].status is RunStatus.FAILURE

    stage.engine.then(schedule(**arguments), Say("Done."))
    await edit(stage, here, "Please.")
    await stage.work()

    found = [one for one in (stage.load(here), *children(stage, here)) if one.schedule is not None]
    assert len(found) == 1
    assert "Undone" not in stage.engine.requests[-1].prompt


async def test_a_reply_that_crashed_keeps_its_work_for_the_next_attempt(
    stage: Stage, clock: SetClock
) -> None:
    here = await stage.chat()
    await begin(stage, here, schedule(**HOURLY), Wait())
    stage.kill()
    clock.advance(2 * LEASE)
    await stage.rescuer.run_once()
    stage.engine.then(schedule(**HOURLY), Say("Done."))
    await stage.take_up()
    await stage.idle()
    (child,) = children(stage, here)
    assert child.status is Status.BACKGROUND

    await edit(stage, here)

    assert stage.load(child).status is Status.ARCHIVED


async def test_a_refused_edit_stops_nothing(stage: Stage) -> None:
    here = await stage.chat()
    await ask(stage, here, schedule(**SEPARATE))
    first = stage.messages(here)[0].id
    await ask(stage, here, schedule(**SEPARATE))

    with pytest.raises(Conflict):
        await chat.edit_last(stage.deps, here.user_id, here.id, "No.", replaces=first)

    assert {child.status for child in children(stage, here)} == {Status.BACKGROUND}


@pytest.mark.parametrize(
    "made",
    [schedule(**STRETCH), schedule(**SEPARATE), add(), JOB],
    ids=["own work", "separate", "task", "job"],
)
async def test_a_call_under_way_during_an_edit_sets_up_nothing(stage: Stage, made: Call) -> None:
    here = await stage.chat()
    turn = await reply_turn(stage, here)
    await edit(stage, here)

    result = await call(stage, turn, made.tool, **made.arguments)

    assert result.text == "The user has stopped this run. Set up nothing more."
    assert (children(stage, here), stage.load(here).schedule) == ([], None)
