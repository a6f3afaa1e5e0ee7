"""Between the SDK and a transport: what a server sends is made harmless before the SDK reads it.

To the SDK, one tool that is not valid costs the whole list, and one part of a result the whole
result. So it gets the valid tools, and of results only a receipt; the results themselves wait here.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp_types import (
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    ListToolsResult,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from backburner.gateway.upstream.definitions import BAD_HEADERS, ToolCollection
from backburner.gateway.upstream.elicitation import TOO_MANY
from backburner.gateway.upstream.faults import Effect, Fault, Faults
from backburner.gateway.upstream.limits import (
    MAX_INPUT_REQUESTS,
    MAX_INPUT_VALUES,
    MAX_SERVER_REQUESTS,
)
from backburner.gateway.upstream.redaction import Redaction

#: The two streams of a transport, as the SDK has them.
Streams = AbstractAsyncContextManager[tuple[Any, Any]]
BAD_INPUT = "The server asks the user in a form that is not valid, so the call was not completed."
#: In the receipt of a result, the key of the result.
RECEIPT = "backburner/receipt"


@dataclass
class Wire:
    """One connection below the SDK; it is entered as a transport is."""

    streams: Streams
    faults: Faults
    redaction: Redaction = field(default_factory=Redaction)
    #: Why the transport has ended, and what else there is to say about it.
    why_ended: Callable[[], Fault | None] = lambda: None
    remark: Callable[[], str] = lambda: ""
    #: Why the connection has ended; None: it has not.
    ended: Fault | None = None
    tools_changed: bool = False
    #: The list that is being read, page by page.
    collection: ToolCollection = field(default_factory=ToolCollection)
    _methods: dict[str, str] = field(default_factory=dict)
    _results: dict[str, dict[str, Any]] = field(default_factory=dict)
    _server_requests: int = 0

    async def __aenter__(self) -> tuple[Any, Any]:
        reading, writing = await self.streams.__aenter__()
        return _Reading(reading, self), _Writing(writing, self)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        self._results.clear()
        return await self.streams.__aexit__(kind, error, trace)

    def take(self, receipt: object) -> dict[str, Any] | None:
        """Return the result of a call, as the server sent it."""
        key = receipt.get(RECEIPT) if isinstance(receipt, dict) else None
        return self._results.pop(key, None) if isinstance(key, str) else None

    def note_accepted(self, accepted: ListToolsResult, offered: Sequence[str]) -> None:
        """Leave out what the SDK has dropped of a page."""
        if dropped := set(offered) - {tool.name for tool in accepted.tools}:
            self.collection.drop(dropped, BAD_HEADERS)

    def note_end(self) -> None:
        if self.ended is None:
            plain = Fault(effect=Effect.UNKNOWN, why="ended the connection.", reopen=True)
            self.ended = self.why_ended() or plain

    def sent(self, item: SessionMessage) -> None:
        match item.message:
            case JSONRPCRequest(id=request_id, method=method):
                self._methods[_key(request_id)] = method
            case JSONRPCNotification(method="notifications/cancelled", params=dict(params)):
                # Nobody waits for it any more, so it must not be kept.
                self._methods.pop(_key(params.get("requestId")), None)

    async def received(self, item: SessionMessage | Exception) -> SessionMessage | None:
        """Return what the SDK gets; None: nothing."""
        if isinstance(item, Exception):
            return None
        self._redact(item.message)
        match item.message:
            case JSONRPCResponse(id=request_id) as response:
                await self._replace(self._methods.pop(_key(request_id), ""), response)
            case JSONRPCError(id=request_id):
                self._methods.pop(_key(request_id), None)
            case JSONRPCNotification(method="notifications/cancelled"):
                pass
            case JSONRPCNotification(method=method):
                # Progress and log lines are for people who watch a call; nobody does.
                self.tools_changed |= method == "notifications/tools/list_changed"
                return None
            case JSONRPCRequest():
                self._server_requests += 1
                if self._server_requests > MAX_SERVER_REQUESTS:
                    return None
        return item

    def _redact(self, message: JSONRPCMessage) -> None:
        clean = self.redaction.clean
        match message:
            case JSONRPCResponse():
                message.result = clean(message.result)
            case JSONRPCError(error=error):
                error.message, error.data = clean(error.message), clean(error.data)
            case JSONRPCRequest():
                message.params = clean(message.params)

    async def _replace(self, method: str, response: JSONRPCResponse) -> None:
        result = response.result
        if method == "tools/list":
            accepted = await self.collection.add_page(result.get("tools"))
            cursor = result.get("nextCursor")
            kept = {"nextCursor": cursor} if isinstance(cursor, str) else {}
            hints = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            response.result = {"tools": accepted, **kept, **hints}
        elif method == "tools/call" and not _wants_input(result):
            key = secrets.token_hex(16)
            self._results[key] = result
            meta = {RECEIPT: key}
            response.result = {"content": [], "resultType": "complete", "_meta": meta}


def _key(request_id: object) -> str:
    """Return what is the same for all ways to write a number, as it is to the SDK."""
    try:
        return str(int(str(request_id)))
    except ValueError:
        return str(request_id)


def _wants_input(result: dict[str, Any]) -> bool:
    """Recognise a request for input; one that is not valid becomes a failed result."""
    if result.get("resultType") != "input_required":
        return False
    requests = result.get("inputRequests")
    if isinstance(requests, dict) and len(requests) > MAX_INPUT_REQUESTS:
        return _refuse(result, TOO_MANY)
    if _has_more_values(result, MAX_INPUT_VALUES):
        return _refuse(result, BAD_INPUT)
    try:
        validate_server_result("tools/call", LATEST_MODERN_VERSION, result)
    except ValidationError:
        return _refuse(result, BAD_INPUT)
    return True


def _refuse(result: dict[str, Any], why: str) -> bool:
    result.clear()
    result |= {"content": [{"type": "text", "text": why}], "isError": True}
    return False


def _has_more_values(value: object, limit: int) -> bool:
    """Count values no further than to a limit: to check them takes much longer."""
    waiting, count = [value], 0
    while waiting and count <= limit:
        match waiting.pop():
            case dict() as found:
                waiting.extend(found.values())
            case list() as found:
                waiting.extend(found)
        count += 1
    return count > limit


class _Reading:
    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Any:
        while True:
            item = await self._wire.received(await self._stream.receive())
            if item is not None:
                return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            while True:
                item = await self._wire.received(await anext(self._stream))
                if item is not None:
                    return item
        except StopAsyncIteration:
            self._wire.note_end()
            raise

    def close(self) -> None:
        self._stream.close()

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(*details)
        return ended


class _Writing:
    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def send(self, item: SessionMessage) -> None:
        self._wire.sent(item)
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *details: object) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(*details)
        return ended
