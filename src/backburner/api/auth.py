"""Who sends a request: a token in its header, or the cookie of a browser that signed in."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Request

from backburner.actions import accounts
from backburner.actions.deps import Deps
from backburner.api.problems import Problem
from backburner.core.accounts import Caller, Scope

COOKIE = "backburner"


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
    kind, _, token = request.headers.get("authorization", "").partition(" ")
    secret = token.strip() if kind.lower() == "bearer" else request.cookies.get(COOKIE, "")
    caller = await accounts.identify(of(request), secret) if secret else None
    if caller is None:
        raise Problem(401, "You are not signed in.", "Send a token, or sign in.")
    return caller


TheDeps = Annotated[Deps, Depends(of)]
#: Whoever may see things, change them, or see to the whole.
Reader = Annotated[Caller, Depends(_requires(Scope.READ))]
Writer = Annotated[Caller, Depends(_requires(Scope.WRITE))]
Operator = Annotated[Caller, Depends(_requires(Scope.OPERATE))]
