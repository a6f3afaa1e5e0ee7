"""Limits on request bodies: their size, and how long they may take to arrive.

A body that declares a larger size is refused unread; one of unknown size is counted as it arrives.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backburner.api.http import problems

MAX_BODY_BYTES = 1_000_000
#: For the next chunk of a body, and for all of it.
CHUNK_TIMEOUT = timedelta(seconds=15)
BODY_TIMEOUT = timedelta(seconds=60)


class BodyLimitMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        max_bytes: int = MAX_BODY_BYTES,
        chunk_timeout: timedelta = CHUNK_TIMEOUT,
        body_timeout: timedelta = BODY_TIMEOUT,
    ) -> None:
        self._app = app
        self._max_bytes = max_bytes
        self._chunk_timeout = chunk_timeout.total_seconds()
        self._body_timeout = body_timeout.total_seconds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not (declared.isascii() and declared.isdigit()):
            refusal = problems.respond(400, "Content-Length is not a number.")
            await refusal(scope, receive, _closing(send))
        elif len(declared) > 18 or int(declared) > self._max_bytes:
            await problems.respond(413, _too_large(self._max_bytes))(scope, receive, _closing(send))
        else:
            body = _Body(receive, send, self._max_bytes, self._chunk_timeout, self._body_timeout)
            await self._app(scope, body.receive, body.send)


@dataclass(slots=True)
class _Body:
    """A request body as it arrives. A refused one ends its connection."""

    _receive: Receive
    _send: Send
    max_bytes: int
    chunk_timeout: float
    body_timeout: float
    size: int = 0
    deadline: float | None = None
    is_complete: bool = False
    is_refused: bool = False

    async def receive(self) -> Message:
        if self.is_complete:
            return await self._receive()
        message = await self._receive_chunk()
        if message["type"] != "http.request":
            self.is_complete = True
            return message
        self.size += len(message.get("body", b""))
        self.is_complete = not message.get("more_body", False)
        if self.size > self.max_bytes:
            self._refuse(413, _too_large(self.max_bytes))
        return message

    async def send(self, message: Message) -> None:
        if self.is_refused and message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
        await self._send(message)

    async def _receive_chunk(self) -> Message:
        now = asyncio.get_running_loop().time()
        if self.deadline is None:
            self.deadline = now + self.body_timeout
        try:
            async with asyncio.timeout_at(min(now + self.chunk_timeout, self.deadline)):
                return await self._receive()
        except TimeoutError:
            self._refuse(408, "The request body took too long to arrive.")
            raise

    def _refuse(self, status: int, detail: str) -> None:
        self.is_refused = True
        raise HTTPException(status, detail)


def _too_large(max_bytes: int) -> str:
    return f"The request body is larger than {max_bytes:,} bytes."


def _closing(send: Send) -> Send:
    async def close(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
        await send(message)

    return close
