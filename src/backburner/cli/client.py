"""The HTTP client: responses as values, refusals as errors.

Every POST carries an idempotency key, so that it can be retried when its response was lost.
"""

import http.client
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from types import MappingProxyType
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    BadSetting,
    Conflict,
    ConnectionFailed,
    LimitReached,
    MachineFailed,
    NotAllowed,
    NotFound,
)

#: Seconds of silence; a stream sends a keep-alive every 15.
TIMEOUT_SECONDS = 60
#: The largest page that the API returns.
PAGE_SIZE = 200
_CHUNK_BYTES = 2**16
#: Retries while the server still works on an earlier attempt, a second or so apart.
MAX_RETRIES = 10
EVENT_STREAM = "text/event-stream"
IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED = "idempotency-key", "idempotency-replayed"
#: Errors after which the request may have reached the server.
_CONNECTION_LOST = (ConnectionResetError, BrokenPipeError, http.client.IncompleteRead)

T = TypeVar("T")


class NotSignedIn(NotAllowed):
    """You are not signed in."""

    exit_code = 5


class NoServer(MachineFailed):
    """The server cannot be reached."""

    exit_code = 6


class ConnectionLost(NoServer):
    """The connection was lost before the response arrived."""


class NoAnswer(MachineFailed):
    """The server began to answer, and has sent nothing for a long time."""


class InProgress(Conflict):
    """The server is still working on an earlier attempt of this request."""

    def __init__(self, message: str = "", *, hint: str = "", retry_after: float = 1) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


_ERRORS: Mapping[int, type[BackburnerError]] = {
    400: BadRequest,
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    422: BadRequest,
    429: LimitReached,
    502: ConnectionFailed,
}


@dataclass(frozen=True, slots=True)
class Server:
    address: str
    token: str = field(repr=False)
    timeout: float = TIMEOUT_SECONDS
    #: Finds it as it is now: it may have another address and token after a restart.
    find_again: "Callable[[], Server] | None" = field(default=None, compare=False, repr=False)

    def get(self, path: str, **query: Any) -> Any:
        return self._request("GET", _with_query(path, query))

    def post(self, path: str, body: Any = None) -> Any:
        """Send a request, and retry it if its response was lost."""
        key = _new_key()
        return _retry(lambda: self._request("POST", path, body, key=key))

    def upload(self, path: str, data: bytes) -> Any:
        """Send bytes, and send them again if the response was lost: they are the same then."""

        def send() -> Any:
            with self._response("POST", path, data=data) as response:
                return _read(response)

        return _retry(send)

    def post_once(self, path: str, body: Any = None) -> Any:
        """Send a request without retries: the server does not store responses with secrets."""
        return self._request("POST", path, body, key=_new_key())

    def patch(self, path: str, body: Any) -> Any:
        return self._request("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self._request("DELETE", path)

    def put(self, path: str, body: Any) -> Any:
        return self._request("PUT", path, body)

    def items(self, path: str, *, limit: int | None = None, **query: Any) -> Iterator[Any]:
        """Read a list page by page, up to the limit."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = PAGE_SIZE if left is None else min(left, PAGE_SIZE)
            page = self.get(path, **query, limit=size, cursor=cursor)
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            cursor = page["next"]
            if cursor is None:
                return

    def download(self, path: str, *, method: str = "GET") -> Iterator[bytes]:
        """Read a response in chunks; one that is cut short is an error."""
        key = _new_key() if method == "POST" else ""
        with self._response(method, path, key=key) as response:
            while chunk := response.read(_CHUNK_BYTES):
                yield chunk
            # With an explicit size, `read` does not report a missing end.
            if response.length:
                raise http.client.IncompleteRead(b"", response.length)

    def stream(self, path: str, body: Any) -> Iterator[tuple[str, Any]]:
        """Send a message and yield the events of its reply: a name and data."""
        key, stream = _new_key(), EVENT_STREAM
        with ExitStack() as stack:
            response = _retry(
                lambda: stack.enter_context(
                    self._response("POST", path, body, key=key, accept=stream)
                )
            )
            if IDEMPOTENCY_REPLAYED in response.headers:
                yield "later", {"detail": "Connection lost. The message was received."}
            elif response.headers.get_content_type() != stream:
                yield "answer", _read(response)
            else:
                yield from _events(response)

    def follow(self, path: str, *, after: str = "") -> Iterator[tuple[str, Any]]:
        """Yield the events of a stream: those after an id, or from now on."""
        headers = {"last-event-id": after} if after else {}
        with self._response("GET", path, accept=EVENT_STREAM, headers=headers) as response:
            yield from _events(response)

    def _request(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        with self._response(method, path, body, key=key) as response:
            return _read(response)

    @contextmanager
    def _response(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
        accept: str = "application/json",
        headers: Mapping[str, str] = MappingProxyType({}),
        data: bytes | None = None,
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"accept": accept, "user-agent": "backburner-cli", **headers}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if key:
            headers[IDEMPOTENCY_KEY] = key
        if data is not None:
            headers["content-type"] = "application/octet-stream"
        elif body is not None:
            headers["content-type"] = "application/json"
            data = json.dumps(body).encode()
        has_begun = False
        try:
            with closing(_connect(self.address, self.timeout)) as connection:
                connection.request(method, urlsplit(self.address).path + path, data, headers)
                with connection.getresponse() as response:
                    has_begun = True
                    if response.status >= 300:
                        raise _refusal(response)
                    yield response
        except (OSError, http.client.HTTPException) as error:
            if has_begun and isinstance(error, TimeoutError):
                raise NoAnswer(
                    f"Backburner at {self.address} has sent nothing for {self.timeout:g} seconds."
                ) from error
            kind = ConnectionLost if isinstance(error, _CONNECTION_LOST) else NoServer
            raise kind(
                f"Cannot reach Backburner at {self.address}: {_reason(error)}.",
                hint="Start it with `backburner up`, or select another server with --url.",
            ) from error


def _retry(send: Callable[[], T]) -> T:
    """Send a request again if its response was lost, and wait while it is in progress."""
    try:
        return send()
    except ConnectionLost:
        pass
    for _ in range(MAX_RETRIES):
        try:
            return send()
        except InProgress as error:
            time.sleep(error.retry_after)
    return send()


def _new_key() -> str:
    return secrets.token_urlsafe(16)


def _connect(address: str, timeout: float) -> http.client.HTTPConnection:
    url = check_address(address)
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    return kind(url.hostname or "", url.port, timeout=timeout)


def check_address(address: str) -> SplitResult:
    """Refuse an invalid address, and one where the token could be intercepted."""
    url = urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise BadSetting(
            f"{address} is not the address of a server.",
            hint="Use a URL such as http://127.0.0.1:8484.",
        )
    if url.scheme == "http" and not _is_loopback(url.hostname):
        raise BadSetting(
            f"Plain http to {url.hostname} would expose your token.",
            hint="Use https, or a tunnel to this machine.",
        )
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _with_query(path: str, query: Mapping[str, Any]) -> str:
    present = {name: _query_value(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(present)}" if present else path


def _query_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(response: http.client.HTTPResponse) -> Any:
    content = response.read()
    try:
        return json.loads(content) if content else None
    except ValueError:
        raise NoServer(
            "The server at this address is not Backburner.", hint="Check the address."
        ) from None


def _refusal(response: http.client.HTTPResponse) -> BackburnerError:
    """Turn a problem document into an error."""
    try:
        problem = json.loads(response.read())
        detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
        fields = [f"{error['where']}: {error['what']}" for error in problem.get("errors", ())]
    except (ValueError, KeyError, TypeError):
        detail, hint, fields = f"The server responded with status {response.status}.", "", []
    retry_after = response.headers.get("retry-after", "")
    if response.status == 409 and retry_after.isdigit():
        return InProgress(detail, hint=hint, retry_after=int(retry_after))
    kind = _ERRORS.get(response.status, MachineFailed)
    if kind is NotSignedIn:
        hint = "Restart `backburner up` with this data folder, or pass a token with --token-file."
    return kind(detail, hint=" ".join([hint, *fields]).strip())


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name, data = "message", ""
    for line in response:
        text = line.decode().rstrip("\r\n")
        if not text and data:
            yield name, json.loads(data)
            name, data = "message", ""
        elif text.startswith("event:"):
            name = text.removeprefix("event:").strip()
        elif text.startswith("data:"):
            data += text.removeprefix("data:").strip()


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).lower().rstrip(".")
