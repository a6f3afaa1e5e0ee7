"""A fake model API on loopback: it plays scripts and records all requests."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

from support.model_api import anthropic, openai
from support.model_api.http import MAX_HEAD_BYTES, Connection
from support.model_api.request import ModelRequest
from support.model_api.steps import (
    Cut,
    Delay,
    Fault,
    Garbage,
    GiveOutcome,
    Refuse,
    Reply,
    Say,
    Script,
    Stall,
    Step,
)
from support.model_api.strict import complaint


class _WasCut(Exception):
    """The connection must not be used any more."""


def answer_simply(request: ModelRequest) -> Reply:
    if request.wants_outcome:
        return [GiveOutcome({"complete": True, "message": "Done."})]
    return [Say("Hello.")]


class ModelApi:
    """Plays one reply a request, in the order given; then those of `otherwise`."""

    def __init__(self, *, otherwise: Script = answer_simply, port: int = 0) -> None:
        self._replies = deque[Reply | Script]()
        self.otherwise = otherwise
        self._port = port
        self._numbers = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._connections = set[asyncio.Task[None]]()
        self._news = asyncio.Event()
        #: All requests, in order; and those of them that the script replies to.
        self.received: list[ModelRequest] = []
        self.requests: list[ModelRequest] = []
        #: Problems of requests that it refused because the real APIs do.
        self.complaints: list[str] = []
        #: Some servers do not report usage.
        self.reports_usage = True

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=MAX_HEAD_BYTES
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def address(self) -> str:
        """The base URL; clients of OpenAI's API need `/v1` after it."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def largest(self) -> int:
        """The size of the largest request in bytes."""
        return max((request.size for request in self.received), default=0)

    @property
    def left(self) -> int:
        """The number of replies not played yet."""
        return len(self._replies)

    def then(self, *steps: Step) -> None:
        self._replies.append(steps)

    def then_as(self, script: Script) -> None:
        self._replies.append(script)

    def holds(self, text: str) -> bool:
        """Return whether a text appears anywhere in a request."""
        return any(request.holds(text) for request in self.received)

    async def wait_for_requests(self, count: int, *, within: float = 10) -> None:
        async with asyncio.timeout(within):
            while len(self.requests) < count:
                self._news.clear()
                await self._news.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        connection, request = Connection(reader, writer), None
        try:
            request = await connection.receive()
            if request is not None:
                self.received.append(request)
                await self._answer(connection, request)
        except (_WasCut, ConnectionError, asyncio.CancelledError):
            # Only closing the server cancels, and asyncio would report a cancelled task.
            connection.cut()
        finally:
            self._connections.discard(task)
            await connection.close()
            if request is not None:
                request.gone.set()

    async def _answer(self, connection: Connection, request: ModelRequest) -> None:
        match request.method, request.path:
            case "POST", path if path.endswith("/v1/messages/count_tokens"):
                await connection.answer(200, {"input_tokens": request.size // 4})
            case "POST", path if path.endswith(("/v1/messages", "/v1/chat/completions")):
                await self._play(connection, request, self._next_reply(request))
            case "GET", path if path.endswith("/v1/models"):
                await connection.answer(200, openai.MODELS)
            case _:
                await connection.answer(404, {"error": {"message": "Not found."}})

    def _next_reply(self, request: ModelRequest) -> Reply:
        if _is_aside(request):
            return [Say('{"title": "Aside"}')]
        self.requests.append(request)
        self._news.set()
        if wrong := complaint(request):
            self.complaints.append(wrong)
            return [Refuse(400, message=wrong)]
        script = self._replies.popleft() if self._replies else self.otherwise
        return script(request) if callable(script) else script

    async def _play(self, connection: Connection, request: ModelRequest, reply: Reply) -> None:
        number = next(self._numbers)
        is_anthropic = request.path.endswith("/messages")
        begins_with = reply[:1] if request.wants_stream else reply
        refuse = next((step for step in begins_with if isinstance(step, Refuse)), None)
        if refuse is not None:
            wait = {} if refuse.retry_after is None else {"retry-after": refuse.retry_after}
            body = (anthropic if is_anthropic else openai).error(refuse)
            await connection.answer(refuse.status, body, wait)
        elif request.wants_stream:
            pieces = self._stream(request, reply, number, is_anthropic=is_anthropic)
            await connection.stream(_with_faults(connection, pieces))
        else:
            await self._answer_whole(connection, request, reply, number, is_anthropic=is_anthropic)

    def _stream(
        self, request: ModelRequest, reply: Reply, number: int, *, is_anthropic: bool
    ) -> Iterator[bytes | Fault]:
        if reply and isinstance(reply[0], Garbage):
            return iter([reply[0]])
        if is_anthropic:
            return anthropic.stream(request, reply, number)
        options = request.body.get("stream_options") or {}
        tells = self.reports_usage and bool(options.get("include_usage"))
        return openai.stream(request, reply, number, reports_usage=tells)

    async def _answer_whole(
        self,
        connection: Connection,
        request: ModelRequest,
        reply: Reply,
        number: int,
        *,
        is_anthropic: bool,
    ) -> None:
        for step in reply:
            if isinstance(step, Cut | Stall | Delay):
                await _play_fault(connection, step)
            elif isinstance(step, Garbage):
                await connection.answer(200, step.data)
                return
        body: Any = (
            anthropic.whole(request, reply, number)
            if is_anthropic
            else openai.whole(request, reply, number, reports_usage=self.reports_usage)
        )
        await connection.answer(200, body)


def _is_aside(request: ModelRequest) -> bool:
    """Detect Claude Code's own requests, such as for a title, which are no turns of its agent.

    They go to the same model, without tools and without context management.
    """
    from_cli = request.headers.get("user-agent", "").startswith("claude-cli/")
    return from_cli and not request.tools and "context_management" not in request.body


async def _with_faults(
    connection: Connection, pieces: Iterator[bytes | Fault]
) -> AsyncIterator[bytes]:
    for piece in pieces:
        match piece:
            case bytes():
                yield piece
            case Garbage(data):
                yield data
                return
            case _:
                await _play_fault(connection, piece)


async def _play_fault(connection: Connection, fault: Cut | Stall | Delay) -> None:
    match fault:
        case Cut():
            raise _WasCut
        case Stall():
            await connection.wait_for_disconnect()
            raise _WasCut
        case Delay(until):
            await _wait_for(until, connection)


async def _wait_for(until: asyncio.Event | float, connection: Connection) -> None:
    """Wait while the client is connected."""
    waited_for = until.wait() if isinstance(until, asyncio.Event) else asyncio.sleep(until)
    waiting, left = asyncio.ensure_future(waited_for), connection.wait_for_disconnect()
    leaving = asyncio.ensure_future(left)
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise _WasCut
    finally:
        waiting.cancel()
        leaving.cancel()
        await asyncio.gather(waiting, leaving, return_exceptions=True)
