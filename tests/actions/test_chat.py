"""Chat comes first, and nothing that is said is lost."""

import asyncio
from datetime import timedelta
from itertools import count

import pytest
from sqlalchemy import select
from support.doubles.clock import SetClock
from support.doubles.engine import AtOnce, Call, End, Say, Wait
from support.requirements import requirement
from support.stage.make import STRANGER
from support.stage.stage import LEASE, Stage, prompts

from backburner.actions import chat, conversations
from backburner.core.conversation import Status
from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.run import RunKind, RunStatus
from backburner.runs.stopping import StopReason
from backburner.store import tables
from backburner.worker.seats import Seats

MOMENT = timedelta(milliseconds=1)


async def test_what_is_said_is_stored_at_once(stage: Stage) -> None:
    chat_ = await stage.chat()

    await stage.say(chat_, "Hello?")

    assert stage.said(chat_) == ["Hello?"]
    assert stage.load(chat_).title == "Hello?"


async def test_a_second_message_during_a_reply_is_answered_by_the_next(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Call("slow"), Say("To one."))
    stage.engine.then(Say("To two and three."))
    here = await stage.chat()
    await stage.say(here, "One.")
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    for text in ("Two.", "Three."):
        clock.advance(MOMENT)
        await stage.say(here, text)
    stage.tools.let_go.set()
    await stage.idle()

    await stage.work()

    assert stage.said(here) == ["One.", "Two.", "Three.", "To one.", "To two and three."]
    assert len(stage.engine.requests) == 2
    assert "The user says: Two.\nThe user says: Three." in stage.engine.requests[1].prompt


@requirement("B-preempt", "Z-first")
async def test_work_makes_room_for_a_message_after_its_call_and_goes_on(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Call("slow"), Say("Never said."))
    stage.engine.then(Say("Yes?"))
    stage.engine.then(End({"complete": True, "message": "Done."}))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    clock.advance(MOMENT)
    await stage.say(task, "Are you there?")
    stage.only_run().stop.request(StopReason.USER_WAITING)
    await asyncio.sleep(0.3)
    assert len(stage.engine.requests) == 1
    stage.tools.let_go.set()

    await stage.idle()
    await stage.work()

    assert stage.said(task) == ["Are you there?", "Yes?", "Done."]
    work, reply, rest = stage.engine.requests
    assert (work.session_id, reply.session_id, rest.session_id) == (None, "session-1", "session-1")
    asked = "\n".join(prompts(stage.engine, task.id))
    assert asked.count("The user says: Are you there?") == 1
    assert "Continue your work from where you stopped" in rest.prompt
    assert [(run.kind, run.status) for run in stage.history(task)] == [
        (RunKind.REPLY, RunStatus.SUCCESS),
        (RunKind.BACKGROUND, RunStatus.SUCCESS),
    ]
    assert stage.tools.count("slow") == 1


async def test_work_with_several_calls_under_way_makes_room_after_the_last(stage: Stage) -> None:
    stage.engine.then(AtOnce(Call("look"), Call("slow")), Say("Never said."))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await stage.say(task, "Are you there?")
    stage.only_run().stop.request(StopReason.USER_WAITING)
    await asyncio.sleep(0.5)
    assert stage.engine.underway == 1
    stage.tools.let_go.set()

    await stage.idle()
    await stage.work()

    assert stage.said(task) == ["Are you there?", "Hello.", "Done."]
    assert stage.load(task).questions == ()


async def test_an_agent_that_comes_to_no_call_is_interrupted(stage: Stage) -> None:
    stage.engine.then(Say("Let me think"), Wait())
    task = await stage.task()
    await stage.take_up()
    await stage.say(task, "Are you there?")
    stage.only_run().stop.request(StopReason.USER_WAITING)

    await stage.idle()
    await stage.work()

    assert stage.said(task) == ["Are you there?", "Hello.", "Done."]


async def test_an_agent_that_talks_for_ever_is_interrupted(stage: Stage) -> None:
    stage.engine.then_as(lambda _: (Say("and ") for _ in count()))
    task = await stage.task()
    await stage.take_up()
    await stage.say(task, "Are you there?")
    stage.only_run().stop.request(StopReason.USER_WAITING)

    await stage.idle()
    await stage.work()

    assert stage.said(task) == ["Are you there?", "Hello.", "Done."]


@requirement("B-single")
async def test_work_elsewhere_makes_room_where_it_has_the_only_seat(set_up: object) -> None:
    seats = Seats(total=5, per_profile={"scripted": 1}, default_profile="scripted")
    stage: Stage = set_up(seats=seats)  # type: ignore[operator]
    stage.engine.then(Call("slow"))
    task = await stage.task()
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await stage.task()
    await stage.take_up()
    assert len(stage.underway) == 1
    here = await stage.chat()
    await stage.say(here, "Hello?")

    await stage.take_up()
    stage.tools.let_go.set()
    await stage.idle()
    await stage.work()

    assert stage.said(here) == ["Hello?", "Hello."]
    assert [request.conversation.id for request in stage.engine.requests][:2] == [task.id, here.id]
    assert stage.load(task).status is Status.ACTIVE
    assert stage.engine.most_underway == 1


@requirement("Z-inbox")
async def test_a_reply_that_died_with_its_process_is_given_again(
    stage: Stage, clock: SetClock
) -> None:
    stage.engine.then(Say("Part of it"), Wait())
    here = await stage.chat()
    await stage.say(here, "Hello?")
    await stage.take_up()
    await stage.engine.began.wait()
    stage.kill()
    clock.advance(2 * LEASE)
    await stage.rescuer.run_once()

    await stage.work()

    assert stage.said(here) == ["Hello?", "Hello."]


async def test_a_reply_that_crashes_three_times_is_given_up(stage: Stage, clock: SetClock) -> None:
    here = await stage.chat()
    await stage.say(here, "Hello?")
    for _ in range(3):
        stage.engine.then(Wait())
        await stage.take_up()
        stage.kill()
        clock.advance(2 * LEASE)
        await stage.rescuer.run_once()

    await stage.work()

    assert stage.said(here)[-1].startswith("I could not answer")


async def test_a_reply_that_is_stopped_keeps_what_was_said(stage: Stage) -> None:
    stage.engine.then(Say("As I was saying"), Call("slow"), Say(" and so on"))
    here = await stage.chat()
    await stage.say(here, "Hello?")
    await stage.take_up()
    await stage.tools.started["slow"].wait()

    await chat.stop(stage.deps, here.user_id, here.id)
    await stage.renew()
    await stage.idle()
    await stage.work()

    assert stage.said(here)[1:3] == ["As I was saying", "Stopped."]
    assert len(stage.engine.requests) == 1


async def test_a_message_nobody_answers_yet_can_be_stopped(stage: Stage) -> None:
    here = await stage.chat()
    await stage.say(here, "Hello?")

    await chat.stop(stage.deps, here.user_id, here.id)
    await stage.work()

    assert stage.engine.requests == []
    with pytest.raises(Conflict):
        await chat.stop(stage.deps, here.user_id, here.id)


async def test_the_last_message_can_be_said_differently(stage: Stage) -> None:
    here = await stage.chat()
    await stage.say(here, "One.")
    await stage.work()
    await stage.say(here, "Tow.")
    await stage.work()

    await chat.edit_last(stage.deps, here.user_id, here.id, "Two.")
    await stage.work()

    assert stage.said(here) == ["One.", "Hello.", "Two.", "Hello."]
    last = stage.engine.requests[-1]
    assert last.session_id is None
    assert "Tow." not in last.prompt
    with pytest.raises(BadRequest):
        await chat.edit_last(stage.deps, here.user_id, here.id, "")
    assert stage.said(here)[-2] == "Two."
    # What the agent remembered of the words that were taken back is gone.
    kept = select(tables.session_entries.c.entry)
    memory = stage.database.run(lambda tx: tx.connection.scalars(kept).all())
    assert memory
    assert not any("Tow." in entry for entry in memory)


async def test_an_edit_replaces_the_message_that_was_meant_or_nothing(stage: Stage) -> None:
    here = await stage.chat()
    await stage.say(here, "One.")
    await stage.work()
    meant = next(one.id for one in stage.messages(here) if one.content == "One.")
    await stage.say(here, "Two.")
    await stage.work()
    before = stage.said(here)

    with pytest.raises(Conflict, match="sent another message since"):
        await chat.edit_last(stage.deps, here.user_id, here.id, "Uno.", replaces=meant)

    assert stage.said(here) == before
    last = next(one.id for one in stage.messages(here) if one.content == "Two.")
    await chat.edit_last(stage.deps, here.user_id, here.id, "Dos.", replaces=last)
    assert stage.said(here) == ["One.", "Hello.", "Dos."]


async def test_a_message_that_is_being_answered_can_be_said_differently(stage: Stage) -> None:
    stage.engine.then(Call("slow"), Say("Wrong."))
    here = await stage.chat()
    await stage.say(here, "Tow.")
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    await chat.edit_last(stage.deps, here.user_id, here.id, "Two.")
    await stage.renew()
    await stage.idle()

    await stage.work()

    assert [text for text in stage.said(here) if "Wrong" in text or "Tow" in text] == []
    assert stage.said(here)[-1] == "Hello."


async def test_a_stranger_reaches_nothing(stage: Stage) -> None:
    here = await stage.chat()
    await stage.say(here, "Hello?")
    stage.user(STRANGER)

    for attempt in (
        chat.send(stage.deps, STRANGER, here.id, "Hi."),
        chat.stop(stage.deps, STRANGER, here.id),
        chat.edit_last(stage.deps, STRANGER, here.id, "Hi."),
        conversations.archive(stage.deps, STRANGER, here.id),
    ):
        with pytest.raises(NotFound):
            await attempt
    assert stage.said(here) == ["Hello?"]
