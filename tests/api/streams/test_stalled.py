"""Clients that leave what they are sent where it is: cut off, and cheap until then."""

import asyncio
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from support.doubles.engine import Say, Wait
from support.people.tokens import issue_token
from support.servers.live import BOUND, serving_on
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage
from support.stage.until import until

from backburner.api.app import build_api
from backburner.app.http_server import HttpServer, listen
from backburner.core.accounts import CredentialKind, Scope
from backburner.live.feed import Feed
from backburner.ports import EventKind, Hint, HintKind
from backburner.store import tables
from backburner.store.dialect import number_from
from backburner.store.tx import Tx

__all__ = ["clock", "database", "set_up", "stage"]

LARGE = 400_000
MANY = 20_000
#: As many changes take twice as many bytes.
LITTLE = 1_800_000


@dataclass
class Stalled:
    server: HttpServer
    feed: Feed
    reader: asyncio.StreamReader

    async def is_cut(self) -> bool:
        await until(lambda: not self.server.server_state.connections)
        return True


@asynccontextmanager
async def stalling(stage: Stage, after: timedelta) -> AsyncIterator[Stalled]:
    """Follow everything over a connection that holds little, and stop reading at once."""
    stage.user()
    token = await issue_token(stage.deps, USER, [Scope.READ], name="Test")
    api = build_api(stage.deps, hosts={"127.0.0.1"}, checks={})
    with closing(listen("127.0.0.1", 0)) as listener, closing(socket.socket()) as ours:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        async with serving_on(listener, api, stall_timeout=after) as server:
            ours.connect(listener.getsockname())
            reader, writer = await asyncio.open_connection(sock=ours, limit=4096)
            writer.write(
                b"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Authorization: Bearer " + token.encode() + b"\r\n\r\n"
            )
            await asyncio.wait_for(reader.readuntil(b"event: hello"), BOUND)
            # From here on nothing is taken off the socket.
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            try:
                yield Stalled(server, api.state.feed, reader)
            finally:
                writer.close()


async def say_much(stage: Stage) -> asyncio.Event:
    """Let more be said than fits on the way."""
    end = asyncio.Event()
    stage.engine.then(Say("x" * LARGE), Wait(end))
    here = await stage.chat()
    await stage.say(here, "Hello?")
    await stage.take_up()
    return end


async def test_a_client_that_stops_reading_is_cut_off(stage: Stage) -> None:
    async with stalling(stage, timedelta(seconds=0.3)) as client:
        assert len(client.server.server_state.connections) == 1
        end = await say_much(stage)

        assert await client.is_cut()
        end.set()
        await stage.idle()


async def test_a_client_that_is_slow_but_reads_is_not(stage: Stage) -> None:
    async with stalling(stage, timedelta(seconds=2)) as client:
        end = await say_much(stage)
        client.reader._transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(BOUND):
            read = 0
            while read < LARGE:
                read += len(await client.reader.read(4096))
        end.set()
        await stage.idle()

        assert len(client.server.server_state.connections) == 1


async def test_what_waits_for_it_does_not_grow(stage: Stage) -> None:
    async with stalling(stage, timedelta(minutes=1)) as client:
        end = await say_much(stage)
        await change(stage, client.feed, 1_000)
        tracemalloc.start()
        try:
            await change(stage, client.feed, MANY)
            grown = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
        end.set()
        await stage.idle()

        assert len(client.server.server_state.connections) == 1
    assert grown < LITTLE


async def change(stage: Stage, feed: Feed, count: int) -> None:
    """Let much change, and wait until somebody who reads was told all of it."""
    (held,) = stage.database.run(
        lambda tx: tx.credentials.page(USER, CredentialKind.TOKEN, limit=2, now=tx.now)
    )
    async with feed.follow(USER, held.id, after=None) as other:
        stage.database.run(lambda tx: add_events(tx, count))
        newest = stage.database.run(lambda tx: tx.events.latest(USER))
        assert stage.deps.bus
        stage.deps.bus.hint(Hint(HintKind.CHANGED, USER))
        seen = 0
        while seen < newest:
            assert await other.wait(BOUND)
            news = other.take()
            seen = max([seen, news.begins_at or 0, *(one.number for one in news.changes)])


def add_events(tx: Tx, count: int) -> None:
    row = {"user_id": USER, "kind": EventKind.USER.value, "created_at": tx.now}
    first = tx.events.latest(USER) + 1
    rows: list[dict[str, Any]] = [
        {**row, "number": number} for number in range(first, first + count)
    ]
    tx.connection.execute(tables.events.insert(), rows)
    number_from(tx.connection, tables.events, rows[-1]["number"])
