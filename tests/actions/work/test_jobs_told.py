"""The results of jobs reach their parent: each once, in full, whatever happens in between."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

from support.doubles.engine import Call, Fail, Say, Step, Wait
from support.people.tool_calls import reply_turn
from support.requirements import requirement
from support.stage.job_stage import House, hand_out, started

from backburner.actions import conversations
from backburner.actions.origin import Origin
from backburner.actions.work import control, conversation_work
from backburner.core import transitions
from backburner.core.conversation import Conversation, MessageRole, Source
from backburner.core.errors import EngineFailed
from backburner.core.prompt import WORK_TITLE
from backburner.core.run import RunKind, RunStatus
from backburner.ports import TurnRequest


def told(house: House, chat: Conversation, words: str) -> int:
    """Count the prompts that tell the agent something, apart from facts about all its jobs."""
    parts = [prompt.partition(f"# {WORK_TITLE}\n") for prompt in house.prompts(chat)]
    rests = [before or after.partition("\n\n# ")[2] for before, _, after in parts]
    return sum(words in rest for rest in rests)


@requirement("C-events", "C-completed")
async def test_the_parent_is_told_at_once_with_the_request_and_the_whole_result(
    house: House,
) -> None:
    chat = await house.chat()
    long = "x" * 20_000
    await house.start(chat, f"find {long}")
    await house.work()

    message, reply = house.messages(chat)
    title = f"find {long}"[:60]
    assert (message.role, message.outside) == (MessageRole.SYSTEM, False)
    assert message.content.startswith(f"The job {title!r} has finished. Its request was: find xxx")
    assert message.content.endswith(f'\n\nFound {long}.\n\nResult: {{"it":"{long}"}}')
    assert (reply.content, reply.source) == ("I see.", Source.WORKER)
    assert told(house, chat, f"Found {long[:19_000]}") == 1
    (run,) = house.history(chat)
    assert (run.kind, run.status) == (RunKind.REPLY, RunStatus.SUCCESS)
    assert house.load(chat).unattended_replies == 1
    # Whoever asked for it may have left.
    assert house.notices() == ["I see."]


@requirement("C-events")
async def test_results_that_come_together_are_served_by_one_reply(house: House) -> None:
    chat, free = await house.chat(), asyncio.Event()
    house.chats.append(lambda _: [Wait(free), Say("Done.")])
    await house.say(chat, "Please.")
    await house.start(chat, "say One.", "say Two.", "say Three.")
    await house.take_up()
    await house.until(lambda: len(house.items(chat)) == 4)

    free.set()
    await house.idle()
    await house.work()

    (_, prompt) = house.prompts(chat)
    assert all(word in prompt for word in ("One.", "Two.", "Three."))
    assert house.said(chat).count("I see.") == 1


@requirement("C-events")
async def test_a_busy_parent_is_told_when_it_is_free(house: House) -> None:
    chat, free = await house.chat(), asyncio.Event()
    house.chats.append(lambda _: [Wait(free), Say("Done.")])
    await house.say(chat, "Please.")
    await house.start(chat, "say Hello.")
    await house.take_up()
    await house.until(lambda: len(house.items(chat)) == 2)
    assert told(house, chat, "Hello.") == 0

    free.set()
    await house.idle()
    await house.work()

    assert told(house, chat, "Hello.") == 1
    assert house.said(chat)[-2:] == ["Done.", "I see."]


@requirement("C-output", "C-events")
async def test_what_a_run_has_read_is_not_told_again(house: House) -> None:
    chat = await house.chat()
    await house.ask(chat, lambda request: _start_and_read(house, request))

    assert "Hello." in house.results()[-1]
    assert len(house.prompts(chat)) == 1
    assert [item["served_by"] is None for item in house.items(chat)] == [False, False]


def _start_and_read(house: House, request: TurnRequest) -> Iterator[Step]:
    """Start a job, wait until it is done, and read its result."""
    yield from hand_out("say Hello.")
    (which,) = started(house.results())
    yield Wait(house.once_settled(request.conversation, which))
    yield Call("background_output", {"task_id": which})
    yield Say("I have read it.")


@requirement("C-events")
async def test_what_a_run_has_read_is_told_again_if_it_crashes_before_its_commit(
    house: House,
) -> None:
    chat = await house.chat()

    def read_and_hang(request: TurnRequest) -> Iterator[Step]:
        yield from _start_and_read(house, request)
        house.looked.set()
        yield Wait()

    house.chats.append(read_and_hang)
    await house.say(chat, "Please.")
    await house.take_up()
    await house.looked.wait()
    house.kill()
    house.lose_turns()
    while await house.rescuer.run_once():
        pass

    await house.work()

    (again,) = house.prompts(chat)[1:]
    assert "The user says: Please." in again
    assert "Hello." in again
    assert "Already done by an earlier attempt" in again


@requirement("C-events")
async def test_what_a_reply_has_read_that_failed_is_told_again(house: House) -> None:
    chat = await house.chat()

    def read_and_fail(request: TurnRequest) -> Iterator[Step]:
        for step in _start_and_read(house, request):
            is_last = step == Say("I have read it.")
            yield Fail(EngineFailed("It broke.", permanent=True)) if is_last else step

    await house.ask(chat, read_and_fail)

    assert "Hello." in house.results()[-1]
    assert told(house, chat, "The job 'say Hello.'") == 1
    assert house.said(chat)[-1] == "I see."


async def test_archived_parents_and_those_of_clients_outside_keep_the_message(
    house: House,
) -> None:
    archived, client = await house.chat(), await house.chat()
    keeps = replace(house.load(client), keeps_only=True)
    house.database.run(lambda tx: tx.conversations.save(transitions.Step(conversation=keeps)))
    await house.start(client, "say Hello.")
    (which,) = await house.start(archived, "ask somebody")
    await house.work()
    job = house.database.run(lambda tx: tx.conversations.load(archived.user_id, which))
    await conversations.archive(house.deps, archived.user_id, archived.id)

    assert house.prompts(client) == house.prompts(archived) == []
    assert house.said(client) == [
        "The job 'say Hello.' has finished. Its request was: say Hello.\n\nHello."
    ]
    assert house.load(job).questions == ()


@requirement("C-cancel", "C-events")
async def test_a_job_that_its_user_cancels_is_noted_without_a_reply(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "hang")
    await control.cancel(house.deps, Origin.by_user(chat.user_id), which)
    await house.work()

    assert house.said(chat) == ["The job 'hang' was cancelled by the user. Its request was: hang"]
    assert house.prompts(chat) == []
    assert (await house.job(chat, which)).is_settled


async def test_a_job_that_stops_itself_is_told_to_its_parent_as_a_failure(house: House) -> None:
    chat = await house.chat()
    (which,) = await house.start(chat, "ask")
    job = house.database.run(lambda tx: tx.conversations.load(chat.user_id, which))
    await conversation_work.stop(house.deps, await reply_turn(house, job), "this")
    await house.work()

    text = "The job 'ask' has failed. Its request was: ask\n\nIts agent stopped it."
    assert house.said(chat) == [text, "I see."]
    assert len(house.prompts(chat)) == 1
