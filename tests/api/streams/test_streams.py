"""A message that is sent for a stream, and its reply in it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from support.doubles.engine import Call, End, Fail, Say, Wait
from support.people.tokens import issue_token
from support.servers.live import BOUND, Stream, following, serving
from support.stage.make import STRANGER, USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions import chat
from backburner.api.app import build_api
from backburner.core.accounts import Scope
from backburner.core.conversation import Conversation
from backburner.core.errors import EngineFailed

__all__ = ["clock", "database", "set_up", "stage"]


@asynccontextmanager
async def served(stage: Stage, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"127.0.0.1"}, checks={}, **options)
    async with serving(api) as address, httpx2.AsyncClient(base_url=address) as client:
        stage.user()
        token = await issue_token(stage.deps, USER, list(Scope), name="Test")
        client.headers["authorization"] = f"Bearer {token}"
        yield client


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    async with served(stage) as client:
        yield client


def asking(
    client: httpx2.AsyncClient, here: Conversation, text: str
) -> AbstractAsyncContextManager[Stream]:
    token = client.headers["authorization"].removeprefix("Bearer ")
    path = f"/api/conversations/{here.id}/messages"
    return following(client, token, method="POST", path=path, json={"content": text})


async def test_a_reply_comes_in_pieces_and_then_as_it_is_kept(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    more, end = asyncio.Event(), asyncio.Event()
    stage.engine.then(Say("One "), Wait(more), Say("two."), Wait(end))
    here = await stage.chat()
    async with asking(client, here, "Hello?") as stream:
        message = await stream.next()
        await stage.take_up()
        first = await stream.next()
        more.set()
        second = await stream.next()
        end.set()
        done = await stream.next()
        await stage.idle()

        assert await stream.is_over()
    assert (message.name, message.data["content"], message.data["role"]) == (
        "message",
        "Hello?",
        "user",
    )
    assert (first.name, first.data["at"], first.data["text"]) == ("delta", 0, "One ")
    assert (second.name, second.data["at"], second.data["text"]) == ("delta", 4, "two.")
    assert (done.name, done.data["status"]) == ("done", "success")
    assert [one["content"] for one in done.data["messages"]] == ["One two."]


async def test_a_reply_that_is_there_at_once_is_not_missed(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    here = await stage.chat()
    async with asking(client, here, "Hello?") as stream:
        await stream.next("message")
        await stage.work()
        done = await stream.next("done")

    assert [one["content"] for one in done.data["messages"]] == ["Hello."]


async def test_a_reply_ends_with_the_questions_it_has_asked(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    here = await stage.chat()
    stage.engine.then(Say("First "), Call("send", {"to": "Ann"}))
    async with asking(client, here, "Write to Ann.") as stream:
        await stage.work()
        asked = await stream.next("done")
    async with asking(client, here, "And now?") as stream:
        await stage.work()
        replied = await stream.next("done")

    (question,) = asked.data["questions"]
    assert (question["purpose"], question["options"][0]) == ("approval", "yes")
    assert "send" in question["prompt"]
    # It is still open, but another reply has asked it.
    assert replied.data["questions"] == []


async def test_a_reply_that_fails_says_why(stage: Stage, client: httpx2.AsyncClient) -> None:
    stage.engine.then(Fail(EngineFailed("The model is gone.", permanent=True)))
    here = await stage.chat()
    async with asking(client, here, "Hello?") as stream:
        await stream.next("message")
        await stage.work()
        error = await stream.next("error", "done")

    assert error.name == "error"
    assert "The model is gone." in error.data["detail"]


async def test_a_reply_that_is_stopped_ends_with_what_is_kept(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    stage.engine.then(Say("One "), Wait())
    here = await stage.chat()
    async with asking(client, here, "Hello?") as stream:
        await stream.next("message")
        await stage.take_up()
        await stream.next("delta")
        await chat.stop(stage.deps, here.user_id, here.id)
        await stage.renew()
        done = await stream.next("done")
        await stage.idle()

    assert done.data["status"] == "cancelled"


async def test_a_reply_that_nobody_will_give_ends_too(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    here = await stage.chat()
    async with asking(client, here, "Hello?") as stream:
        await stream.next("message")
        await chat.stop(stage.deps, here.user_id, here.id)
        done = await stream.next("done")

    assert (done.data["run"], done.data["messages"]) == (None, [])


async def test_a_reply_that_goes_on_elsewhere_is_told_from_its_beginning(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    stage.engine.then(Say("Lost wo"), Wait())
    stage.engine.then(Say("Found words."), End())
    here = await stage.chat()
    async with asking(client, here, "Hello?") as stream:
        await stream.next("message")
        await stage.take_up()
        first = await stream.next("delta")
        stage.kill()
        await stage.rescuer.rescue_all()
        await stage.work()
        done = await stream.next("done")

    assert first.data["text"] == "Lost wo"
    assert [one["content"] for one in done.data["messages"]] == ["Found words."]


async def test_a_reply_that_has_no_seat_yet_says_so_once(stage: Stage) -> None:
    here = await stage.chat()
    async with (
        served(stage, heartbeat=timedelta(milliseconds=50)) as client,
        asking(client, here, "Hello?") as stream,
    ):
        await stream.next("message")
        waiting = await stream.next()
        await stage.work()
        while (done := await stream.next()).name == "delta":
            pass

    assert (waiting.name, waiting.data) == ("waiting", {"detail": "Waiting for a free seat."})
    assert done.name == "done"


async def test_a_reply_that_is_given_waits_for_no_seat(stage: Stage) -> None:
    stage.engine.then(Wait(end := asyncio.Event()), Say("Hello."))
    here = await stage.chat()
    async with (
        served(stage, heartbeat=timedelta(milliseconds=50)) as client,
        asking(client, here, "Hello?") as stream,
    ):
        await stage.take_up()
        seen = list[str]()
        async with asyncio.timeout(BOUND):
            async for line in stream.answer.aiter_lines():
                seen.append(line)
                if line == ":":
                    break
        end.set()
        await stage.idle()

    assert "event: message" in seen
    assert "event: waiting" not in seen


async def test_a_stream_that_takes_too_long_ends_and_the_reply_continues(stage: Stage) -> None:
    here = await stage.chat()
    async with (
        served(stage, reply_timeout=timedelta(milliseconds=50)) as client,
        asking(client, here, "Hello?") as stream,
    ):
        await stream.next("message")
        later = await stream.next()
        assert await stream.is_over()
    await stage.work()

    assert later.name == "later"
    assert stage.said(here) == ["Hello?", "Hello."]


async def test_what_is_refused_is_refused_before_the_answer_begins(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    here, theirs = await stage.chat(), await stage.chat(STRANGER)

    for which, text, status in ((theirs, "Hello?", 404), (here, " ", 400)):
        async with asking(client, which, text) as stream:
            assert stream.answer.status_code == status
    assert stage.said(theirs) == []
