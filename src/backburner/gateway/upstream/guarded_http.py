"""The HTTP transport of a session: signs requests in, bounds answers, raises for no request.

An exception below the SDK would end the whole session, and the SDK keeps no HTTP status. So every
fault becomes a JSON-RPC error of the one request, with the key of a `Fault`.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2
import structlog

from backburner.core.connections.scopes import UNNAMED
from backburner.core.errors import BackburnerError
from backburner.gateway.transport import CheckedTransport
from backburner.gateway.upstream.answers import (
    EVENTS,
    JSON,
    SESSION_ID,
    GuardedStream,
    is_packed,
    media_type,
    pass_on,
    read_body,
    read_error,
    too_large,
)
from backburner.gateway.upstream.call_notes import CallNotes, current_call
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
    ERROR_LIMIT,
    MAX_STREAMS,
    MAX_WORDS_CHARS,
    count_values,
    find_limit,
)
from backburner.gateway.upstream.redaction import Redaction
from backburner.ports import Authorization

T = TypeVar("T")
_log = structlog.get_logger(__name__)

#: Requests with which a session begins; they change nothing.
CONNECTING = frozenset({"initialize", "server/discover"})
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
#: In the words of the library, after the name of its protocol.
_FIRST_STEP = ".send_request_headers.started"
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
            response = await self._send(request, message)
        except Exception as error:  # noqa: BLE001 (any would end the session)
            fault = fault_of_exception(error, connecting=message.is_connecting)
            return self._reply(request, message, fault)
        try:
            return await self._guard(request, message, response)
        except (httpx2.HTTPError, BackburnerError) as error:
            fault = fault_of_exception(error, connecting=message.is_connecting)
        except Exception as error:  # noqa: BLE001 (it is about what the server has sent)
            _log.warning("connection.answer_not_read", error=type(error).__name__)
            await response.aclose()
            fault = Fault(effect=Effect.UNKNOWN, why="answered in a form that is not valid.")
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
        stream = GuardedStream(response, ANSWER_LIMIT, last_event=None)
        return pass_on(request, response, stream=stream)

    async def _send(self, request: httpx2.Request, message: McpMessage) -> httpx2.Response:
        notes = current_call.get() if message.method == "tools/call" else None
        if notes is not None:
            request.extensions["trace"] = _note_sent(notes)
        self.signed = await self._to_the_end(self._authorization.headers())
        response = await self._send_signed(request, notes)
        if response.status_code != HTTPStatus.UNAUTHORIZED:
            return response
        if notes is not None:
            notes.is_sent = False
        await read_body(response, ERROR_LIMIT)
        await self.renew()
        return await self._send_signed(request, notes)

    async def _send_signed(
        self, request: httpx2.Request, notes: CallNotes | None
    ) -> httpx2.Response:
        if notes is not None:
            # Before it connects to the server for nothing.
            notes.check_wanted()
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
        status, kind = response.status_code, media_type(response)
        limit = find_limit(message.method)
        if status >= HTTPStatus.BAD_REQUEST:
            return await self._refused(request, message, response)
        if status in _FOLLOWED and (target := _stays(request, response)):
            await response.aclose()
            # Without its body, which would be read and unpacked to its end.
            there = {"location": str(target)}
            return httpx2.Response(status, headers=there, request=request)
        if message.id is None:
            await read_body(response, ERROR_LIMIT)
            return httpx2.Response(HTTPStatus.ACCEPTED, request=request)
        if kind == EVENTS and status == HTTPStatus.OK:
            stream = GuardedStream(response, limit, last_event=lambda f: self._event(message, f))
            return pass_on(request, response, stream=stream)
        if kind == JSON and status == HTTPStatus.OK and not is_packed(response):
            body, is_whole = await read_body(response, limit)
            if body and not (is_whole and not limit.is_passed(len(body), count_values(body))):
                return self._reply(request, message, too_large(limit))
            if body:
                return pass_on(request, response, content=body)
        await response.aclose()
        return self._reply(request, message, _no_answer(request, response, message))

    async def _refused(
        self, request: httpx2.Request, message: McpMessage, response: httpx2.Response
    ) -> httpx2.Response:
        status = response.status_code
        body, _ = await read_body(response, ERROR_LIMIT)
        in_session = SESSION_ID in request.headers
        lost = in_session and status in _MAY_BE_LOST
        lost = lost and (status == HTTPStatus.NOT_FOUND or bool(_LOST.search(body)))
        error = None if lost or status in _STATUS_COUNTS else read_error(body)
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
        fault = _redact(fault, self.redaction.clean)
        if message.method == "server/discover" and _is_outage(fault):
            self._probe_fault = fault
        return httpx2.Response(HTTPStatus.OK, json=self._error(message, fault), request=request)

    def _error(self, message: McpMessage, fault: Fault) -> dict[str, Any]:
        error = {"code": FAULT_CODE, "message": "fault", "data": self._faults.keep(fault)}
        return {"jsonrpc": "2.0", "id": message.id, "error": error}

    def _event(self, message: McpMessage, fault: Fault) -> bytes:
        # What has arrived of an event becomes one that the SDK does not know.
        return f"\nevent: cut\n\ndata: {json.dumps(self._error(message, fault))}\n\n".encode()


def _note_sent(notes: CallNotes) -> Callable[[str, Any], Awaitable[None]]:
    """Return what HTTP reports its steps to; before the first of a request, it may refuse.

    Between that and the note nothing else runs: a call that was given up is not sent, and one that
    is sent is known to be.
    """

    async def note(step: str, _details: object) -> None:
        if step.endswith(_FIRST_STEP):
            notes.check_wanted()
            notes.is_sent = True

    return note


def _redact(fault: Fault, clean: Callable[[str], str]) -> Fault:
    """Take secrets out of what a server has said otherwise than in a message."""
    scopes = fault.scopes
    if scopes:
        # One that is none of ours to ask for is not asked for.
        scopes = tuple(one for one in scopes if clean(one) == one) or (UNNAMED,)
    return replace(fault, why=clean(fault.why), hint=clean(fault.hint), scopes=scopes)


def _is_outage(fault: Fault) -> bool:
    return fault.effect is Effect.NONE or fault.scopes is not None or fault.error is not None


def _origin(place: httpx2.URL) -> str:
    host = place.raw_host.decode()
    if place.scheme not in ("http", "https") or not _HOST.fullmatch(host):
        return ""
    return f", {place.scheme}://{host}{f':{place.port}' if place.port else ''}"


def _stays(request: httpx2.Request, response: httpx2.Response) -> httpx2.URL | None:
    """Return the target of a redirect that only adds or drops the slash at the end of an address.

    Another path or query of the host may be somebody else's, or allow more.
    """
    try:
        target = request.url.join(response.headers.get("location", ""))
    except (httpx2.InvalidURL, ValueError):
        return None
    return target if _place(target) == _place(request.url) else None


def _place(url: httpx2.URL) -> tuple[str, str, int | None, bytes, bytes]:
    path, _, query = url.raw_path.partition(b"?")
    return url.scheme, url.host, url.port, path.removesuffix(b"/"), query


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
    kind = media_type(response)
    if is_packed(response):
        kind = "packed data"
    elif not _MEDIA_TYPE.fullmatch(kind):
        kind = "an unknown type" if kind else "nothing"
    why = f"answered with something that is not MCP ({response.status_code}, {kind})."
    if message.is_connecting:
        return Fault(effect=Effect.ENDED, why=why, hint="Check the address of the connection.")
    return Fault(effect=Effect.UNKNOWN, why=why)
