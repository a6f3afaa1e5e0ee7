"""`/api/export`, `/api/backup`, and `/api/downloads` for links that browsers follow to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import IO

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from backburner.actions import personal_data
from backburner.actions.accounts import downloads, users
from backburner.actions.accounts.downloads import DownloadItem
from backburner.actions.deps import Deps
from backburner.api.http.auth import (
    AnyCaller,
    Operator,
    Reader,
    identify_by_address,
    read_held_secret,
)
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.schemas.download import DownloadOut, NewDownloadBody
from backburner.api.schemas.me import EXPORT_EXAMPLE
from backburner.core.accounts import Caller

BACKUP_TYPE = "application/octet-stream"
#: Whatever a browser makes of the bytes, they are no page of ours.
CONTENT_SECURITY_POLICY = "sandbox; default-src 'none'"
_CHUNK_BYTES = 2**18

router = APIRouter(prefix="/api")


@router.get(
    "/export",
    summary="Export your data",
    tags=["me"],
    response_class=StreamingResponse,
    responses={200: {"content": {"application/json": {"example": EXPORT_EXAMPLE}}}},
)
async def export_data(caller: Reader, deps: AppDeps) -> StreamingResponse:
    """Stream all your data as one JSON document: profile, conversations, messages, runs, etc."""
    return await _send_export(deps, caller)


@router.post(
    "/backup",
    summary="Back up the database",
    tags=["operations"],
    response_class=StreamingResponse,
    responses={
        200: {"content": {BACKUP_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
        **error_responses(409),
    },
)
async def create_backup(caller: Operator, deps: AppDeps) -> StreamingResponse:
    """Stream a consistent SQLite file. The server keeps working meanwhile."""
    return await _send_backup(deps, caller)


@router.post("/downloads", summary="Make the address of a download", tags=["me"], status_code=201)
async def create_download(
    body: NewDownloadBody, caller: AnyCaller, request: Request, response: Response, deps: AppDeps
) -> DownloadOut:
    """Make an address for a link: a browser cannot send its session's key with one.

    The address works for a minute, as often as it is opened, with the cookie of the same session or
    with the same token. It needs the scope of the item: `read` for an export, `operate` for a
    backup. It ends with the session or token.
    """
    made = await downloads.make_address(deps, caller, body.item, read_held_secret(request))
    response.headers["cache-control"] = "no-store"
    address = f"{router.prefix}/downloads/{body.item}/{made.secret}"
    return DownloadOut(address=address, expires_at=made.expires_at)


@router.get(
    "/downloads/{item}/{secret}",
    summary="Download",
    tags=["me"],
    response_class=StreamingResponse,
    responses={200: {"content": {"application/octet-stream": {}}}, **error_responses(409)},
)
async def get_download(
    item: str, secret: str, request: Request, deps: AppDeps
) -> StreamingResponse:
    """Stream what the address is for. Make one with `POST /api/downloads`."""
    caller, wanted = await identify_by_address(request, item, secret)
    return await _SENDERS[wanted](deps, caller)


async def _send_export(deps: Deps, caller: Caller) -> StreamingResponse:
    return StreamingResponse(
        personal_data.export(deps, caller.user),
        media_type="application/json",
        headers=_headers("backburner-export.json"),
    )


async def _send_backup(deps: Deps, caller: Caller) -> StreamingResponse:
    await users.record_backup(deps, caller.user)
    file = await deps.copy_database()
    return StreamingResponse(
        _read_chunks(file),
        media_type=BACKUP_TYPE,
        headers=_headers("backburner.sqlite3") | {"content-length": str(file.seek(0, 2))},
    )


_SENDERS: dict[DownloadItem, Callable[[Deps, Caller], Awaitable[StreamingResponse]]] = {
    DownloadItem.EXPORT: _send_export,
    DownloadItem.BACKUP: _send_backup,
}


def _headers(filename: str) -> dict[str, str]:
    return {
        "content-disposition": f'attachment; filename="{filename}"',
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "cache-control": "no-store",
    }


async def _read_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        file.seek(0)
        while chunk := await asyncio.to_thread(file.read, _CHUNK_BYTES):
            yield chunk
