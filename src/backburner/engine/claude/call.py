"""One call of the model on its way: what the program asks for, and what the model answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import httpx2

#: What the agent's program may ask for; whatever else it would like to reach is not there.
MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
#: All that is passed on of what the program says in its headers.
PASSED_ON = frozenset({b"accept", b"anthropic-beta", b"anthropic-version", b"content-type"})
#: An answer arrives unpacked, and goes on as it is.
DROPPED = frozenset({b"connection", b"content-encoding", b"content-length", b"transfer-encoding"})
LONGEST_WAIT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a call of the model came to nothing."""

    #: What it answered; None: nothing that could be used.
    status: int | None
    message: str
    retry_after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    target: str
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    model: str
    streamed: bool
    #: It only asks how long something is, which costs nothing.
    counts: bool
    #: The share of what is said in the whole request, apart from system prompt and tools.
    share: float

    @classmethod
    def read(cls, path: str, scope: Mapping[str, Any], body: bytes) -> Self | None:
        """Read what the program asks for; None: it cannot be understood."""
        try:
            asked = json.loads(body)
        except ValueError:
            return None
        if not isinstance(asked, dict):
            return None
        query = scope["query_string"].decode("latin-1")
        return cls(
            target=f"{path}?{query}" if query else path,
            headers=tuple(one for one in scope["headers"] if one[0] in PASSED_ON),
            body=body,
            model=str(asked.get("model", "")),
            streamed=asked.get("stream") is True,
            counts=path == COUNT,
            share=_share(asked, len(body)),
        )


def _share(asked: Mapping[str, Any], size: int) -> float:
    """Find the share of what is said by the rest, which does not grow: that is soon written."""
    rest = {name: value for name, value in asked.items() if name != "messages"}
    written = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))
    return max(0.0, 1 - len(written.encode(errors="replace")) / size)


def start_of(answer: httpx2.Response) -> dict[str, Any]:
    headers = [(name.lower(), value) for name, value in answer.headers.raw]
    return {
        "type": "http.response.start",
        "status": answer.status_code,
        "headers": [header for header in headers if header[0] not in DROPPED],
    }


def refusal(answer: httpx2.Response, message: str) -> Trouble:
    return Trouble(answer.status_code, message, _retry_after(answer.headers.get("retry-after")))


def interruption(error: httpx2.HTTPError) -> Trouble:
    match error:
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            return Trouble(None, "The model cannot be reached.")
        case httpx2.TimeoutException():
            return Trouble(None, "The model has stopped answering.")
        case _:
            return Trouble(None, "The connection to the model was lost.")


def _retry_after(text: str | None) -> timedelta | None:
    try:
        wait = timedelta(seconds=float(text or ""))
    except (ValueError, OverflowError):
        return None
    return min(max(wait, timedelta()), LONGEST_WAIT)
