"""`/api/backup`: a backup of the whole database, while the server runs."""

import asyncio
from collections.abc import AsyncIterator
from typing import IO

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from backburner.actions.accounts import users
from backburner.api.http.auth import Operator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses

MEDIA_TYPE = "application/vnd.sqlite3"
_CHUNK_BYTES = 2**18

router = APIRouter(prefix="/api", tags=["operations"])


@router.post(
    "/backup",
    summary="Back up the database",
    response_class=StreamingResponse,
    responses={200: {"content": {MEDIA_TYPE: {}}}, **error_responses(409)},
)
async def create_backup(caller: Operator, deps: AppDeps) -> StreamingResponse:
    """Stream a consistent SQLite file. The server keeps working meanwhile."""
    await users.record_backup(deps, caller.user)
    file = await deps.copy_database()
    return StreamingResponse(
        _read_chunks(file),
        media_type=MEDIA_TYPE,
        headers={
            "content-disposition": 'attachment; filename="backburner.sqlite3"',
            "content-length": str(file.seek(0, 2)),
            "cache-control": "no-store",
        },
    )


async def _read_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        file.seek(0)
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk
