"""Faults: why a request to a server has no usable answer, and whether it was made."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus

import httpx2

from backburner.core.connections.scopes import UNNAMED, name_scopes, read_scopes
from backburner.core.errors import BackburnerError, ConnectionFailed, NotAllowed, SignedOut

#: What a reply is told by, that we put in place of an answer.
FAULT_CODE = -32019
#: The status of requests that a server has surely not worked on, and may work on later.
REFUSED_FOR_NOW = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
#: Of addresses where there is something else, or nothing.
_NO_SERVER = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})
_NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_SCOPE = re.compile(r'\bscope\s*=\s*(?:"([^"]{1,2000})"|([^\s",]{1,200}))', re.IGNORECASE)
_PARAMETER = re.compile(r'\berror\s*=\s*"?([\w.-]{1,100})', re.IGNORECASE)


class Effect(StrEnum):
    NONE = "none"  #: The request was surely not made; another attempt may succeed.
    UNKNOWN = "unknown"  #: It may have been made.
    ANSWERED = "answered"  #: The server has dealt with it, or refused it.
    ENDED = "ended"  #: It was not made, and no attempt in this session will succeed.


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    effect: Effect
    #: The rest of a sentence that begins with the name of the server. Agents read it as our words,
    #: so it has none of the server's.
    why: str
    #: For the owner, if the server has not answered; else for agents too, in our words.
    hint: str = ""
    #: The server's own words, if it has reported an error.
    said: str = ""
    #: How long the server asked us to wait.
    retry_after: timedelta | None = None
    #: A new session is needed for another attempt.
    reopen: bool = False
    #: Another attempt would take too long.
    once: bool = False
    #: The sign-in is refused; empty: itself, else for these scopes that the server wants.
    scopes: tuple[str, ...] | None = None
    #: Begins the sentence in place of the name of the server.
    subject: str = ""
    #: Raised as it is.
    error: Exception | None = None


class FaultError(Exception):
    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.why)
        self.fault = fault


class Faults:
    """The faults of one session, by random keys: the SDK passes on only what JSON can hold.

    A server cannot make up a key, so it cannot pass off a reply of its own as a fault.
    """

    def __init__(self) -> None:
        self._kept: dict[str, Fault] = {}

    def keep(self, fault: Fault) -> str:
        key = secrets.token_hex(16)
        self._kept[key] = fault
        return key

    def take(self, key: object) -> Fault | None:
        return self._kept.pop(key, None) if isinstance(key, str) else None


def fault_of_exception(error: Exception, *, connecting: bool) -> Fault:
    """Describe what a transport has raised. `connecting`: the request changes nothing."""
    match error:
        case NotAllowed():
            why = f"cannot be used: {error.message}"
            return Fault(effect=Effect.ENDED, why=why, hint=error.hint)
        case ConnectionFailed(permanent=False):
            # The sign-in cannot be renewed for now, so the request was not sent.
            wait = error.retry_after
            return Fault(effect=Effect.NONE, why=error.message, retry_after=wait, error=error)
        case BackburnerError():
            return Fault(effect=Effect.ENDED, why=error.message, error=error)
        case httpx2.LocalProtocolError() | httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return Fault(effect=Effect.ENDED, why="was sent a request that is not valid HTTP.")
        case httpx2.ReadTimeout():
            effect = Effect.NONE if connecting else Effect.UNKNOWN
            return Fault(effect=effect, why="sent nothing for too long.")
        case httpx2.HTTPError():
            sent = not (connecting or isinstance(error, _NOT_SENT))
            reason = _describe(error)
            failed = "broke off the connection" if sent else "could not be reached"
            effect = Effect.UNKNOWN if sent else Effect.NONE
            if isinstance(error, httpx2.RemoteProtocolError):
                # It may quote the server.
                return Fault(effect=effect, why=f"{failed}.", hint=f"The reason: {reason}.")
            return Fault(effect=effect, why=f"{failed}: {reason}.")
        case _:
            return Fault(effect=Effect.ENDED, why="could not be asked.", error=error)


def _describe(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ConnectionRefusedError):
            return "Connection refused"
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".") or type(error).__name__


def fault_of_status(
    status: int,
    headers: Mapping[str, str],
    *,
    connecting: bool,
    lost_session: bool,
    address: str = "",
) -> Fault:
    """Describe a response of 400 and above."""
    said = describe_status(status)
    if status == HTTPStatus.UNAUTHORIZED:
        return signed_out("refused our sign-in")
    if status == HTTPStatus.FORBIDDEN and (wanted := wanted_scopes(headers)) is not None:
        return signed_out("wants further permissions", wanted)
    if status in REFUSED_FOR_NOW:
        wait = read_retry_after(headers)
        return Fault(effect=Effect.NONE, why=f"is busy ({said}).", retry_after=wait)
    if lost_session or (status == HTTPStatus.NOT_FOUND and not connecting):
        return Fault(effect=Effect.NONE, why=f"has ended the session ({said}).", reopen=True)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        effect = Effect.NONE if connecting else Effect.UNKNOWN
        return Fault(effect=effect, why=f"failed ({said}).")
    if connecting and status in _NO_SERVER:
        hint = "Check the path; it often ends with /mcp."
        why = f"is no MCP server ({said})."
        return Fault(effect=Effect.ENDED, subject=address, why=why, hint=hint)
    if connecting:
        hint = "Check the address of the connection, and that its owner may use the server."
        return Fault(effect=Effect.ENDED, why=f"refused to connect ({said}).", hint=hint)
    return Fault(effect=Effect.ANSWERED, why=f"refused the request ({said}).")


def signed_out(why: str, scopes: tuple[str, ...] = ()) -> Fault:
    return Fault(effect=Effect.ENDED, why=f"{why}.", scopes=scopes)


def wanted_scopes(headers: Mapping[str, str]) -> tuple[str, ...] | None:
    """Read the scopes that a server wants; None: that is not what it refuses for.

    Many servers do not name them.
    """
    challenge = headers.get("WWW-Authenticate", "")
    error = _PARAMETER.search(challenge)
    if error is None or error[1].lower() != "insufficient_scope":
        return None
    found = _SCOPE.search(challenge)
    return read_scopes((found[1] or found[2]).split() if found else ()) or (UNNAMED,)


def read_retry_after(headers: Mapping[str, str]) -> timedelta | None:
    """Read how long to wait: seconds, or a date that is compared with the server's own."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"\d{1,9}", text):
        return timedelta(seconds=int(text))
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("Date", ""))
    except (TypeError, ValueError):
        return None
    return max(wait, timedelta())


def describe_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def to_error(title: str, fault: Fault) -> Exception:
    """Make the error of a fault, which names the server."""
    if fault.error is not None:
        return fault.error
    message, hint = f"{fault.subject or title} {fault.why}", fault.hint
    if fault.said:
        # The message is repeated to agents; what a server says is for its owner.
        message, hint = f"{title} reported an error.", f"It said: {fault.said}"
    if fault.scopes is not None:
        names = name_scopes(fault.scopes)
        hint = f"It wants {names}. Sign in again." if names else "Sign in again."
        return SignedOut(message, hint=hint, scopes=fault.scopes)
    return ConnectionFailed(
        message,
        hint=hint,
        permanent=fault.effect is Effect.ENDED,
        retry_after=fault.retry_after,
    )
