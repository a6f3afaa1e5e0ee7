"""Talks to a server over HTTP: what it answers as values, what it refuses as errors."""

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
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


class NotSignedIn(NotAllowed):
    """You are not signed in."""

    exit_code = 5


class NoServer(MachineFailed):
    """No Backburner answers."""

    exit_code = 6


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
        return self._ask("POST", path, body)

    def patch(self, path: str, body: Any) -> Any:
        return self._ask("PATCH", path, body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)

    def put(self, path: str, body: Any) -> Any:
        return self._ask("PUT", path, body)

    def items(self, path: str, *, most: int | None = None, **query: Any) -> Iterator[Any]:
        """Read a list to its end, or as many of it as are wanted, a page at a time."""
        cursor, left = None, most
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
        with self._answer(method, path) as answer:
            while piece := answer.read(_CHUNK):
                yield piece
            # Read like this, the library says nothing of what is missing at the end.
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)

    def stream(self, path: str, body: Any) -> Iterator[tuple[str, Any]]:
        """Send something and read the events that come of it: a name and what is said."""
        with self._answer("POST", path, body, accept="text/event-stream") as answer:
            if answer.headers.get_content_type() != "text/event-stream":
                yield "answer", _read(answer)
                return
            yield from _events(answer)

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        with self._answer(method, path, body) as answer:
            return _read(answer)

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Any = None, *, accept: str = "application/json"
    ) -> Iterator[http.client.HTTPResponse]:
        headers = {"accept": accept, "user-agent": "backburner-cli"}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
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
            raise NoServer(
                f"No Backburner answers at {self.address}: {_why(error)}.",
                hint="Start it with `backburner up`, or name another with --url.",
            ) from error


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
