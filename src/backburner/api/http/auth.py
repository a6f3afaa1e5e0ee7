"""Who sends a request: a token in its header, or the cookie of a browser that signed in.

A browser sends the cookie along whoever made the page, so whatever comes with one has to show
that the page was ours. A token is put into the header by hand, and needs none of that.
"""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from backburner.actions.accounts import credentials
from backburner.actions.deps import Deps
from backburner.api.http.origins import check_origin, check_page
from backburner.api.http.problems import Problem
from backburner.core.accounts import Caller, CredentialKind, Scope

COOKIE = "backburner"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


def of(request: Request) -> Deps:
    """Give what the actions work with; it is put there when the API is built."""
    deps: Deps = request.app.state.deps
    return deps


def _requires(scope: Scope) -> Callable[[Request], Awaitable[Caller]]:
    async def require(request: Request) -> Caller:
        caller = await identify(request)
        if not caller.may(scope):
            raise Problem(403, "This credential is not good for that.", f"It needs {scope}.")
        return caller

    return require


async def identify(request: Request) -> Caller:
    """Find out who it is; a header that is no good is not made up for by a cookie that is."""
    if "authorization" in request.headers:
        return await identify_token(request)
    caller = await _identify(request, request.cookies.get(COOKIE, ""), CredentialKind.SESSION)
    check_origin(request)
    if request.method not in SAFE:
        check_page(request)
    return caller


async def identify_token(request: Request) -> Caller:
    """Find out whose program it is, by the header alone."""
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    shown = secret.strip() if scheme.lower() == "bearer" else ""
    return await _identify(request, shown, CredentialKind.TOKEN)


async def _identify(request: Request, secret: str, kind: CredentialKind) -> Caller:
    caller = await credentials.identify(of(request), secret) if secret else None
    if caller is None or caller.kind is not kind:
        raise Problem(401, "You are not signed in.", "Send a token, or sign in.")
    return caller


TheDeps = Annotated[Deps, Depends(of)]
#: Whoever may see things, change them, or see to the whole.
Reader = Annotated[Caller, Depends(_requires(Scope.READ))]
Writer = Annotated[Caller, Depends(_requires(Scope.WRITE))]
Operator = Annotated[Caller, Depends(_requires(Scope.OPERATE))]
#: Whoever has anything to show.
Anybody = Annotated[Caller, Depends(identify)]
