"""Limits on request bodies: their size, and how long they may take to arrive.

A body that declares a larger size is refused unread; one of unknown size is counted as it arrives.

A refused request ends its connection, but not at once: if a server closes while the client still
sends, TCP resets the connection and the client may lose the response. So the rest of the body is
read and discarded first, within bounds (a lingering close, as in nginx).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backburner.api.http import problems


@dataclass(frozen=True, slots=True)
class BodyLimits:
    max_bytes: int = 1_000_000
    #: For the next chunk of a body, and for all of it.
    chunk_timeout: timedelta = timedelta(seconds=15)
    body_timeout: timedelta = timedelta(seconds=60)
    #: For the rest of a refused body.
    linger_bytes: int = 2**25
    linger_chunk_timeout: timedelta = timedelta(seconds=2)
    linger_timeout: timedelta = timedelta(seconds=30)


#: How long all of a file may take to arrive: 20 MB from a slow phone.
UPLOAD_TIMEOUT = timedelta(minutes=10)


def upload_limits(max_bytes: int) -> BodyLimits:
    """Return the limits of a body that is a file."""
    return BodyLimits(max_bytes=max_bytes, body_timeout=UPLOAD_TIMEOUT)


class BodyLimitMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        limits: BodyLimits | None = None,
        *,
        #: By path, where POST requests have others.
        posts: Mapping[str, Callable[[], BodyLimits]] | None = None,
    ) -> None:
        self._app = app
        self._limits = limits or BodyLimits()
        self._posts = posts or {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        other = self._posts.get(scope["path"]) if scope["method"] == "POST" else None
        limits = self._limits if other is None else other()
        body = _Body(receive, send, limits)
        length = Headers(scope=scope).get("content-length", "0")
        if not (length.isascii() and length.isdigit()):
            body.is_refused = True
            refusal = problems.respond(400, "Content-Length is not a number.")
            await refusal(scope, receive, body.send)
        elif len(length) > 18 or int(length) > limits.max_bytes:
            body.is_refused = True
            refusal = problems.respond(413, body.too_large)
            await refusal(scope, receive, body.send)
        else:
            await self._app(scope, body.receive, body.send)


@dataclass(slots=True)
class _Body:
    """A request body as it arrives, and the response to it."""

    _receive: Receive
    _send: Send
    limits: BodyLimits
    size: int = 0
    deadline: float | None = None
    is_complete: bool = False
    is_refused: bool = False

    @property
    def too_large(self) -> str:
        return f"The request body is larger than {self.limits.max_bytes:,} bytes."

    async def receive(self) -> Message:
        if self.is_complete:
            return await self._receive()
        message = await self._receive_chunk()
        self.size += len(message.get("body", b""))
        self.is_complete = not message.get("more_body", False)
        if self.size > self.limits.max_bytes:
            self._refuse(413, self.too_large)
        return message

    async def send(self, message: Message) -> None:
        if not self.is_refused:
            await self._send(message)
        elif message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
            await self._send(message)
        elif message.get("more_body", False):
            await self._send(message)
        else:
            # The server closes the connection after the last message, so that one has to wait.
            await self._send({**message, "more_body": True})
            await self._discard_rest()
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _receive_chunk(self) -> Message:
        now = asyncio.get_running_loop().time()
        if self.deadline is None:
            self.deadline = now + self.limits.body_timeout.total_seconds()
        chunk_deadline = now + self.limits.chunk_timeout.total_seconds()
        try:
            async with asyncio.timeout_at(min(chunk_deadline, self.deadline)):
                return await self._receive()
        except TimeoutError:
            self._refuse(408, "The request body took too long to arrive.")
            raise

    async def _discard_rest(self) -> None:
        discarded = 0
        chunk_timeout = self.limits.linger_chunk_timeout.total_seconds()
        try:
            async with asyncio.timeout(self.limits.linger_timeout.total_seconds()):
                while not self.is_complete and discarded < self.limits.linger_bytes:
                    async with asyncio.timeout(chunk_timeout):
                        message = await self._receive()
                    discarded += len(message.get("body", b""))
                    self.is_complete = not message.get("more_body", False)
        except TimeoutError:
            pass

    def _refuse(self, status: int, detail: str) -> None:
        self.is_refused = True
        raise HTTPException(status, detail)
