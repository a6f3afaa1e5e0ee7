"""`/api/conversations/{id}/messages`: reading, saying, taking back, stopping."""

import asyncio
from datetime import timedelta

import pytest
from support.doubles.engine import Call, Say, Wait
from support.requirements import requirement
from support.stage.api_stage import AskAs, Asker
from support.stage.make import NOON, USER
from support.stage.stage import BOUND, Stage
from support.stage.until import until

from backburner.actions.origin import Origin
from backburner.actions.schedules import Timing
from backburner.actions.work.tasks import NewTask, add
from backburner.core.accounts import Scope
from backburner.core.conversation import Conversation, EndedAs
from backburner.core.schedule import Scheduled
from backburner.store import tables

PATH = "/api/conversations"
HOUR = timedelta(hours=1)


@requirement("A-api", "A-fields")
async def test_what_is_said_is_kept_at_once_and_answered_later(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    path = f"{PATH}/{chat.id}/messages"

    answer = await ask("POST", path, {"content": "Hello?"})

    assert answer.status_code == 202
    said = answer.json()
    assert said["id"].startswith("m_")
    assert (said["role"], said["content"], said["source"]) == ("user", "Hello?", "chat")
    assert said["created_at"] == "2026-11-16T12:00:00Z"
    assert (await ask.get(path))["items"] == [said]
    await stage.work()
    reply, first = (await ask.get(path))["items"]
    assert (reply["role"], reply["content"], first) == ("assistant", "Hello.", said)
    assert reply["run_id"]
    assert {one["conversation_id"] for one in (said, reply)} == {chat.id}


async def test_who_accepts_a_stream_gets_the_reply_as_one_and_no_second_one_for_its_key(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    path, body = f"{PATH}/{chat.id}/messages", {"content": "Hello?"}
    headers = {"accept": "text/event-stream", "idempotency-key": "k"}
    asking = asyncio.create_task(ask("POST", path, body, headers=headers))
    await until(lambda: "Hello?" in stage.said(chat))
    await stage.work()
    first = await asyncio.wait_for(asking, BOUND)
    again = await ask("POST", path, body, headers=headers)

    assert first.headers["content-type"].startswith("text/event-stream")
    assert "event: message" in first.text
    assert "event: done" in first.text
    # A stream cannot be given again; that it was done can be said.
    assert (again.status_code, again.headers["idempotency-replayed"]) == (200, "true")
    assert stage.said(chat) == ["Hello?", "Hello."]


async def test_pages_of_messages_go_back_from_the_newest(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    path = f"{PATH}/{chat.id}/messages"
    for number in range(5):
        await stage.say(chat, f"{number}")

    first = await ask.get(path, limit=2)
    await stage.say(chat, "new")
    second = await ask.get(path, limit=2, cursor=first["next"])
    third = await ask.get(path, limit=2, cursor=second["next"])

    shown = [[one["content"] for one in page["items"]] for page in (first, second, third)]
    assert shown == [["4", "3"], ["2", "1"], ["0"]]
    assert third["next"] is None


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"content": ""}, 400),
        ({"content": " \n"}, 400),
        ({"content": "a\0b"}, 400),
        ({"content": "x" * 100_001}, 413),
        ({}, 422),
        ({"content": None}, 422),
        ({"content": "a", "role": "system"}, 422),
    ],
)
async def test_what_cannot_be_said_is_refused_and_not_kept(
    ask: Asker, stage: Stage, body: object, status: int
) -> None:
    chat = await stage.chat()

    assert (await ask("POST", f"{PATH}/{chat.id}/messages", body)).status_code == status

    assert stage.said(chat) == []


async def test_nothing_is_said_in_what_is_archived(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    await ask.do("POST", f"{PATH}/{chat.id}/archive")

    answer = await ask("POST", f"{PATH}/{chat.id}/messages", {"content": "Hello?"})

    assert answer.status_code == 409
    assert answer.json()["hint"]


async def test_the_last_message_is_taken_back_and_said_differently(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    path = f"{PATH}/{chat.id}/messages"
    assert (await ask("PUT", f"{path}/last", {"content": "Hello!"})).status_code == 409
    await stage.say(chat, "Helo")
    await stage.work()

    said = await ask.do("PUT", f"{path}/last", {"content": "Hello!"})

    assert (await ask.get(path))["items"] == [said]
    assert said["content"] == "Hello!"


async def test_work_of_a_replaced_message_is_listed_as_cancelled_only(
    ask: Asker, stage: Stage
) -> None:
    chat = await stage.chat()
    await stage.say(chat, "Helo")
    await stage.work()
    (run,) = stage.history(chat)
    task = await stage.task(Scheduled(NOON + HOUR), parent_id=chat.id)
    change = tables.conversations.update().where(tables.conversations.c.id == task.id)
    stage.database.run(lambda tx: tx.connection.execute(change.values(set_up_by=run.id)))

    await ask.do("PUT", f"{PATH}/{chat.id}/messages/last", {"content": "Hello!"})

    assert (await ask.get("/api/tasks"))["items"] == []
    assert stage.load(task).ended_as is EndedAs.CANCELLED
    said = (await ask.get(f"{PATH}/{chat.id}/messages"))["items"]
    assert said[-1]["content"] == ("Stopped “Work”: the message that asked for it was changed.")


async def test_a_reply_is_stopped(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    assert (await ask("POST", f"{PATH}/{chat.id}/stop")).status_code == 409
    stage.engine.then(Say("One moment"), Wait())
    await stage.say(chat, "Go on.")
    await stage.take_up()
    await stage.engine.began.wait()

    await ask.do("POST", f"{PATH}/{chat.id}/stop")
    await stage.renew()
    await stage.idle()

    assert stage.history(chat)[0].status == "cancelled"


async def with_proposal(stage: Stage) -> tuple[Conversation, Conversation]:
    """Have a chat whose last reply proposes a task, which our own words show below it."""
    chat = await stage.chat()
    stage.engine.then(Call("slow"), Say("I could watch it."))
    await stage.say(chat, "Tell me if CI breaks.")
    await stage.take_up()
    await stage.tools.started["slow"].wait()
    new = NewTask(name="watch-ci", prompt="Look.", timing=Timing("every monday at 3:33"))
    proposed = await add(stage.deps, Origin(USER, chat.id), new, proposed_because="It broke.")
    stage.tools.let_go.set()
    await stage.idle()
    assert stage.said(chat)[-1].endswith("Answer here with yes or no.")
    return chat, proposed.work


@requirement("B-propose")
@pytest.mark.parametrize("names_it", [False, True], ids=["shown last", "named"])
async def test_a_yes_decides_the_proposal_that_was_shown_last_or_is_named(
    ask: Asker, stage: Stage, *, names_it: bool
) -> None:
    chat, task = await with_proposal(stage)
    path, body = f"{PATH}/{chat.id}/messages", {"content": "yes"}
    if names_it:
        await stage.say(chat, "Let me think.")
        await stage.work()
        body["answers"] = stage.question(task).id

    answer = await ask("POST", path, body, headers={"accept": "text/event-stream"})

    assert (await ask.get(f"/api/tasks/{task.id}"))["status"] == "active"
    said = "Approved: 'watch-ci'."
    assert stage.said(chat)[-2:] == ["yes", said]
    # The stream ends with it: nobody waits for an agent.
    assert "event: done" in answer.text
    assert said in answer.text


async def test_a_yes_by_a_token_that_may_not_consent_is_talk(ask_as: AskAs, stage: Stage) -> None:
    chat, task = await with_proposal(stage)
    token = await ask_as(USER, Scope.READ, Scope.WRITE)

    await token.do("POST", f"{PATH}/{chat.id}/messages", {"content": "yes"})

    assert (await token.get(f"/api/tasks/{task.id}"))["status"] == "proposed"
