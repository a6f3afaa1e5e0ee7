"""Answers that go on: server-sent events, with little memory for each client that waits."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

MEDIA_TYPE = "text/event-stream"
#: A comment, so that everybody in between sees that the connection is in use.
HEARTBEAT = b":\n\n"
HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # Asks proxies to pass on each piece as it comes.
    (b"x-accel-buffering", b"no"),
)

Pieces = AsyncGenerator[bytes, None]


def event(name: str, data: Any, *, number: int | None = None) -> bytes:
    numbered = "" if number is None else f"id: {number}\n"
    return f"{numbered}event: {name}\ndata: {json.dumps(data)}\n\n".encode()


class Streaming(Response):
    """Sends pieces as they come, until they end or the client leaves."""

    media_type = MEDIA_TYPE

    def __init__(self, pieces: Pieces, status_code: int = 200) -> None:
        super().__init__(status_code=status_code)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_wait_until_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_ended = sending.done()
            sending.cancel()
            leaving.cancel()
            await asyncio.wait({sending, leaving})
        if has_ended:
            sending.result()

    async def _send(self, send: Send) -> None:
        async with aclosing(self._pieces) as pieces:
            start = {"status": self.status_code, "headers": list(HEADERS)}
            await send({"type": "http.response.start", **start})
            async for piece in pieces:
                # This waits for a client that is slow; whoever serves cuts off one that is gone.
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _wait_until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
