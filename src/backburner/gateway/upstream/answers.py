"""Answers over HTTP: read within limits, and passed on in a form that the SDK can read."""

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
from mcp_types import jsonrpc_message_adapter

from backburner.core.validation import replace_invalid_characters
from backburner.gateway.upstream.faults import Effect, Fault
from backburner.gateway.upstream.limits import AnswerLimit, count_values

SESSION_ID = "mcp-session-id"
JSON, EVENTS = "application/json", "text/event-stream"
#: Visible ASCII, as the protocol wants it.
_SESSION_ID_VALUE = re.compile(r"[\x21-\x7e]{1,4000}")


class GuardedStream(httpx2.AsyncByteStream):
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
                # Each line and each piece is work, even if it is empty.
                lines = chunk.count(b"\n") + chunk.count(b"\r") + 1
                size, values = size + len(chunk), values + count_values(chunk) + lines
                if self._limit.is_passed(size, values):
                    fault, has_ids = too_large(self._limit), False
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


def pass_on(
    request: httpx2.Request,
    response: httpx2.Response,
    *,
    content: bytes | None = None,
    stream: httpx2.AsyncByteStream | None = None,
) -> httpx2.Response:
    # Without parameters: they could name another character set, and Python has slow ones.
    headers = {"content-type": media_type(response)}
    if _SESSION_ID_VALUE.fullmatch(session_id := response.headers.get(SESSION_ID, "")):
        headers[SESSION_ID] = session_id
    return httpx2.Response(
        response.status_code, headers=headers, content=content, stream=stream, request=request
    )


def _chunks(response: httpx2.Response) -> AsyncIterator[bytes]:
    stream = response.stream
    if not isinstance(stream, httpx2.AsyncByteStream):
        raise TypeError
    return stream.__aiter__()


async def read_body(response: httpx2.Response, limit: AnswerLimit) -> tuple[bytes, bool]:
    """Read a body, and no more than a piece above the limit; return whether that is all of it."""
    body, pieces, is_whole = bytearray(), 0, True
    try:
        async for chunk in _chunks(response):
            body += chunk
            pieces += 1
            if limit.is_passed(len(body), pieces):
                is_whole = False
                break
    finally:
        await response.aclose()
    return bytes(body), is_whole


def media_type(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind if kind.isascii() else ""


def is_packed(response: httpx2.Response) -> bool:
    # We ask for none: a small answer may unpack to gigabytes.
    return response.headers.get("content-encoding", "identity").lower() != "identity"


def read_error(body: bytes) -> Mapping[str, Any] | None:
    """Read the JSON-RPC error that a server has sent with its status; None: it is none."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return None
    error = content.get("error") if isinstance(content, dict) else None
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return None
    message = replace_invalid_characters(str(error.get("message", "")))
    read = {"code": error["code"], "message": message}
    return {**read, "data": error["data"]} if _is_sendable(error.get("data")) else read


def _is_sendable(value: object) -> bool:
    """Return whether the SDK can read a value, as it cannot all numbers and texts of Python."""
    message = {"jsonrpc": "2.0", "id": 0, "result": {"data": value}}
    try:
        jsonrpc_message_adapter.validate_json(json.dumps(message, allow_nan=False))
    except (ValueError, RecursionError):
        return False
    return value is not None


def too_large(limit: AnswerLimit) -> Fault:
    size = f"{limit.size // 2**20} MB"
    return Fault(
        effect=Effect.ANSWERED,
        why=f"answered with more than {size} or too many values, so the answer was dropped.",
        hint="The call was made: do not repeat it, but ask for less.",
    )
