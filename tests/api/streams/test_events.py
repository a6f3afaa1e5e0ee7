"""What a client sees as it changes."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest
from fastapi import FastAPI
from sqlalchemy import update
from support.doubles.clock import SetClock
from support.doubles.engine import Say, Wait
from support.people.tokens import issue_token
from support.requirements import requirement
from support.servers.live import BOUND, following, serving, serving_on, wait_for_draft
from support.stage.make import STRANGER, USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage
from support.stage.until import until

from backburner.actions import chat
from backburner.api.app import build_api
from backburner.app.http_server import listen
from backburner.core.accounts import Scope
from backburner.core.ids import UserId
from backburner.live import poll
from backburner.live.feed import Feed
from backburner.ports import EventKind, Hint, HintKind
from backburner.store import tables
from backburner.worker.pruner import KEEP_EVENTS, Pruner

__all__ = ["clock", "database", "set_up", "stage"]


@pytest.fixture
def api(stage: Stage) -> FastAPI:
    return build_api(stage.deps, hosts={"127.0.0.1"}, checks={})


@pytest.fixture
async def client(api: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    async with serving(api) as address, httpx2.AsyncClient(base_url=address) as client:
        yield client


@pytest.fixture
async def token(stage: Stage) -> str:
    return await issue(stage)


async def issue(stage: Stage, user: UserId = USER, *scopes: Scope) -> str:
    stage.user(user)
    return await issue_token(stage.deps, user, scopes or (Scope.READ,), name="Test")


def change(stage: Stage, user: UserId = USER, *, count: int = 1) -> None:
    for _ in range(count):
        stage.database.run(lambda tx: tx.changed(user, None, EventKind.USER))


def newest(stage: Stage, user: UserId = USER) -> int:
    return stage.database.run(lambda tx: tx.events.latest(user))


async def test_a_client_that_comes_for_the_first_time_begins_now(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    change(stage, count=2)
    async with following(client, token) as stream:
        hello = await stream.next()
        change(stage)
        then = await stream.next()

    assert stream.answer.headers["content-type"].startswith("text/event-stream")
    assert (hello.name, hello.number, hello.data) == ("hello", 2, {"id": "2"})
    assert (then.name, then.number) == ("change", 3)
    assert then.data == {"id": "3", "kind": "user", "conversation": None}


@requirement("A-latency")
async def test_everything_that_happens_in_a_conversation_is_told_within_a_second(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    async with following(client, token) as stream:
        await stream.next("hello")
        task = await stage.task()
        await stage.work()
        kinds = set[str]()
        while not {"conversation", "run", "message", "notice"} <= kinds:
            told = await stream.next("change", within=1)
            assert told.data["conversation"] == task.id
            kinds.add(told.data["kind"])


async def test_whoever_comes_again_is_told_what_they_missed_each_once(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    async with following(client, token) as stream:
        await stream.next("hello")
        change(stage)
        last = (await stream.next("change")).number
    change(stage, count=3)
    async with following(client, token, after=last) as stream:
        missed = [(await stream.next()).number for _ in range(3)]
        change(stage)
        missed.append((await stream.next()).number)

    assert last == 1
    assert missed == [2, 3, 4, 5]


@pytest.mark.parametrize("after", ["pruned", "unknown", "a stranger's"])
async def test_what_nobody_knows_any_more_begins_with_everything(
    stage: Stage, client: httpx2.AsyncClient, token: str, clock: SetClock, after: str
) -> None:
    stage.user(STRANGER)
    change(stage, STRANGER, count=5)
    change(stage, count=3)
    stage.database.run(lambda tx: tx.events.prune(before=clock.now.replace(year=2100), limit=10))
    number = {"pruned": 2, "unknown": 99, "a stranger's": 5}[after]
    async with following(client, token, after=number) as stream:
        told = await stream.next()
        change(stage)
        then = await stream.next()

    assert (told.name, told.number) == ("reset", 3)
    assert (then.name, then.number) == ("change", 4)


async def test_whoever_was_away_for_too_long_begins_with_everything(
    stage: Stage, client: httpx2.AsyncClient, token: str, clock: SetClock
) -> None:
    change(stage, count=3)
    clock.advance(KEEP_EVENTS + timedelta(minutes=1))
    change(stage)
    more = await Pruner(stage.deps, keep=timedelta(days=30)).run_once()
    async with following(client, token, after=3) as stream:
        told = await stream.next()

    assert not more
    assert (told.name, told.number) == ("reset", 4)


async def test_what_is_no_number_begins_with_everything(
    client: httpx2.AsyncClient, token: str
) -> None:
    headers = {"authorization": f"Bearer {token}", "last-event-id": "yesterday"}
    async with client.stream("GET", "/api/events", headers=headers) as answer:
        lines = [line async for line in _some(answer, 6)]

    assert "event: reset" in lines


async def _some(answer: httpx2.Response, count: int) -> AsyncIterator[str]:
    lines = answer.aiter_lines()
    for _ in range(count):
        yield await asyncio.wait_for(anext(lines), BOUND)


async def test_whoever_missed_too_much_begins_with_everything(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    change(stage)
    stage.database.run(
        lambda tx: tx.connection.execute(
            tables.events.insert(),
            [
                {"user_id": USER, "number": number, "kind": "user", "created_at": tx.now}
                for number in range(2, poll.MAX_MISSED_EVENTS + 3)
            ],
        )
    )
    async with following(client, token, after=1) as stream:
        told = await stream.next()

    assert (told.name, told.number) == ("reset", newest(stage))


async def test_nobody_is_told_of_anothers_changes(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    stranger = await issue(stage, STRANGER)
    async with following(client, token) as mine, following(client, stranger) as theirs:
        await mine.next("hello")
        await theirs.next("hello")
        stage.engine.then(Say("A secret."))
        here = await stage.chat()
        await stage.say(here, "Hello?")
        await stage.work()
        change(stage, STRANGER)
        only = await theirs.next()
        first = await mine.next("change")

    assert (only.name, only.data["kind"], only.data["conversation"]) == ("change", "user", None)
    assert first.data["conversation"] == here.id


async def test_nobody_is_let_in_without_a_credential(client: httpx2.AsyncClient) -> None:
    assert (await client.get("/api/events")).status_code == 401


async def test_a_credential_that_cannot_read_is_refused(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    token = await issue(stage, USER, Scope.WRITE)

    async with following(client, token) as stream:
        assert stream.answer.status_code == 403


@pytest.mark.parametrize("end", ["revoked", "expired", "disabled"])
async def test_a_stream_ends_with_its_credential_and_tells_nothing_more(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock, end: str
) -> None:
    until = clock.now.replace(hour=23)
    stage.user()
    token = await issue_token(stage.deps, USER, [Scope.READ], name="Test", expires_at=until)
    async with following(client, token) as stream:
        await stream.next("hello")
        if end == "expired":
            clock.now = until
        table = tables.users if end == "disabled" else tables.credentials
        column = {"revoked": "ended_at", "disabled": "disabled_at"}.get(end)
        if column is not None:
            ended = update(table).values({column: clock.now})
            stage.database.run(lambda tx: tx.connection.execute(ended))
        change(stage)

        assert await stream.is_over()


async def test_what_is_said_is_seen_while_it_is_said(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    more, end = asyncio.Event(), asyncio.Event()
    stage.engine.then(Say("One "), Wait(more), Say("two."), Wait(end))
    here = await stage.chat()
    await stage.say(here, "Hello?")
    async with following(client, token) as stream:
        await stream.next("hello")
        await stage.take_up()
        first = await stream.next("draft")
        more.set()
        second = await stream.next("draft")
        end.set()
        kinds = [(await stream.next("change")).data["kind"] for _ in range(3)]
        await stage.idle()

    assert first.data["text"] == "One "
    # A piece, or all of it again: what changed meanwhile may have been read in between.
    assert first.data["text"][: second.data["at"]] + second.data["text"] == "One two."
    assert first.data["run"] == second.data["run"]
    assert first.number is second.number is None
    assert "message" in kinds


async def test_whoever_comes_in_the_middle_of_a_reply_sees_what_was_said_so_far(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    more, end = asyncio.Event(), asyncio.Event()
    stage.engine.then(Say("One "), Wait(more), Say("two."), Wait(end))
    here = await stage.chat()
    await stage.say(here, "Hello?")
    await stage.take_up()
    await wait_for_draft(stage, here)
    async with following(client, token) as stream:
        draft = await stream.next("draft")
        more.set()
        rest = await stream.next("draft")
        end.set()
        await stage.idle()

    assert (draft.data["at"], draft.data["text"]) == (0, "One ")
    assert (rest.data["at"], rest.data["text"]) == (4, "two.")


async def test_without_hints_a_poll_finds_changes_and_expired_credentials(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock, token: str
) -> None:
    expires_at = clock.now + timedelta(hours=1)
    expiring = await issue_token(stage.deps, USER, [Scope.READ], name="Test", expires_at=expires_at)
    async with following(client, token) as stream, following(client, expiring) as ending:
        await stream.next("hello")
        await ending.next("hello")
        stage.database.bus = None
        clock.now = expires_at
        change(stage)

        # The real interval is five seconds.
        assert (await stream.next()).number == 1
        assert await ending.is_over()


async def test_after_hints_were_lost_a_hint_of_everything_finds_the_changes(
    stage: Stage, api: FastAPI, client: httpx2.AsyncClient, token: str
) -> None:
    api.state.feed = Feed(stage.deps, poll_interval=timedelta(hours=1))
    async with following(client, token) as stream:
        await stream.next("hello")
        stage.database.bus = None
        change(stage)
        assert stage.deps.bus is not None
        # As after the connection for hints was lost.
        stage.deps.bus.hint(Hint(HintKind.EVERYTHING))

        assert (await stream.next()).number == 1


async def test_the_server_does_not_wait_for_those_who_follow(stage: Stage, token: str) -> None:
    api = build_api(stage.deps, hosts={"127.0.0.1"}, checks={})
    listener = listen("127.0.0.1", 0)
    async with httpx2.AsyncClient() as client, asyncio.timeout(BOUND):
        async with serving_on(listener, api) as server:
            # As long as it would take if it did.
            server.config.timeout_graceful_shutdown = 3600
            client.base_url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            entered = following(client, token)
            stream = await entered.__aenter__()
            await stream.next("hello")
        ended = await stream.is_over()
        await entered.__aexit__(None, None, None)

    assert ended


async def test_nothing_is_left_of_those_who_have_gone(
    api: FastAPI, client: httpx2.AsyncClient, token: str
) -> None:
    async with following(client, token) as stream:
        await stream.next("hello")
    await until(lambda: not api.state.feed._subscribers)
    left = {task for task in asyncio.all_tasks() if "Feed" in repr(task.get_coro())}
    still_there = (await asyncio.wait(left, timeout=BOUND))[1] if left else set()

    assert still_there == set()


async def test_chats_say_what_was_taken_back(
    stage: Stage, client: httpx2.AsyncClient, token: str
) -> None:
    here = await stage.chat()
    await stage.say(here, "Hello?")
    async with following(client, token) as stream:
        await stream.next("hello")
        await chat.edit_last(stage.deps, here.user_id, here.id, "Hi?")
        kinds = {(await stream.next("change")).data["kind"] for _ in range(3)}

    assert kinds == {"conversation", "message", "run"}
