"""A real server in the test's own loop, and clients that read a stream as it comes."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from socket import socket
from typing import Any

import httpx2
from fastapi import FastAPI

from backburner.app.http_server import HttpServer, listen, server_config
from backburner.core.conversation import Conversation
from backburner.ports import HintKind
from support.stage.stage import Stage

#: How long anything may take, in seconds; only what is broken takes as long.
BOUND = 10.0


@dataclass(frozen=True, slots=True)
class Told:
    """One event of a stream."""

    name: str
    data: Any
    number: int | None = None


class Stream:
    """The events of an answer that goes on."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._lines = answer.aiter_lines()
        self.last_number: int | None = None

    async def next(self, *names: str, within: float = BOUND) -> Told:
        """Wait for an event, of one of these names if any are given."""
        async with asyncio.timeout(within):
            while True:
                told = await self._read()
                if told is None:
                    raise EOFError
                if not names or told.name in names:
                    return told

    async def is_over(self) -> bool:
        """Wait for the end; False: something else came."""
        async with asyncio.timeout(BOUND):
            return await self._read() is None

    async def _read(self) -> Told | None:
        fields = dict[str, str]()
        async for line in self._lines:
            name, _, value = line.partition(": ")
            if line and name:
                fields[name] = value
            elif "event" in fields:
                number = int(fields["id"]) if "id" in fields else None
                self.last_number = self.last_number if number is None else number
                return Told(fields["event"], json.loads(fields["data"]), number)
            else:
                fields.clear()
        return None


@asynccontextmanager
async def serving(api: FastAPI) -> AsyncIterator[str]:
    """Serve until the end, and give the address."""
    with closing(listen("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()[:2]
        async with serving_on(listener, api):
            yield f"http://{host}:{port}"


@asynccontextmanager
async def serving_on(listener: socket, api: FastAPI, **config: Any) -> AsyncIterator[HttpServer]:
    server = HttpServer(server_config(api, **config))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield server
    finally:
        api.state.feed.close()
        server.should_exit = True
        await task


@asynccontextmanager
async def following(
    client: httpx2.AsyncClient,
    token: str,
    *,
    after: int | None = None,
    method: str = "GET",
    path: str = "/api/events",
    **more: Any,
) -> AsyncIterator[Stream]:
    headers = {"authorization": f"Bearer {token}", "accept": "text/event-stream"}
    if after is not None:
        headers["last-event-id"] = str(after)
    # Reading is bounded by `Stream.next`; the client's own timeout is shorter than a poll.
    timeout = httpx2.Timeout(BOUND, read=None)
    async with client.stream(method, path, headers=headers, timeout=timeout, **more) as answer:
        yield Stream(answer)


async def wait_for_draft(stage: Stage, conversation: Conversation) -> None:
    """Wait until the draft of a reply is in the database."""
    bus, user = stage.deps.bus, conversation.user_id
    assert bus is not None
    with bus.listen(HintKind.CHANGED) as hints:
        async with asyncio.timeout(BOUND):
            while not stage.database.run(lambda tx: tx.events.drafts(user, None)):
                await hints.take()
