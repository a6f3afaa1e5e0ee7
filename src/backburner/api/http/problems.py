"""Errors as problem details (RFC 9457): `detail` says what is wrong, `hint` what to do."""

from collections.abc import Callable, Coroutine
from datetime import timedelta
from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    Fenced,
    LimitReached,
    MachineFailed,
    NotAllowed,
    NotFound,
    TooLarge,
)

MEDIA_TYPE = "application/problem+json"
#: The first match counts.
STATUSES: tuple[tuple[type[BackburnerError], int], ...] = (
    (TooLarge, 413),
    (BadRequest, 400),
    (NotFound, 404),
    (NotAllowed, 403),
    (LimitReached, 429),
    (Conflict, 409),
    (Fenced, 409),
    (ConnectionFailed, 502),
    (MachineFailed, 503),
)


class Problem(Exception):
    """An error that only the HTTP layer knows."""

    def __init__(self, status: int, detail: str, hint: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint, self.more = status, detail, hint, more


def respond(
    status: int,
    detail: str,
    hint: str = "",
    *,
    retry_after: timedelta | None = None,
    **more: Any,
) -> JSONResponse:
    body = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
        **({"hint": hint} if hint else {}),
        **more,
    }
    headers = {"www-authenticate": "Bearer"} if status == 401 else {}
    if retry_after is not None:
        headers["retry-after"] = str(max(1, ceil(retry_after.total_seconds())))
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE, headers=headers)


def get_status(error: BackburnerError) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


async def handle_problem(_: Request, error: Problem) -> JSONResponse:
    return respond(error.status, error.detail, error.hint, **error.more)


async def handle_backburner_error(_: Request, error: BackburnerError) -> JSONResponse:
    retry_after = getattr(error, "retry_after", None)
    return respond(get_status(error), error.message, error.hint, retry_after=retry_after)


async def handle_http_exception(_: Request, error: HTTPException) -> JSONResponse:
    return respond(error.status_code, str(error.detail))


async def handle_validation_error(_: Request, error: RequestValidationError) -> JSONResponse:
    errors = [
        {"where": ".".join(str(part) for part in field["loc"]), "what": field["msg"]}
        for field in error.errors()
    ]
    return respond(422, "The request is invalid.", errors=errors)


HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Any]]] = {
    Problem: handle_problem,
    BackburnerError: handle_backburner_error,
    HTTPException: handle_http_exception,
    RequestValidationError: handle_validation_error,
}
