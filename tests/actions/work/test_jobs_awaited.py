"""Waiting for jobs holds nothing; it is over when they settle, somebody speaks, or in time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from support.doubles.engine import Call, End, Say, Step, Wait
from support.requirements import requirement
from support.stage.job_stage import House, hand_out, outside, started
from support.stage.stage import BOUND

from backburner.actions import chat as chats
from backburner.actions import conversations
from backburner.actions.origin import Origin
from backburner.actions.work import control, deletion, wait
from backburner.core.conversation import Conversation, Source, Status
from backburner.core.ids import ConversationId
from backburner.core.run import RunKind, RunStatus
from backburner.core.transitions import Step as Saved
from backburner.core.work.views import JobStatus
from backburner.ports import TurnRequest

MINUTE = timedelta(minutes=1)


def block_on(
    house: House, *prompts: str, **more: object
) -> Callable[[TurnRequest], Iterator[Step]]:
    """Hand out jobs and wait for them."""

    def script(request: TurnRequest) -> Iterator[Step]:
        del request
        yield from hand_out(*prompts)
        ids = started(house.results())[-len(prompts) :]
        yield Say("I wait.")
        yield Call("background_block", {"task_ids": ids, **more})
        yield Say("Never said.")

    return script


async def begin(house: House, chat: Conversation, *prompts: str) -> list[str]:
    """Let a reply wait for jobs, none of which has been taken up; give their ids."""
    house.chats.append(block_on(house, *prompts))
    await house.say(chat, "Please.")
    await house.take_one()
    await house.idle()
    return started(house.results())


@requirement("C-block", "C-batch")
async def test_a_reply_waits_for_a_whole_batch(house: House) -> None:
    chat = await house.chat()
    one, two = await house.start(chat, "say One.", "say Two.", batch="mine")
    await house.start(chat, "hang", batch="other")
    house.chats.append(lambda _: [Call("background_block", {"batch": "mine"}), Say("Never said.")])
    await house.say(chat, "Please.")
    await house.take_one()
    await house.idle()
    assert house.waiting() == ["reply"]
    await house.take_up()
    # The other batch is not waited for: its job never ends.
    await house.until(lambda: len(house.items(chat)) == 3)
    await house.take_up()
    await house.until(lambda: "I see." in house.said(chat))
    house.kill()

    (*_, going_on) = house.prompts(chat)
    assert "2 of 2 have settled" in going_on
    assert all(which in going_on for which in (one, two))


@requirement("C-block", "C-events")
async def test_a_reply_that_waits_holds_nothing_and_goes_on_with_a_summary(house: House) -> None:
    chat = await house.chat()
    one, two = await begin(house, chat, "say One.", "fail It broke.")

    (run,) = house.history(chat)
    assert (run.status, house.waiting()) == (RunStatus.QUEUED, ["reply"])
    assert (house.said(chat)[-1], house.engine.underway) == ("I wait.", 0)
    await house.work()

    (*_, going_on) = house.prompts(chat)
    assert going_on.startswith("# You waited\n")
    assert "2 of 2 have settled.\n- " in going_on
    assert f"- {one} 'say One.': completed at" in going_on
    assert f"- {two} 'fail It broke.': error at" in going_on
    assert going_on.count("One.\n</outside") == going_on.count("It broke.\n</outside") == 1
    (same,) = house.history(chat)
    assert (same.id, same.status) == (run.id, RunStatus.SUCCESS)
    assert len(house.prompts(chat)) == 2
    assert all(item["served_by"] == run.id for item in house.items(chat))
    # A person had asked for it.
    assert [message.source for message in house.messages(chat)][-1] is Source.CHAT
    assert house.load(chat).unattended_replies == 0


async def test_it_goes_on_only_when_the_last_has_settled(house: House) -> None:
    chat = await house.chat()
    _, two = await begin(house, chat, "say One.", "hang")
    await house.take_up()
    await house.until(lambda: len(house.items(chat)) == 2)
    assert len(house.prompts(chat)) == 1

    await control.cancel(house.deps, Origin.by_user(chat.user_id), ConversationId(two))
    await house.renew()
    await house.idle()
    await house.work()

    (*_, going_on) = house.prompts(chat)
    assert "2 of 2 have settled" in going_on
    assert f"{two} 'hang': cancelled at" in going_on
    assert len(house.prompts(chat)) == 2


@requirement("C-block")
@pytest.mark.parametrize("delete", [conversations.delete, deletion.delete])
async def test_one_that_needs_the_user_or_stands_still_is_not_waited_for(
    house: House, delete: Callable[..., Awaitable[None]]
) -> None:
    chat = await house.chat()
    one, two, three = await begin(house, chat, "ask somebody", "hang", "hang")
    await control.pause(house.deps, Origin.by_user(chat.user_id), ConversationId(two))
    await delete(house.deps, chat.user_id, ConversationId(three))
    await house.work()

    (*_, going_on) = house.prompts(chat)
    assert f"{one} 'ask somebody': running, waits for the user's answer to: Which one?" in going_on
    assert f"{two} 'hang': running, but paused" in going_on
    assert f"{three}: no longer exists." in going_on


@requirement("C-block-done")
async def test_who_waits_for_what_has_settled_goes_on_at_once(house: House) -> None:
    chat = await house.chat()
    one, two = await house.start(chat, "say One.", "say Two.")
    await house.work()
    house.engine.results.clear()
    call = Call("background_block", {"task_ids": [one, two, "c_nowhere"]})
    await house.ask(chat, lambda _: [call, Say("Done.")])

    (told,) = house.results()
    assert told.startswith("2 of 2 have settled.")
    assert all(words in told for words in ("One.", "Two.", "There are no such jobs: c_now"))
    assert (house.waiting(), house.said(chat)[-1]) == ([], "Done.")
    assert (await house.job(chat, one)).retrieved_at is not None


@requirement("C-block-timeout")
async def test_when_the_time_is_up_the_summary_says_what_still_runs(house: House) -> None:
    chat = await house.chat()
    _, two = await begin(house, chat, "say One.", "hang")
    await house.take_up()
    await house.until(lambda: len(house.items(chat)) == 2)

    house.let_time_pass()
    await house.take_up()
    await house.until(lambda: "I see." in house.said(chat))

    (*_, going_on) = house.prompts(chat)
    assert "1 of 2 have settled." in going_on
    assert f"{two} 'hang': running, 0 tool calls, last activity at" in going_on
    house.kill()


@requirement("C-block")
async def test_a_person_who_speaks_ends_the_wait_of_a_reply(house: House) -> None:
    chat = await house.chat()
    await begin(house, chat, "hang")
    await house.say(chat, "Never mind.")
    await house.take_up()
    await house.until(lambda: "I see." in house.said(chat))

    (*_, going_on) = house.prompts(chat)
    assert "The user says: Never mind." in going_on
    assert "0 of 1 have settled." in going_on
    assert len(house.history(chat)) == 1
    house.kill()


@requirement("C-block")
async def test_a_person_who_speaks_is_answered_and_then_the_work_goes_on(house: House) -> None:
    task = await house.task()
    house.chats.append(block_on(house, "hang"))
    await house.take_one()
    await house.idle()
    assert house.waiting() == ["background"]
    house.chats += [lambda _: [Say("Yes?")], lambda _: [End({"complete": True})]]

    await house.say(task, "How is it?")
    await house.take_up()
    await house.until(lambda: "Yes?" in house.said(task))
    await house.take_up()
    await house.until(lambda: house.load(task).status is Status.ACTIVE)

    assert {run.kind for run in house.history(task)} == {RunKind.REPLY, RunKind.BACKGROUND}
    assert "0 of 1 have settled." in house.prompts(task)[-1]
    house.kill()


@requirement("C-block")
async def test_results_that_work_waits_for_are_for_that_work_and_start_no_reply(
    house: House,
) -> None:
    task = await house.task()
    (early,) = await house.start(task, "say Early.")
    house.chats.append(_wait_for_both(house, early))
    house.chats.append(lambda _: [End({"complete": True, "message": "All done."})])
    await house.take_up()
    await house.idle()
    assert house.waiting() == ["background"]
    await house.work()

    assert [run.kind for run in house.history(task)] == [RunKind.BACKGROUND]
    (*_, going_on) = house.prompts(task)
    assert all(f"{word}\n</outside" in going_on for word in ("Early.", "Late."))
    assert house.said(task)[-1] == "All done."
    assert all(item["served_by"] for item in house.items(task))


def _wait_for_both(house: House, early: str) -> Callable[[TurnRequest], Iterator[Step]]:
    def script(request: TurnRequest) -> Iterator[Step]:
        yield Wait(house.once_settled(request.conversation, early))
        yield from hand_out("say Late.")
        (late,) = started(house.results())
        yield Call("background_block", {"task_ids": [early, late]})

    return script


@requirement("C-block")
async def test_a_wait_outlasts_its_process_and_an_agent_that_forgets(house: House) -> None:
    chat = await house.chat()
    (which,) = await begin(house, chat, "say Hello.")
    house.kill()
    forgetful = replace(house.load(chat), session=None)
    house.database.run(lambda tx: tx.conversations.save(Saved(conversation=forgetful)))
    await house.work()

    (*_, going_on) = house.prompts(chat)
    assert going_on.startswith("# The jobs you waited for\n1 of 1 have settled.")
    assert "The user says: Please." in going_on
    assert "background_task" in going_on
    assert "Hello.\n</outside" in going_on
    assert which in going_on


@requirement("C-block", "Z-inbox")
async def test_what_was_asked_is_asked_again_if_the_run_crashes_after_it_waited(
    house: House,
) -> None:
    chat = await house.chat()
    await begin(house, chat, "hang")

    def hang(request: TurnRequest) -> Iterator[Step]:
        del request
        house.looked.set()
        yield Wait()

    house.chats.append(hang)
    house.let_time_pass()
    await house.take_up()
    await house.looked.wait()
    house.kill()
    house.lose_turns()
    while await house.rescuer.run_once():
        pass

    await house.take_up()
    await house.until(lambda: "I see." in house.said(chat))

    (*_, again) = house.prompts(chat)
    assert "The user says: Please." in again
    assert [run.status for run in house.history(chat)] == [RunStatus.SUCCESS, RunStatus.FAILURE]
    house.kill()


async def test_a_reply_that_waits_can_be_stopped(house: House) -> None:
    chat = await house.chat()
    await begin(house, chat, "hang")

    await chats.stop(house.deps, chat.user_id, chat.id)

    (run,) = house.history(chat)
    assert (run.status, house.waiting()) == (RunStatus.CANCELLED, [])


@requirement("C-block", "C-events")
async def test_a_client_outside_is_answered_as_soon_as_the_last_has_settled(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A hint ends the wait, and no poll.
    monkeypatch.setattr(wait, "WAIT_POLL_SECONDS", 3600)
    chat = await house.chat()
    ids = await house.start(chat, "say One.", "say Two.")
    waits = asyncio.create_task(wait.wait_in_call(house.deps, outside(chat), ids, MINUTE))
    await house.take_up()
    for which in ids:
        await house.until_settled(chat, which)

    async with asyncio.timeout(BOUND):
        found = (await waits).jobs

    assert [job.result for job in found] == ["One.", "Two."]
    assert all(job.retrieved_at for job in found)


@requirement("C-block-timeout", "C-events")
async def test_a_client_outside_hears_in_time_what_still_runs_also_without_hints(
    house: House,
) -> None:
    chat = await house.chat()
    (hangs, done) = await house.start(chat, "hang", "say One.")
    deps = replace(house.deps, bus=None)
    await house.take_up()
    await house.until_settled(chat, done)

    moment = timedelta(milliseconds=50)
    found = (await wait.wait_in_call(deps, outside(chat), [hangs, done], moment)).jobs
    at_once = (await wait.wait_in_call(deps, outside(chat), [done, "c_nowhere"], MINUTE)).jobs

    assert [job.status for job in found] == [JobStatus.RUNNING, JobStatus.COMPLETED]
    assert [job.id for job in at_once] == [done]
    house.kill()
