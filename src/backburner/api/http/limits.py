"""How much of a request is read, and how long it may take to come.

Nothing of a body that says it is too large is read; one that does not say is counted as it comes.
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from backburner.api.http import problems

MOST_BYTES = 1_000_000
#: Until the next piece of a body comes, and until the last one has.
LONGEST_PAUSE = timedelta(seconds=15)
LONGEST_BODY = timedelta(seconds=60)


class BoundedBodies:
    def __init__(
        self,
        app: ASGIApp,
        limit: int = MOST_BYTES,
        pause: timedelta = LONGEST_PAUSE,
        whole: timedelta = LONGEST_BODY,
    ) -> None:
        self._app = app
        self._most = limit
        self._pause = pause.total_seconds()
        self._whole = whole.total_seconds()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if not (declared.isascii() and declared.isdigit()):
            refusal = problems.answer(400, "The length of the body is not a number.")
            await refusal(scope, receive, _closing(send))
        elif len(declared) > 18 or int(declared) > self._most:
            await problems.answer(413, _too_large(self._most))(scope, receive, _closing(send))
        else:
            body = _Body(receive, send, self._most, self._pause, self._whole)
            await self._app(scope, body.receive, body.send)


@dataclass(slots=True)
class _Body:
    """A body on its way in. What is refused ends its connection: the rest is not waited for."""

    _receive: Receive
    _send: Send
    most: int
    pause: float
    whole: float
    size: int = 0
    ends_at: float | None = None
    is_complete: bool = False
    is_refused: bool = False

    async def receive(self) -> Message:
        if self.is_complete:
            return await self._receive()
        message = await self._next()
        if message["type"] != "http.request":
            self.is_complete = True
            return message
        self.size += len(message.get("body", b""))
        self.is_complete = not message.get("more_body", False)
        if self.size > self.most:
            self._refuse(413, _too_large(self.most))
        return message

    async def send(self, message: Message) -> None:
        if self.is_refused and message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
        await self._send(message)

    async def _next(self) -> Message:
        now = asyncio.get_running_loop().time()
        if self.ends_at is None:
            self.ends_at = now + self.whole
        try:
            async with asyncio.timeout_at(min(now + self.pause, self.ends_at)):
                return await self._receive()
        except TimeoutError:
            self._refuse(408, "The body of the request takes too long to come.")
            raise

    def _refuse(self, status: int, why: str) -> None:
        self.is_refused = True
        raise HTTPException(status, why)


def _too_large(limit: int) -> str:
    return f"A request may have {limit:,} bytes."


def _closing(send: Send) -> Send:
    async def close(message: Message) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
        await send(message)

    return close
