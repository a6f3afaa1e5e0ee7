"""Errors as problem details (RFC 9457): what is wrong in a sentence, and what would be right."""

from datetime import timedelta
from http import HTTPStatus
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    Conflict,
    Fenced,
    LimitReached,
    MachineFailed,
    NotAllowed,
    NotFound,
    TooLarge,
)

MEDIA_TYPE = "application/problem+json"
#: The first that fits counts.
STATUSES: tuple[tuple[type[BackburnerError], int], ...] = (
    (TooLarge, 413),
    (BadRequest, 400),
    (NotFound, 404),
    (NotAllowed, 403),
    (LimitReached, 429),
    (Conflict, 409),
    (Fenced, 409),
    (MachineFailed, 503),
)


class Problem(Exception):
    """Something that only the API itself knows to be wrong."""

    def __init__(self, status: int, detail: str, hint: str = "", **more: Any) -> None:
        super().__init__(detail)
        self.status, self.detail, self.hint, self.more = status, detail, hint, more


def answer(
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


def status_of(error: BackburnerError) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def add_handlers(api: FastAPI) -> None:
    @api.exception_handler(Problem)
    async def problem(_: Request, error: Problem) -> JSONResponse:
        return answer(error.status, error.detail, error.hint, **error.more)

    @api.exception_handler(BackburnerError)
    async def ours(_: Request, error: BackburnerError) -> JSONResponse:
        wait = getattr(error, "retry_after", None)
        return answer(status_of(error), error.message, error.hint, retry_after=wait)

    @api.exception_handler(HTTPException)
    async def of_starlette(_: Request, error: HTTPException) -> JSONResponse:
        return answer(error.status_code, str(error.detail))

    @api.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        wrong = [
            {"where": ".".join(str(part) for part in one["loc"]), "what": one["msg"]}
            for one in error.errors()
        ]
        return answer(422, "The request is not as it should be.", errors=wrong)
