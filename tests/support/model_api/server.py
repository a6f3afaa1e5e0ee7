"""A stand-in for the APIs of models, on loopback: it plays scripts and keeps all it was asked."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator, Iterator
from types import TracebackType
from typing import Any, Self

from support.model_api import anthropic, openai
from support.model_api.heard import Heard
from support.model_api.http import MOST_HEAD_BYTES, Connection
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
    """The connection is not to be used further."""


def answer_simply(heard: Heard) -> Reply:
    if heard.wants_outcome:
        return [GiveOutcome({"complete": True, "message": "Done."})]
    return [Say("Hello.")]


class ModelApi:
    """Plays one reply a request, in the order given; then whatever `otherwise` says."""

    def __init__(self, *, otherwise: Script = answer_simply, port: int = 0) -> None:
        self._replies = deque[Reply | Script]()
        self.otherwise = otherwise
        self._port = port
        self._numbers = itertools.count(1)
        self._server: asyncio.Server | None = None
        self._connections = set[asyncio.Task[None]]()
        self._news = asyncio.Event()
        #: Everything it was asked, in order; and what of it was for the model of the script.
        self.heard: list[Heard] = []
        self.requests: list[Heard] = []
        #: What was wrong with those that it refused of its own accord, as the real ones do.
        self.complaints: list[str] = []
        #: Some servers do not say what was used.
        self.tells_usage = True

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._serve, "127.0.0.1", self._port, limit=MOST_HEAD_BYTES
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
        """Where it is; OpenAI's clients want `/v1` behind it."""
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def largest(self) -> int:
        """The bytes of the largest request."""
        return max((heard.size for heard in self.heard), default=0)

    @property
    def left(self) -> int:
        """How many replies were not asked for yet."""
        return len(self._replies)

    def then(self, *steps: Step) -> None:
        self._replies.append(steps)

    def then_as(self, script: Script) -> None:
        self._replies.append(script)

    def holds(self, words: str) -> bool:
        """See whether some words stand anywhere in what it was asked."""
        return any(heard.holds(words) for heard in self.heard)

    async def wait_for_requests(self, count: int, *, within: float = 10) -> None:
        async with asyncio.timeout(within):
            while len(self.requests) < count:
                self._news.clear()
                await self._news.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        connection, heard = Connection(reader, writer), None
        try:
            heard = await connection.receive()
            if heard is not None:
                self.heard.append(heard)
                await self._answer(connection, heard)
        except (_WasCut, ConnectionError, asyncio.CancelledError):
            # Only the end of it all cancels, and asyncio would complain of a task that was.
            connection.cut()
        finally:
            self._connections.discard(task)
            await connection.close()
            if heard is not None:
                heard.gone.set()

    async def _answer(self, connection: Connection, heard: Heard) -> None:
        match heard.method, heard.path:
            case "POST", path if path.endswith("/v1/messages/count_tokens"):
                await connection.answer(200, {"input_tokens": heard.size // 4})
            case "POST", path if path.endswith(("/v1/messages", "/v1/chat/completions")):
                await self._play(connection, heard, self._next_reply(heard))
            case "GET", path if path.endswith("/v1/models"):
                await connection.answer(200, openai.MODELS)
            case _:
                await connection.answer(404, {"error": {"message": "There is nothing here."}})

    def _next_reply(self, heard: Heard) -> Reply:
        if _is_aside(heard):
            return [Say('{"title": "Aside"}')]
        self.requests.append(heard)
        self._news.set()
        if wrong := complaint(heard):
            self.complaints.append(wrong)
            return [Refuse(400, message=wrong)]
        script = self._replies.popleft() if self._replies else self.otherwise
        return script(heard) if callable(script) else script

    async def _play(self, connection: Connection, heard: Heard, reply: Reply) -> None:
        number = next(self._numbers)
        is_anthropic = heard.path.endswith("/messages")
        begins_with = reply[:1] if heard.wants_stream else reply
        refuse = next((step for step in begins_with if isinstance(step, Refuse)), None)
        if refuse is not None:
            wait = {} if refuse.retry_after is None else {"retry-after": refuse.retry_after}
            body = (anthropic if is_anthropic else openai).error(refuse)
            await connection.answer(refuse.status, body, wait)
        elif heard.wants_stream:
            pieces = self._stream(heard, reply, number, is_anthropic=is_anthropic)
            await connection.stream(_with_faults(connection, pieces))
        else:
            await self._answer_whole(connection, heard, reply, number, is_anthropic=is_anthropic)

    def _stream(
        self, heard: Heard, reply: Reply, number: int, *, is_anthropic: bool
    ) -> Iterator[bytes | Fault]:
        if reply and isinstance(reply[0], Garbage):
            return iter([reply[0]])
        if is_anthropic:
            return anthropic.stream(heard, reply, number)
        options = heard.body.get("stream_options") or {}
        tells = self.tells_usage and bool(options.get("include_usage"))
        return openai.stream(heard, reply, number, tells_usage=tells)

    async def _answer_whole(
        self, connection: Connection, heard: Heard, reply: Reply, number: int, *, is_anthropic: bool
    ) -> None:
        for step in reply:
            if isinstance(step, Cut | Stall | Delay):
                await _suffer(connection, step)
            elif isinstance(step, Garbage):
                await connection.answer(200, step.data)
                return
        body: Any = (
            anthropic.whole(heard, reply, number)
            if is_anthropic
            else openai.whole(heard, reply, number, tells_usage=self.tells_usage)
        )
        await connection.answer(200, body)


def _is_aside(heard: Heard) -> bool:
    """Tell what Claude Code asks for itself, such as a title, from the turns of its agent.

    The same model is asked, without tools and without the care for a context that grows.
    """
    from_cli = heard.headers.get("user-agent", "").startswith("claude-cli/")
    return from_cli and not heard.tools and "context_management" not in heard.body


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
                await _suffer(connection, piece)


async def _suffer(connection: Connection, fault: Cut | Stall | Delay) -> None:
    match fault:
        case Cut():
            raise _WasCut
        case Stall():
            await connection.wait_until_left()
            raise _WasCut
        case Delay(until):
            await _wait_for(until, connection)


async def _wait_for(until: asyncio.Event | float, connection: Connection) -> None:
    """Wait as long as somebody is there for whom to wait."""
    waited_for = until.wait() if isinstance(until, asyncio.Event) else asyncio.sleep(until)
    waiting, left = asyncio.ensure_future(waited_for), connection.wait_until_left()
    leaving = asyncio.ensure_future(left)
    try:
        await asyncio.wait({waiting, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            raise _WasCut
    finally:
        waiting.cancel()
        leaving.cancel()
        await asyncio.gather(waiting, leaving, return_exceptions=True)
