"""`Idempotency-Key`: a POST that is sent again because its answer was lost is not done again.

The same key with the same request gets the same answer for 24 hours. A refusal changes nothing and
is not kept. Routes whose answer holds a secret must not use this: answers are stored as they are.
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
from backburner.api.http.problems import Problem
from backburner.core.errors import BackburnerError, MachineFailed
from backburner.core.ids import UserId
from backburner.ports import StoredResponse

HEADER = "Idempotency-Key"
LONGEST = 200
REPLAYED = "Idempotency-Replayed"

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
PARAMETER: dict[str, Any] = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "description": "Any text of up to 200 characters. The same request with the same key is done"
    " once, and answered in the same way for 24 hours.",
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST},
}


class KeyedRoute(APIRoute):
    """Lets those who send a POST mark it, so that they can send it again."""

    def __init__(self, *args: Any, **more: Any) -> None:
        if "POST" in (more.get("methods") or ()):
            more["openapi_extra"] = {"parameters": [PARAMETER], **(more.get("openapi_extra") or {})}
        super().__init__(*args, **more)

    def get_route_handler(self) -> Handler:
        handle = super().get_route_handler()

        async def handle_once(request: Request) -> Response:
            if request.method != "POST" or HEADER not in request.headers:
                return await handle(request)
            return await _once(request, handle)

        return handle_once


async def _once(request: Request, handle: Handler) -> Response:
    key = request.headers[HEADER]
    if not key or len(key) > LONGEST or not (key.isascii() and key.isprintable()):
        raise Problem(400, "That is no key.", f"A key is up to {LONGEST} characters of ASCII.")
    caller = await auth.identify(request)
    deps, digest = auth.of(request), await _digest(request)
    known, is_lost = await idempotency.begin(deps, caller.user, key, digest)
    if known is not None:
        return _repeat(known, digest, is_lost=is_lost)
    response = await _handle(request, handle, caller.user, key)
    # A stream cannot be given again: whoever comes again learns that it was done, and may look.
    body = getattr(response, "body", b"{}")
    await idempotency.keep(deps, caller.user, key, response.status_code, bytes(body).decode())
    return response


async def _handle(request: Request, handle: Handler, user: UserId, key: str) -> Response:
    try:
        return await handle(request)
    except MachineFailed:
        # The database may have done it and lost only the answer: the key stays taken.
        raise
    except (BackburnerError, Problem, RequestValidationError, HTTPException):
        await idempotency.release(auth.of(request), user, key)
        raise


def _repeat(known: StoredResponse, digest: str, *, is_lost: bool) -> Response:
    if known.request != digest:
        raise Problem(422, "This key was used for another request.", "Use a new key for each.")
    if is_lost:
        raise Problem(
            409,
            "A request with this key was begun, and nobody knows what became of it.",
            "Look whether it was done; if it was not, send it with a new key.",
        )
    if known.status is None:
        raise Problem(
            409,
            "A request with this key is being answered.",
            "Try again.",
            retry_after=timedelta(seconds=1),
        )
    headers = {REPLAYED: "true"}
    body = (known.body or "").encode()
    return Response(body, known.status, headers, media_type="application/json" if body else None)


async def _digest(request: Request) -> str:
    head = f"{request.method} {request.url.path}?{request.url.query}"
    told = (head, request.headers.get("content-type", ""), request.headers.get("accept", ""))
    heads = hashlib.sha256(repr(told).encode())
    heads.update(await request.body())
    return heads.hexdigest()
