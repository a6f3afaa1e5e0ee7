"""The way from the agent's program to the model: it holds the key, counts, and refuses.

One relay serves a process, on loopback. Every program gets a line of its own, with a secret in its
path. What comes over a line is paid for by the run that has it just then; if none does, or nothing
is left to be spent, the model is not called.
"""

import asyncio
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2
import structlog
import uvicorn

from backburner.engine.addresses import check_address
from backburner.engine.claude.call import (
    COUNT,
    MESSAGES,
    Call,
    Trouble,
    interruption,
    refusal,
    start_of,
)
from backburner.engine.claude.usage import Meter
from backburner.ports import Gate

LARGEST_REQUEST = 64 * 2**20
#: How long the model's server has to accept a connection, in seconds.
CONNECT = 10.0
NO_MORE = "Nothing more may be asked."

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Line:
    """One program's way to the model."""

    address: str
    #: Who pays; None: nobody, so that nothing may be asked.
    gate: Gate | None = None
    #: Nothing is left to be spent.
    spent: bool = False
    #: The turn is to end without another word.
    ended: bool = False
    #: Something was asked all the same.
    refused: bool = False
    #: Why the last call came to nothing, if it did.
    trouble: Trouble | None = None
    #: About how many tokens the model was told last, apart from system prompt and tools.
    context: int = 0

    def begin(self, gate: Gate) -> None:
        self.gate, self.trouble = gate, None
        self.spent = self.ended = self.refused = False


@dataclass(slots=True, kw_only=True)
class Relay:
    #: Where the model is.
    address: str
    #: What it is asked with; never told to anybody.
    headers: Mapping[str, str] = field(repr=False)
    #: How long the model may say nothing.
    stall: timedelta
    _lines: dict[str, Line] = field(default_factory=dict)
    _client: httpx2.AsyncClient = field(init=False, repr=False)
    _server: "_Server | None" = None
    _serving: "asyncio.Task[None] | None" = None
    _port: int = 0

    async def open(self) -> Line:
        """Open a line; it can be used once somebody pays."""
        if self._serving is None:
            self._start()
        secret = secrets.token_urlsafe(32)
        line = self._lines[secret] = Line(f"http://127.0.0.1:{self._port}/{secret}")
        return line

    def close_line(self, line: Line) -> None:
        self._lines.pop(line.address.rpartition("/")[2], None)
        line.gate = None

    async def close(self) -> None:
        self._lines.clear()
        if self._server is not None and self._serving is not None:
            self._server.should_exit = self._server.force_exit = True
            await self._serving
            await self._client.aclose()
            self._serving = None

    def _start(self) -> None:
        check_address(self.address)
        self._client = httpx2.AsyncClient(
            base_url=self.address,
            headers=self.headers,
            timeout=httpx2.Timeout(self.stall.total_seconds(), connect=CONNECT),
            trust_env=False,
        )
        listener = socket.create_server(("127.0.0.1", 0))
        # Whoever connects inherits it; asyncio sets it only for sockets that it makes itself, and
        # without it every short answer waits 40 ms for an acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._port = listener.getsockname()[1]
        self._server = _Server(
            uvicorn.Config(
                self._serve,
                loop="asyncio",
                http="h11",
                ws="none",
                interface="asgi3",
                proxy_headers=False,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
            )
        )
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]))

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        secret, _, rest = scope["path"].removeprefix("/").partition("/")
        line, path = self._lines.get(secret), f"/{rest}"
        if line is None or scope["method"] != "POST" or path not in (MESSAGES, COUNT):
            await _refuse(send, 404, "not_found_error", "There is nothing here.")
            return
        if line.gate is None or line.spent or line.ended:
            line.refused = True
            await _refuse(send, 403, "permission_error", NO_MORE)
            return
        if line.trouble is not None:
            # The program would try again in other ways; whether that helps is not for it to say.
            await _refuse(send, 503, "api_error", line.trouble.message)
            return
        body = await _read(receive)
        if body is None:
            await _refuse(send, 413, "request_too_large", "That is too much at once.")
            return
        call = Call.read(path, scope, body)
        if call is None:
            await _refuse(send, 400, "invalid_request_error", "That is not JSON.")
            return
        await self._ask_while_wanted(call, line, receive, send)

    async def _ask_while_wanted(self, call: Call, line: Line, receive: Receive, send: Send) -> None:
        """Ask the model, until it has answered or the program has lost interest."""
        asking = asyncio.create_task(self._ask(call, line, send))
        leaving = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asking, leaving):
                task.cancel()
            await asyncio.gather(asking, leaving, return_exceptions=True)

    async def _ask(self, call: Call, line: Line, send: Send) -> None:
        meter, answered, gate = Meter(streamed=call.streamed), False, line.gate
        try:
            asked = self._client.stream(
                "POST", call.target, content=call.body, headers=list(call.headers)
            )
            async with asked as answer:
                meter.streamed &= answer.is_success
                await send(start_of(answer))
                answered = True
                async for chunk in answer.aiter_bytes():
                    meter.read(chunk)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            line.trouble = _judge(call, answer, meter)
        except httpx2.HTTPError as error:
            line.trouble = interruption(error)
            if not answered:
                await _refuse(send, 502, "api_error", line.trouble.message)
            # Once it has begun, only a connection that breaks says that there is no more to come.
            raise
        finally:
            # Before the end of the answer: the next call may follow at once.
            await asyncio.shield(_pay(call, line, meter, gate))
        await send({"type": "http.response.body", "body": b""})


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # They are for the program as a whole.
        yield


def _judge(call: Call, answer: httpx2.Response, meter: Meter) -> Trouble | None:
    if not answer.is_success:
        return refusal(answer, meter.error())
    usage = meter.total()
    if usage is None and not call.counts:
        return Trouble(None, "The model's answer cannot be understood.")
    if not meter.is_whole and not call.counts:
        return Trouble(None, "The model's answer broke off.")
    return None


async def _pay(call: Call, line: Line, meter: Meter, gate: Gate | None) -> None:
    usage = None if call.counts else meter.total()
    if usage is None or gate is None:
        return
    told = usage.input + usage.cache_read + usage.cache_write
    line.context = round(told * call.share) + usage.output
    try:
        may_go_on = await gate.pay(call.model, usage)
    except Exception as error:  # noqa: BLE001 (whatever it was, nothing more is spent)
        _log.warning("a call of a model could not be written down", error=repr(error))
        may_go_on = False
    line.spent |= not may_go_on


async def _read(receive: Receive) -> bytes | None:
    """Read a whole request; None: it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > LARGEST_REQUEST:
            return None
        if not message.get("more_body"):
            return bytes(body)


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(send: Send, status: int, kind: str, message: str) -> None:
    error = {"type": "error", "error": {"type": kind, "message": message}}
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(error).encode()})
