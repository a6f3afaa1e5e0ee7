"""A proxy between Claude Code programs and the model: it adds the key, meters, and refuses calls.

One relay serves a process, on loopback. Every program gets a line of its own, with a secret in its
path. Calls over a line are paid for by the run that uses it at the time; without one, or once its
allowance is used up, the model is not called.
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

from backburner.core.errors import EngineFailed
from backburner.engine.addresses import check_address
from backburner.engine.claude.call import (
    COUNT,
    MESSAGES,
    ModelCall,
    ModelFailure,
    interruption,
    refusal,
    response_start,
)
from backburner.engine.claude.usage import UsageMeter
from backburner.ports import Gate

MAX_REQUEST_BYTES = 64 * 2**20
#: For connecting to the model's server.
CONNECT_SECONDS = 10.0
NOT_ALLOWED = "No further calls are allowed."

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class Line:
    """One program's connection to the model."""

    address: str
    #: Instead of those of the relay, with the key of the user who pays.
    own_headers: Mapping[str, str] | None = field(default=None, repr=False)
    #: Of the run that pays; None: no calls are allowed.
    gate: Gate | None = None
    #: The allowance is used up.
    spent: bool = False
    #: The turn is to end without further calls.
    ended: bool = False
    #: A call was refused because of the above.
    refused: bool = False
    #: Why the last call failed, if it did.
    failure: ModelFailure | None = None
    #: Why the model ended its last response.
    stop_reason: str | None = None
    #: Tokens of the session in the last call, estimated, without system prompt and tools.
    context: int = 0

    def begin(self, gate: Gate) -> None:
        self.gate, self.failure, self.stop_reason = gate, None, None
        self.spent = self.ended = self.refused = False


@dataclass(slots=True, kw_only=True)
class Relay:
    #: Of the model's API.
    address: str
    #: Sent to the model only; they hold its key.
    headers: Mapping[str, str] = field(repr=False)
    #: Timeout for a silent model.
    stall: timedelta
    _lines: dict[str, Line] = field(default_factory=dict)
    _client: httpx2.AsyncClient = field(init=False, repr=False)
    _server: "_Server | None" = None
    _serving: "asyncio.Task[None] | None" = None
    _port: int = 0

    async def open(self) -> Line:
        """Open a line; calls are allowed once it has a gate."""
        if self._serving is None:
            try:
                self._start()
            except OSError as error:
                raise EngineFailed(
                    f"Claude Code could not be connected: {error.strerror}."
                ) from error
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
            timeout=httpx2.Timeout(self.stall.total_seconds(), connect=CONNECT_SECONDS),
            trust_env=False,
        )
        listener = socket.create_server(("127.0.0.1", 0))
        # Accepted sockets inherit it. asyncio sets it only for sockets that it makes itself, and
        # without it every short response waits 40 ms for an acknowledgement.
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
            await _refuse(send, 404, "not_found_error", "Not found.")
            return
        if line.gate is None or line.spent or line.ended:
            line.refused = True
            await _refuse(send, 403, "permission_error", NOT_ALLOWED)
            return
        if line.failure is not None:
            # The program would retry in other ways; retries are decided by the run.
            await _refuse(send, 503, "api_error", line.failure.message)
            return
        body = await _read_body(receive)
        if body is None:
            await _refuse(send, 413, "request_too_large", "The request is too large.")
            return
        call = ModelCall.read(path, scope, body)
        if call is None:
            await _refuse(send, 400, "invalid_request_error", "The request is not JSON.")
            return
        await self._ask_until_disconnect(call, line, receive, send)

    async def _ask_until_disconnect(
        self, call: ModelCall, line: Line, receive: Receive, send: Send
    ) -> None:
        """Call the model, until it has responded or the program has disconnected."""
        asking = asyncio.create_task(self._ask(call, line, send))
        leaving = asyncio.create_task(_disconnect(receive))
        try:
            await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (asking, leaving):
                task.cancel()
            await asyncio.gather(asking, leaving, return_exceptions=True)

    async def _ask(self, call: ModelCall, line: Line, send: Send) -> None:
        meter, answered, gate = UsageMeter(streamed=call.streamed), False, line.gate
        try:
            # Of one key only: a client with headers of its own would send both.
            own = self.headers if line.own_headers is None else line.own_headers
            keys = [(name.encode(), value.encode()) for name, value in own.items()]
            request = self._client.stream(
                "POST", call.target, content=call.body, headers=[*call.headers, *keys]
            )
            async with request as response:
                meter.streamed &= response.is_success
                await send(response_start(response))
                answered = True
                async for chunk in response.aiter_bytes():
                    meter.read(chunk)
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            line.failure = _judge(call, response, meter)
            line.stop_reason = line.stop_reason if call.counts else meter.stop_reason
        except httpx2.HTTPError as error:
            line.failure = interruption(error)
            if not answered:
                await _refuse(send, 502, "api_error", line.failure.message)
            # Once the response has started, only a broken connection can report the failure.
            raise
        finally:
            # Before the end of the response: the next call may follow immediately.
            await asyncio.shield(_record_usage(call, line, meter, gate))
        await send({"type": "http.response.body", "body": b""})


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # Signals are handled by the process as a whole.
        yield


def _judge(call: ModelCall, response: httpx2.Response, meter: UsageMeter) -> ModelFailure | None:
    if not response.is_success:
        return refusal(response, meter.error())
    usage = meter.total()
    if usage is None and not call.counts:
        return ModelFailure(None, "The model's response cannot be read.")
    if not meter.is_complete and not call.counts:
        return ModelFailure(None, "The model's response was cut off.")
    return None


async def _record_usage(call: ModelCall, line: Line, meter: UsageMeter, gate: Gate | None) -> None:
    usage = None if call.counts else meter.total()
    if usage is None or gate is None:
        return
    sent = usage.input + usage.cache_read + usage.cache_write
    line.context = round(sent * call.share) + usage.output
    try:
        may_continue = await gate.pay(call.model, usage)
    except Exception as error:  # noqa: BLE001 (after any failure, no more is spent)
        _log.warning("usage.record_failed", model=call.model, error=repr(error))
        may_continue = False
    line.spent |= not may_continue


async def _read_body(receive: Receive) -> bytes | None:
    """Read a whole request; None if it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_REQUEST_BYTES:
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
