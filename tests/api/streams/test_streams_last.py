"""Streams that last: what keeps them, what ends them, and what may happen in between."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar, cast

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.doubles.engine import Say, ScriptedEngine, Wait
from support.people.tokens import issue_token
from support.servers.live import BOUND, Stream, following, serving
from support.servers.postgres_server import stopped_postgres
from support.stage.make import MATE, OPERATOR, USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.accounts import users
from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.bus.postgres import PostgresBus
from backburner.core.accounts import Role, Scope
from backburner.core.conversation import Conversation
from backburner.core.errors import StoreFailed
from backburner.core.ids import UserId
from backburner.ports import EventKind, Hint, HintKind, Store, Tx
from backburner.runs.stopping import StopReason
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date

__all__ = ["clock", "database", "set_up", "stage"]

#: How long a stream may outlive its credential, in seconds.
LATEST = 5.0

T = TypeVar("T")


@asynccontextmanager
async def served(
    stage: Stage, deps: Deps | None = None, **more: Any
) -> AsyncIterator[httpx2.AsyncClient]:
    stage.user()
    api = build_api(deps or stage.deps, hosts={"127.0.0.1"}, checks={}, **more)
    async with serving(api) as address, httpx2.AsyncClient(base_url=address) as client:
        yield client


async def issue(stage: Stage, user: UserId = USER) -> str:
    return await issue_token(stage.deps, stage.user(user), list(Scope), name="Test")


def replying(
    client: httpx2.AsyncClient, token: str, here: Conversation
) -> AbstractAsyncContextManager[Stream]:
    path = f"/api/conversations/{here.id}/messages"
    return following(client, token, method="POST", path=path, json={"content": "Hello?"})


def migrate(url: str) -> None:
    engine = make_engine(url)
    bring_up_to_date(engine)
    engine.dispose()


async def change(stage: Stage, count: int) -> None:
    for _ in range(count):
        await stage.deps.store.transact(lambda tx: tx.changed(USER, None, EventKind.USER))


async def test_a_stream_in_which_nothing_happens_says_that_it_is_there(stage: Stage) -> None:
    here = await stage.chat()
    async with served(stage, heartbeat=timedelta(milliseconds=50)) as client:
        token = await issue(stage)
        for stream in (following(client, token), replying(client, token, here)):
            async with stream as opened, asyncio.timeout(BOUND):
                beats = 0
                async for line in opened.answer.aiter_lines():
                    beats += line == ":"
                    if beats == 3:
                        break

            assert beats == 3


async def test_wake_ups_without_news_do_not_keep_a_stream_silent(stage: Stage) -> None:
    here = await stage.chat()
    async with served(stage, heartbeat=timedelta(milliseconds=200)) as client:
        token = await issue(stage)
        with hinting(stage, here):
            for stream in (following(client, token), replying(client, token, here)):
                async with stream as opened, asyncio.timeout(BOUND):
                    async for line in opened.answer.aiter_lines():
                        if line == ":":
                            break


@contextmanager
def hinting(stage: Stage, here: Conversation) -> Iterator[None]:
    """Hint all the time that something has changed, though nothing has."""
    loop, bus = asyncio.get_running_loop(), stage.deps.bus
    assert bus

    timers = list[asyncio.Handle]()

    def hint() -> None:
        bus.hint(Hint(HintKind.CHANGED, USER, here.id))
        timers[:] = [loop.call_later(0.01, hint)]

    hint()
    yield
    timers[0].cancel()


@pytest.mark.parametrize("end", ["signed out everywhere", "disabled"])
async def test_whoever_is_shut_out_is_told_nothing_more(stage: Stage, end: str) -> None:
    stage.engine.then(Say("One "), Wait())
    here = await stage.chat()
    async with served(stage) as client:
        token = await issue(stage)
        async with following(client, token) as all_, replying(client, token, here) as reply:
            await all_.next("hello")
            await stage.take_up()
            await reply.next("delta")
            async with asyncio.timeout(LATEST):
                await shut_out(stage, client, token, end)
                for stream in (all_, reply):
                    await until_over(stream)
        again = await client.get("/api/me", headers={"authorization": f"Bearer {token}"})
    stage.kill()

    assert again.status_code == 401


async def until_over(stream: Stream) -> None:
    with suppress(EOFError):
        while True:
            await stream.next()


async def shut_out(stage: Stage, client: httpx2.AsyncClient, token: str, how: str) -> None:
    if how == "disabled":
        stage.user(MATE)
        await users.change(stage.deps, MATE, actor=OPERATOR, role=Role.OPERATOR)
        operator = await issue(stage, MATE)
        headers = {"authorization": f"Bearer {operator}"}
        answer = await client.patch(f"/api/users/{USER}", json={"disabled": True}, headers=headers)
    else:
        headers = {"authorization": f"Bearer {token}"}
        answer = await client.post("/api/sign-out-everywhere", headers=headers)
    assert answer.is_success, answer.text


async def test_a_reply_that_is_handed_back_goes_on_elsewhere_in_the_same_stream(
    stage: Stage,
) -> None:
    end = asyncio.Event()
    stage.engine.then(Say("One "), Wait())
    # Another process, as far as anybody can tell: what it says is in the database only.
    assert stage.deps.bus
    elsewhere = Stage(stage.database, stage.deps.bus, ScriptedEngine([Say("Two."), Wait(end)]))
    here = await stage.chat()
    async with served(stage) as client, replying(client, await issue(stage), here) as stream:
        await stream.next("message")
        await stage.take_up()
        first = await stream.next()
        stage.underway.stop_all(StopReason.SHUTDOWN)
        await stage.idle()
        await elsewhere.take_up()
        second = await stream.next()
        end.set()
        done = await stream.next()
        await elsewhere.idle()

        assert await stream.is_over()
    assert (first.name, first.data["at"], first.data["text"]) == ("delta", 0, "One ")
    assert (second.name, second.data["at"], second.data["text"]) == ("delta", 0, "Two.")
    assert (done.name, done.data["run"]) == ("done", first.data["run"])
    assert [one["content"] for one in done.data["messages"]] == ["Two."]


class Noticing:
    """A database that says when somebody tried to use it in vain."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.failed = asyncio.Event()

    async def transact(self, work: Callable[[Tx], T], **limits: Any) -> T:
        with self._noticing():
            return await self._database.transact(work, **limits)

    async def read(self, work: Callable[[Tx], T], **limits: Any) -> T:
        with self._noticing():
            return await self._database.read(work, **limits)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        try:
            yield
        except StoreFailed:
            self.failed.set()
            raise


async def test_nothing_is_missed_or_told_twice_though_the_database_goes_away() -> None:
    with stopped_postgres() as start_server, ExitStack() as held:
        server = held.enter_context(ExitStack())
        url = await asyncio.to_thread(server.enter_context, start_server())
        await asyncio.to_thread(migrate, url)
        databases = [Database(make_engine(url), SetClock()) for _ in range(2)]
        for database in databases:
            held.enter_context(closing(database))
        async with PostgresBus(url) as bus:
            stage, after = (Stage(one, bus, ScriptedEngine()) for one in databases)
            store = Noticing(stage.database)
            follows = replace(stage.deps, store=cast("Store", store))
            async with (
                served(stage, follows) as client,
                following(client, await issue(stage)) as stream,
            ):
                await stream.next("hello")
                await change(stage, 3)
                told = [await stream.next() for _ in range(3)]
                await asyncio.to_thread(server.close)
                await asyncio.wait_for(store.failed.wait(), BOUND)
                await asyncio.to_thread(server.enter_context, start_server())
                await change(after, 5)
                told += [await stream.next() for _ in range(5)]
            stored = after.database.run(lambda tx: tx.events.after(USER, 0, limit=99))

    assert [one.name for one in told] == ["change"] * 8
    assert [one.number for one in told] == [one.number for one in stored]
