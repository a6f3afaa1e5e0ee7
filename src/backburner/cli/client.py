"""Talks to a server over HTTP: what it answers as values, what it refuses as errors.

Every POST has a key of its own, so that one whose answer was lost is sent again and not done again.
"""

import http.client
import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlencode, urlsplit

from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    BadSetting,
    Conflict,
    LimitReached,
    MachineFailed,
    NotAllowed,
    NotFound,
)

#: Seconds without a sign of life; a stream says every 15 that it is still there.
PATIENCE = 60
#: Of a page: as much as there may be.
PAGE = 200
_CHUNK = 2**16
#: How often it is asked, a second or so apart, what became of something that a server still does.
MOST_LOOKS = 10
KEY, REPLAYED = "idempotency-key", "idempotency-replayed"
#: How a connection ends on which something was sent.
_BROKEN = (ConnectionResetError, BrokenPipeError, http.client.IncompleteRead)

T = TypeVar("T")


class NotSignedIn(NotAllowed):
    """You are not signed in."""

    exit_code = 5


class NoServer(MachineFailed):
    """No Backburner answers."""

    exit_code = 6


class Lost(NoServer):
    """The connection broke before the answer was there."""


class BeingAnswered(Conflict):
    """The server still does what it was asked for under this key."""

    def __init__(self, message: str = "", *, hint: str = "", wait: float = 1) -> None:
        super().__init__(message, hint=hint)
        self.wait = wait


_ERRORS: Mapping[int, type[BackburnerError]] = {
    400: BadRequest,
    401: NotSignedIn,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    413: BadRequest,
    422: BadRequest,
    429: LimitReached,
}


@dataclass(frozen=True, slots=True)
class Server:
    address: str
    token: str = field(repr=False)

    def get(self, path: str, **query: Any) -> Any:
        return self._ask("GET", _with(path, query))

    def post(self, path: str, body: Any = None) -> Any:
        """Send something that is done once, also where it has to be sent again."""
        key = _new_key()
        return _again(lambda: self._ask("POST", path, body, key=key))

    def post_once(self, path: str, body: Any = None) -> Any:
        """Send something whose answer no server keeps, because there is a secret in it."""
        return self._ask("POST", path, body, key=_new_key())

    def patch(self, path: str, body: Any) -> Any:
        return self._ask("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def items(self, path: str, *, limit: int | None = None, **query: Any) -> Iterator[Any]:
        """Read a list to its end, or as many of it as are wanted, a page at a time."""
        cursor, left = None, limit
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            page = self.get(path, **query, limit=size, cursor=cursor)
            yield from page["items"]
            left = None if left is None else left - len(page["items"])
            cursor = page["next"]
            if cursor is None:
                return

    def download(self, path: str, *, method: str = "GET") -> Iterator[bytes]:
        """Read an answer piece by piece; one that breaks off is an error."""
        key = _new_key() if method == "POST" else ""
        with self._answer(method, path, key=key) as answer:
            while piece := answer.read(_CHUNK):
                yield piece
            # Read like this, the library says nothing of what is missing at the end.
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)

    def stream(self, path: str, body: Any) -> Iterator[tuple[str, Any]]:
        """Send something and read the events that come of it: a name and what is said."""
        key, stream = _new_key(), "text/event-stream"
        with ExitStack() as held:
            answer = _again(
                lambda: held.enter_context(self._answer("POST", path, body, key=key, accept=stream))
            )
            if REPLAYED in answer.headers:
                yield "later", {"detail": "The connection was lost; what you said has arrived."}
            elif answer.headers.get_content_type() != stream:
                yield "answer", _read(answer)
            else:
                yield from _events(answer)

    def _ask(self, method: str, path: str, body: Any = None, *, key: str = "") -> Any:
        with self._answer(method, path, body, key=key) as answer:
            return _read(answer)

    @contextmanager
    def _answer(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str = "",
        accept: str = "application/json",
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"accept": accept, "user-agent": "backburner-cli"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if key:
            headers[KEY] = key
        if body is not None:
            headers["content-type"] = "application/json"
        data = None if body is None else json.dumps(body)
        try:
            with closing(_connect(self.address)) as connection:
                connection.request(method, urlsplit(self.address).path + path, data, headers)
                answer = connection.getresponse()
                if answer.status >= 300:
                    raise _refusal(answer)
                yield answer
        except (OSError, http.client.HTTPException) as error:
            kind = Lost if isinstance(error, _BROKEN) else NoServer
            raise kind(
                f"No Backburner answers at {self.address}: {_why(error)}.",
                hint="Start it with `backburner up`, or name another with --url.",
            ) from error


def _again(work: Callable[[], T]) -> T:
    """Do something under its key once more if the answer was lost, and wait while it is done."""
    try:
        return work()
    except Lost:
        pass
    for _ in range(MOST_LOOKS):
        try:
            return work()
        except BeingAnswered as busy:
            time.sleep(busy.wait)
    return work()


def _new_key() -> str:
    return secrets.token_urlsafe(16)


def _connect(address: str) -> http.client.HTTPConnection:
    where = check_address(address)
    kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
    return kind(where.hostname or "", where.port, timeout=PATIENCE)


def check_address(address: str) -> SplitResult:
    """Refuse an address that is none, or at which a token could be overheard."""
    where = urlsplit(address)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise BadSetting(
            f"{address} is not the address of a server.",
            hint="It looks like http://127.0.0.1:8484.",
        )
    if where.scheme == "http" and not _is_near(where.hostname):
        raise BadSetting(
            f"Your token would go to {where.hostname} for everybody on the way to read.",
            hint="Use https, or a tunnel to this machine.",
        )
    return where


def _is_near(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _with(path: str, query: Mapping[str, Any]) -> str:
    given = {name: _plain(value) for name, value in query.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(answer: http.client.HTTPResponse) -> Any:
    content = answer.read()
    try:
        return json.loads(content) if content else None
    except ValueError:
        raise NoServer("What answers is no Backburner.", hint="Check the address.") from None


def _refusal(answer: http.client.HTTPResponse) -> BackburnerError:
    """Make an error of a problem: what is wrong, and what would be right."""
    try:
        problem = json.loads(answer.read())
        detail, hint = str(problem["detail"]), str(problem.get("hint", ""))
        wrong = [f"{one['where']}: {one['what']}" for one in problem.get("errors", ())]
    except (ValueError, KeyError, TypeError):
        detail, hint, wrong = f"The server answered {answer.status}.", "", []
    wait = answer.headers.get("retry-after", "")
    if answer.status == 409 and wait.isdigit():
        return BeingAnswered(detail, hint=hint, wait=int(wait))
    kind = _ERRORS.get(answer.status, MachineFailed)
    if kind is NotSignedIn:
        hint = "Start `backburner up` with this data folder, or give a token with --token-file."
    return kind(detail, hint=" ".join([hint, *wrong]).strip())


def _events(answer: http.client.HTTPResponse) -> Iterator[tuple[str, Any]]:
    name, data = "message", ""
    for line in answer:
        text = line.decode().rstrip("\r\n")
        if not text and data:
            yield name, json.loads(data)
            name, data = "message", ""
        elif text.startswith("event:"):
            name = text.removeprefix("event:").strip()
        elif text.startswith("data:"):
            data += text.removeprefix("data:").strip()


def _why(error: Exception) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(said).lower().rstrip(".")
