"""`Idempotency-Key`: a POST that is repeated because its response was lost is not executed again.

The same key with the same request gets the same response for 24 hours. Errors change nothing and
are not stored. Routes that return a secret must not use this: responses are stored in plain text.
"""

import hashlib
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from backburner.actions import idempotency
from backburner.api.http import auth
from backburner.api.http.dependencies import get_deps
from backburner.api.http.openapi import error_responses
from backburner.api.http.problems import Problem
from backburner.core.accounts import Scope
from backburner.core.errors import BackburnerError, MachineFailed
from backburner.core.ids import UserId
from backburner.ports import StoredResponse

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
MAX_KEY_CHARS = 200

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": f"Any text of up to {MAX_KEY_CHARS} characters. Repeating the request with the"
    " same key within 24 hours returns the same response without executing it again.",
    "schema": {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS},
}


class IdempotentRoute(APIRoute):
    """A route whose POST requests clients can repeat with the same key."""

    def __init__(self, *args: Any, **options: Any) -> None:
        if "POST" in (options.get("methods") or ()):
            extra = options.get("openapi_extra") or {}
            options["openapi_extra"] = {"parameters": [PARAMETER], **extra}
            options["responses"] = {**error_responses(409), **(options.get("responses") or {})}
        super().__init__(*args, **options)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handle_once(request: Request) -> Response:
            if request.method != "POST" or HEADER not in request.headers:
                return await handle(request)
            return await _handle_once(request, handle)

        return handle_once


async def _handle_once(request: Request, handle: Handler) -> Response:
    key = request.headers[HEADER]
    if not key or len(key) > MAX_KEY_CHARS or not (key.isascii() and key.isprintable()):
        raise Problem(
            400, f"Invalid {HEADER}.", f"Use 1 to {MAX_KEY_CHARS} printable ASCII characters."
        )
    caller = await auth.identify(request)
    if not caller.may(Scope.WRITE):
        # Nothing that another credential wrote is for one that may not write.
        return await handle(request)
    deps, digest = get_deps(request), await _digest(request)
    stored, is_lost = await idempotency.reserve(deps, caller.user, key, digest)
    if stored is not None:
        return _replay(stored, digest, is_lost=is_lost)
    response = await _handle(request, handle, caller.user, key)
    # A stream cannot be replayed: a repeated request learns that the first one was executed.
    body = getattr(response, "body", b"{}")
    await idempotency.store_response(
        deps, caller.user, key, response.status_code, bytes(body).decode()
    )
    return response


async def _handle(request: Request, handle: Handler, user: UserId, key: str) -> Response:
    try:
        return await handle(request)
    except MachineFailed:
        # The database may have committed before it failed, so the key stays in use.
        raise
    except (BackburnerError, Problem, RequestValidationError, HTTPException):
        await idempotency.release(get_deps(request), user, key)
        raise


def _replay(stored: StoredResponse, digest: str, *, is_lost: bool) -> Response:
    if stored.request_digest != digest:
        raise Problem(
            422, "This key was used for another request.", "Use a new key for each request."
        )
    if is_lost:
        raise Problem(
            409,
            "A request with this key was interrupted, and its outcome is unknown.",
            "Check whether it was executed; if not, send it with a new key.",
        )
    if stored.status is None:
        raise Problem(
            409,
            "A request with this key is still in progress.",
            "Try again.",
            retry_after=timedelta(seconds=1),
        )
    headers = {REPLAYED_HEADER: "true"}
    body = (stored.body or "").encode()
    return Response(body, stored.status, headers, media_type="application/json" if body else None)


async def _digest(request: Request) -> str:
    """Hash all that makes it the same request: method, address, format and body."""
    line = f"{request.method} {request.url.path}?{request.url.query}"
    head = (line, request.headers.get("content-type", ""), request.headers.get("accept", ""))
    digest = hashlib.sha256(repr(head).encode())
    digest.update(await request.body())
    return digest.hexdigest()
