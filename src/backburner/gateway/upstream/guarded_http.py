"""The HTTP transport of a session: signs requests in, bounds answers, raises for no request.

An exception below the SDK would end the whole session, and the SDK keeps no HTTP status. So every
fault becomes a JSON-RPC error of the one request, with the key of a `Fault`.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Coroutine, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2

from backburner.gateway.transport import CheckedTransport
from backburner.gateway.upstream.faults import (
    FAULT_CODE,
    Effect,
    Fault,
    Faults,
    fault_of_exception,
    fault_of_status,
)
from backburner.gateway.upstream.limits import (
    ANSWER_LIMIT,
    MAX_ERROR_BYTES,
    MAX_STREAMS,
    MAX_WORDS_CHARS,
    AnswerLimit,
    count_values,
    find_limit,
)
from backburner.gateway.upstream.redaction import Redaction
from backburner.ports import Authorization

T = TypeVar("T")

#: Requests with which a session begins; they change nothing.
CONNECTING = frozenset({"initialize", "server/discover"})
SESSION_ID = "mcp-session-id"
JSON, EVENTS = "application/json", "text/event-stream"
#: Of the answer, what the SDK reads.
_KEPT_HEADERS = (SESSION_ID, "content-type")
#: The status of a session that a server does not know; some say it in words only.
_MAY_BE_LOST = frozenset({HTTPStatus.BAD_REQUEST, HTTPStatus.NOT_FOUND})
#: Conservative: the error of a call may be about a session of another kind.
_LOST = re.compile(
    rb"session[ _-]?id\b|\b(?:no|invalid|unknown|expired)(?: \w+)? session\b"
    rb"|\bsession (?:\w+ )?(?:not found|expired|invalid|unknown|terminated)\b",
    re.IGNORECASE,
)
#: Status with which the JSON-RPC error of a server does not tell more.
_STATUS_COUNTS = frozenset(
    {
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
    }
)
#: What agents are told of a server's own words.
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-z0-9.+-]{1,40}")
_HOST = re.compile(r"[a-z0-9.-]{1,100}")
_FOLLOWED = frozenset({HTTPStatus.TEMPORARY_REDIRECT, HTTPStatus.PERMANENT_REDIRECT})


@dataclass(frozen=True, slots=True)
class McpMessage:
    """The message of a request. Notifications and responses of ours have no id."""

    id: int | str | None
    method: str

    @classmethod
    def of(cls, body: bytes) -> "McpMessage":
        content = json.loads(body)
        is_request = "method" in content and "id" in content
        return cls(content["id"] if is_request else None, content.get("method", ""))

    @property
    def is_connecting(self) -> bool:
        return self.method in CONNECTING


class GuardedTransport(httpx2.AsyncBaseTransport):
    def __init__(
        self, inner: CheckedTransport, authorization: Authorization, faults: Faults
    ) -> None:
        self._inner = inner
        self._authorization = authorization
        self._faults = faults
        self._streams = 0
        #: The last headers that we signed in with.
        self.signed: Mapping[str, str] = {}
        self.redaction = Redaction()
        #: Of the probe that asks which revision a server speaks: an outage is no answer to that.
        self._probe_fault: Fault | None = None
        self._signing_in = set[asyncio.Task[Mapping[str, str]]]()

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def settle(self) -> None:
        """Wait for renewals: one that is cut off could lose the only refresh token."""
        if self._signing_in:
            await asyncio.wait(self._signing_in)

    async def renew(self) -> None:
        """Sign in again, because the server refuses the headers that it was sent."""
        self.signed = await self._to_the_end(self._authorization.renew(self.signed))

    async def check(self) -> bool:
        """Look into the headers that the server was sent last; return whether there are others."""
        before = self.signed
        self.signed = await self._to_the_end(self._authorization.check(before))
        return self.signed != before

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.method != "POST":
            return await self._send_bare(request)
        message = McpMessage.of(await request.aread())
        if message.method == "initialize" and self._probe_fault is not None:
            fault, self._probe_fault = self._probe_fault, None
            return self._reply(request, message, fault)
        try:
            response = await self._send(request)
            return await self._guard(request, message, response)
        except Exception as error:  # noqa: BLE001 (any would end the session)
            fault = fault_of_exception(error, connecting=message.is_connecting)
        return self._reply(request, message, fault)

    async def _send_bare(self, request: httpx2.Request) -> httpx2.Response:
        """Send what carries no message; the SDK catches what this raises."""
        if request.method == "GET":
            # Also one without a `Last-Event-ID`: a server may end its stream again and again.
            self._streams += 1
            if self._streams > MAX_STREAMS:
                raise httpx2.ReadError("The server has ended its streams too often.")
        request.headers.update(await self._to_the_end(self._authorization.headers()))
        response = await self._inner.handle_async_request(request)
        stream = _GuardedStream(response, ANSWER_LIMIT, last_event=None)
        return _answer(request, response, stream=stream)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        self.signed = await self._to_the_end(self._authorization.headers())
        request.headers.update(self.signed)
        response = await self._inner.handle_async_request(request)
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return response
        await _read(response, MAX_ERROR_BYTES)
        await self.renew()
        request.headers.update(self.signed)
        return await self._inner.handle_async_request(request)

    async def _to_the_end(
        self, signing_in: Coroutine[Any, Any, Mapping[str, str]]
    ) -> Mapping[str, str]:
        """Wait for headers; a cancellation of the request does not cancel a renewal."""
        task = asyncio.create_task(signing_in)
        self._signing_in.add(task)
        task.add_done_callback(self._signed_in)
        headers = await asyncio.shield(task)
        self.redaction.add(headers)
        return headers

    def _signed_in(self, task: asyncio.Task[Mapping[str, str]]) -> None:
        self._signing_in.discard(task)
        if not task.cancelled():
            # Nobody may be waiting any more.
            task.exception()

    async def _guard(
        self, request: httpx2.Request, message: McpMessage, response: httpx2.Response
    ) -> httpx2.Response:
        """Bound an answer; return one with a fault in place of one that is no answer."""
        status, kind = response.status_code, _media_type(response)
        limit = find_limit(message.method)
        if status >= HTTPStatus.BAD_REQUEST:
            return await self._refused(request, message, response)
        if status in _FOLLOWED and _stays(request, response):
            return response
        if message.id is None:
            await _read(response, MAX_ERROR_BYTES)
            return httpx2.Response(HTTPStatus.ACCEPTED, request=request)
        if kind == EVENTS and status == HTTPStatus.OK:
            stream = _GuardedStream(response, limit, last_event=lambda f: self._event(message, f))
            return _answer(request, response, stream=stream)
        body = b""
        if kind == JSON and status == HTTPStatus.OK and not _is_packed(response):
            body = await _read(response, limit.size)
            if not limit.is_passed(len(body), count_values(body)):
                return _answer(request, response, content=body)
        await response.aclose()
        fault = _too_large(limit) if body else _no_answer(request, response, message)
        return self._reply(request, message, fault)

    async def _refused(
        self, request: httpx2.Request, message: McpMessage, response: httpx2.Response
    ) -> httpx2.Response:
        status = response.status_code
        body = await _read(response, MAX_ERROR_BYTES)
        in_session = SESSION_ID in request.headers
        lost = in_session and status in _MAY_BE_LOST
        lost = lost and (status == HTTPStatus.NOT_FOUND or bool(_LOST.search(body)))
        error = None if lost or status in _STATUS_COUNTS else _read_error(body)
        if error is not None and message.id is not None:
            # It may have no id, if the server could not even read the request.
            reply = {"jsonrpc": "2.0", "id": message.id, "error": error}
            return httpx2.Response(HTTPStatus.OK, json=reply, request=request)
        fault = fault_of_status(
            status,
            response.headers,
            connecting=message.is_connecting,
            lost_session=lost,
            address=str(request.url.copy_with(userinfo=b"", query=None, fragment=None)),
        )
        return self._reply(request, message, fault)

    def _reply(self, request: httpx2.Request, message: McpMessage, fault: Fault) -> httpx2.Response:
        if message.id is None:
            return httpx2.Response(HTTPStatus.ACCEPTED, request=request)
        if message.method == "server/discover" and _is_outage(fault):
            self._probe_fault = fault
        return httpx2.Response(HTTPStatus.OK, json=self._error(message, fault), request=request)

    def _error(self, message: McpMessage, fault: Fault) -> dict[str, Any]:
        error = {"code": FAULT_CODE, "message": "fault", "data": self._faults.keep(fault)}
        return {"jsonrpc": "2.0", "id": message.id, "error": error}

    def _event(self, message: McpMessage, fault: Fault) -> bytes:
        # What has arrived of an event becomes one that the SDK does not know.
        return f"\nevent: cut\n\ndata: {json.dumps(self._error(message, fault))}\n\n".encode()


class _GuardedStream(httpx2.AsyncByteStream):
    """The events of a response, bounded; if they break off, the last one says so.

    A response whose events have ids can be taken up again, which is left to the SDK.
    """

    def __init__(self, response: httpx2.Response, limit: AnswerLimit, *, last_event: Any) -> None:
        self._response = response
        self._limit = limit
        self._last_event = last_event

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = values = 0
        before, has_ids = b"\n", False
        fault = Fault(effect=Effect.UNKNOWN, why="broke off its answer.")
        try:
            async for chunk in _chunks(self._response):
                size, values = size + len(chunk), values + count_values(chunk)
                if self._limit.is_passed(size, values):
                    fault, has_ids = _too_large(self._limit), False
                    break
                joined = before + chunk
                has_ids = has_ids or b"\nid:" in joined or b"\rid:" in joined
                before = joined[-4:]
                yield chunk
        except httpx2.HTTPError:
            if self._last_event is None:
                raise
        if self._last_event is not None and not has_ids:
            yield self._last_event(fault)

    async def aclose(self) -> None:
        await self._response.aclose()


def _answer(
    request: httpx2.Request,
    response: httpx2.Response,
    *,
    content: bytes | None = None,
    stream: httpx2.AsyncByteStream | None = None,
) -> httpx2.Response:
    headers = {name: response.headers[name] for name in _KEPT_HEADERS if name in response.headers}
    return httpx2.Response(
        response.status_code, headers=headers, content=content, stream=stream, request=request
    )


def _chunks(response: httpx2.Response) -> AsyncIterator[bytes]:
    stream = response.stream
    if not isinstance(stream, httpx2.AsyncByteStream):
        raise TypeError
    return stream.__aiter__()


async def _read(response: httpx2.Response, limit: int) -> bytes:
    """Read a body, and no more than a chunk above the limit."""
    body = bytearray()
    try:
        async for chunk in _chunks(response):
            body += chunk
            if len(body) > limit:
                break
    finally:
        await response.aclose()
    return bytes(body)


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_packed(response: httpx2.Response) -> bool:
    # We ask for none: a small answer may unpack to gigabytes.
    return response.headers.get("content-encoding", "identity").lower() != "identity"


def _read_error(body: bytes) -> Mapping[str, Any] | None:
    """Read the JSON-RPC error that a server has sent with its status; None: it is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return None
    return {**error, "message": str(error.get("message", ""))}


def _is_outage(fault: Fault) -> bool:
    return fault.effect is Effect.NONE or fault.scopes is not None or fault.error is not None


def _origin(place: httpx2.URL) -> str:
    host = place.raw_host.decode()
    if place.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        return ""
    return f", {place.scheme}://{host}{f':{place.port}' if place.port else ''}"


def _stays(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Return whether a redirect only adds or drops the slash at the end of an address.

    Another path or query of the host may be somebody else's, or allow more.
    """
    try:
        target = request.url.join(response.headers.get("location", ""))
    except (httpx2.InvalidURL, ValueError):
        return False
    return _place(target) == _place(request.url)


def _place(url: httpx2.URL) -> tuple[str, str, int | None, bytes, bytes]:
    path, _, query = url.raw_path.partition(b"?")
    return url.scheme, url.host, url.port, path.removesuffix(b"/"), query


def _too_large(limit: AnswerLimit) -> Fault:
    size = f"{limit.size // 2**20} MB"
    return Fault(
        effect=Effect.ANSWERED,
        why=f"answered with more than {size} or too many values, so the answer was dropped.",
        hint="The call was made: do not repeat it, but ask for less.",
    )


def _no_answer(request: httpx2.Request, response: httpx2.Response, message: McpMessage) -> Fault:
    if response.has_redirect_location:
        try:
            target = request.url.join(response.headers["location"])
            place = target.copy_with(userinfo=b"", query=None, fragment=None)
        except (httpx2.InvalidURL, ValueError):
            place = httpx2.URL("about:blank")
        return Fault(
            effect=Effect.ENDED,
            why=f"redirects to another address{_origin(place)}, which is not followed.",
            hint=f"Use its address if it is the one you want: {str(place)[:MAX_WORDS_CHARS]}",
        )
    kind = _media_type(response)
    if _is_packed(response):
        kind = "packed data"
    elif not _MEDIA_TYPE.fullmatch(kind):
        kind = "an unknown type" if kind else "nothing"
    why = f"answered with something that is not MCP ({response.status_code}, {kind})."
    if message.is_connecting:
        return Fault(effect=Effect.ENDED, why=why, hint="Check the address of the connection.")
    return Fault(effect=Effect.UNKNOWN, why=why)
