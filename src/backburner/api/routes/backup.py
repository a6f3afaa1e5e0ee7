"""`/api/backup`: a copy of the whole database, while the server goes on."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from backburner.actions import copies
from backburner.api.http.auth import Operator, TheDeps
from backburner.api.schemas.base import refusals

_CHUNK = 2**18


def build_router() -> APIRouter:
    router = APIRouter(prefix="/api", tags=["operating"])

    @router.post(
        "/backup",
        summary="Copy the whole database",
        response_class=StreamingResponse,
        responses={200: {"content": {"application/vnd.sqlite3": {}}}, **refusals(409)},
    )
    async def copy_database(_: Operator, deps: TheDeps) -> StreamingResponse:
        """Stream a SQLite file as it was at one moment; everybody can go on meanwhile."""
        file = await copies.copy(deps)
        return StreamingResponse(
            _pieces(file),
            media_type="application/vnd.sqlite3",
            headers={
                "content-disposition": 'attachment; filename="backburner.sqlite3"',
                "content-length": str(file.seek(0, 2)),
                "cache-control": "no-store",
            },
        )

    return router


async def _pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        file.seek(0)
        while piece := await asyncio.to_thread(file.read, _CHUNK):
            yield piece
