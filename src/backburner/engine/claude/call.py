"""One call of the model through the relay: the program's request, and the model's response."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import httpx2

#: The only paths that the program can reach.
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
#: The only headers of the program that are forwarded.
FORWARDED_HEADERS = frozenset({b"accept", b"anthropic-beta", b"anthropic-version", b"content-type"})
#: A response arrives decompressed and is sent on uncompressed.
DROPPED_HEADERS = frozenset(
    {b"connection", b"content-encoding", b"content-length", b"transfer-encoding"}
)
MAX_RETRY_AFTER = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """Why a call of the model failed."""

    #: Of the response; None if there was none that could be used.
    status: int | None
    message: str
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    model: str
    streamed: bool
    #: It only counts tokens, which costs nothing.
    counts: bool
    #: The share of the messages in the request, without system prompt and tools.
    share: float

    @classmethod
    def read(cls, path: str, scope: Mapping[str, Any], body: bytes) -> Self | None:
        """Read a request; None if it is not a JSON object."""
        try:
            request = json.loads(body)
        except ValueError:
            return None
        if not isinstance(request, dict):
            return None
        query = scope["query_string"].decode("latin-1")
        return cls(
            target=f"{path}?{query}" if query else path,
            headers=tuple(header for header in scope["headers"] if header[0] in FORWARDED_HEADERS),
            body=body,
            model=str(request.get("model", "")),
            streamed=request.get("stream") is True,
            counts=path == COUNT,
            share=_share(request, len(body)),
        )


def _share(request: Mapping[str, Any], size: int) -> float:
    """Compute the share of the messages from the size of the rest, which is small."""
    rest = {name: value for name, value in request.items() if name != "messages"}
    written = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    return max(0.0, 1 - len(written.encode(errors="replace")) / size)


def response_start(response: httpx2.Response) -> dict[str, Any]:
    headers = [(name.lower(), value) for name, value in response.headers.raw]
    return {
        "type": "http.response.start",
        "status": response.status_code,
        "headers": [header for header in headers if header[0] not in DROPPED_HEADERS],
    }


def refusal(response: httpx2.Response, message: str) -> ModelFailure:
    return ModelFailure(
        response.status_code, message, _retry_after(response.headers.get("retry-after"))
    )


def interruption(error: httpx2.HTTPError) -> ModelFailure:
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return ModelFailure(None, "The model cannot be reached.")
        case httpx2.TimeoutException():
            return ModelFailure(None, "The model stopped responding.")
        case _:
            return ModelFailure(None, "The connection to the model was lost.")


def _retry_after(text: str | None) -> timedelta | None:
    try:
        wait = timedelta(seconds=float(text or ""))
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta()), MAX_RETRY_AFTER)
