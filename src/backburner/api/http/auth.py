"""Authentication: a bearer token in the header, or the two halves of a browser's session.

One half is a cookie that scripts cannot read. Cookies know no ports, so a browser also shows it to
whatever else listens on this host: a page that a command serves, for example. So the other half is
kept by our page, for its own origin, and sent as a header. Neither opens anything alone. A link
cannot send a header: for downloads, a request with both halves makes an address that the cookie
opens for a minute.

Requests with a session also have to come from our own origin. A client sets the header of a token
itself, so requests with a token need no such check.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from backburner.actions.accounts import credentials, downloads
from backburner.actions.accounts.downloads import DownloadItem, HeldSecret
from backburner.api.http.caller_limits import get_limits
from backburner.api.http.dependencies import get_deps
from backburner.api.http.origins import check_origin, check_page
from backburner.api.http.problems import Problem
from backburner.core.accounts import Caller, CredentialKind, Scope, check_direct, scopes_of

SESSION_COOKIE = "backburner"
SESSION_HEADER = "x-backburner-session"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


async def identify(request: Request) -> Caller:
    """Identify the caller, by a token or a session. One request looks its credential up once."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        caller = request.state.caller = await _authenticate(request)
    return caller


async def identify_token(request: Request) -> Caller:
    """Identify the caller by the Authorization header alone, with a new lookup each time."""
    return await _find_caller(request, _read_token(request), CredentialKind.TOKEN)


async def identify_by_address(
    request: Request, item: str, secret: str
) -> tuple[Caller, DownloadItem]:
    """Identify the caller by the address of a download, and the cookie or token that made it."""
    if "authorization" in request.headers:
        await identify_token(request)
    held = read_held_secret(request)
    if not held.text:
        raise _not_signed_in()
    caller, wanted = await downloads.check_address(get_deps(request), item, secret, held)
    if caller.kind is CredentialKind.SESSION:
        get_limits(request).count_request(caller.credential)
        check_origin(request)
    return caller, wanted


def read_held_secret(request: Request) -> HeldSecret:
    """Return what comes with a plain link: a token if there is one, or the cookie."""
    if "authorization" in request.headers:
        return HeldSecret(CredentialKind.TOKEN, _read_token(request))
    return HeldSecret(CredentialKind.SESSION, request.cookies.get(SESSION_COOKIE, ""))


def split_session_secret(secret: str) -> tuple[str, str]:
    """Return the halves for the cookie and for the page, each too long to be guessed."""
    middle = len(secret) // 2
    return secret[:middle], secret[middle:]


def read_session_secret(request: Request) -> str:
    """Put the halves together; half a secret opens nothing."""
    halves = request.cookies.get(SESSION_COOKIE), request.headers.get(SESSION_HEADER)
    return "".join(half for half in halves if half) if all(halves) else ""


def _read_token(request: Request) -> str:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


async def _authenticate(request: Request) -> Caller:
    # With a header the cookie does not count: an invalid token is refused despite a valid session.
    if "authorization" in request.headers:
        return await identify_token(request)
    secret = read_session_secret(request)
    caller = await _find_caller(request, secret, CredentialKind.SESSION)
    check_origin(request)
    if request.method not in SAFE_METHODS:
        check_page(request)
    return caller


async def _find_caller(request: Request, secret: str, kind: CredentialKind) -> Caller:
    caller = await credentials.identify(get_deps(request), secret) if secret else None
    if caller is None or caller.kind is not kind:
        raise _not_signed_in()
    get_limits(request).count_request(caller.credential)
    return caller


def _not_signed_in() -> Problem:
    return Problem(401, "You are not signed in.", "Send a token, or sign in.")


def _require(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    async def require_scope(request: Request) -> Caller:
        caller = await identify(request)
        if scope is Scope.OPERATE and scope not in scopes_of(caller.role):
            raise Problem(403, "Only operators of this server may do this.")
        if not caller.may(scope):
            raise Problem(403, "This credential lacks a scope.", f"The request needs {scope}.")
        return caller

    return require_scope


def _require_direct_operator(act: str) -> Callable[[Request], Awaitable[Caller]]:
    async def require_direct_operator(request: Request) -> Caller:
        caller = await _require(Scope.OPERATE)(request)
        check_direct(caller, act)
        return caller

    return require_direct_operator


#: A caller whose credential has the scope.
Reader = Annotated[Caller, Depends(_require(Scope.READ))]
Writer = Annotated[Caller, Depends(_require(Scope.WRITE))]
Approver = Annotated[Caller, Depends(_require(Scope.APPROVE))]
MetricsReader = Annotated[Caller, Depends(_require(Scope.METRICS))]
Operator = Annotated[Caller, Depends(_require(Scope.OPERATE))]
#: An operator in person: for what makes credentials.
DirectOperator = Annotated[Caller, Depends(_require_direct_operator("create credentials"))]
#: The same, for what chooses where the keys of models are sent.
ModelOperator = Annotated[Caller, Depends(_require_direct_operator("set up models"))]
#: A caller with any valid credential.
AnyCaller = Annotated[Caller, Depends(identify)]
