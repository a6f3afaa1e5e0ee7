"""`/api/files`: uploads of the user, and what tools returned besides text."""

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from backburner.actions.work import files
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.caller_limits import HeldRequest, get_limits
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.routes.downloads import CONTENT_SECURITY_POLICY
from backburner.api.schemas.work.file import (
    MAX_GIVEN_NAME_CHARS,
    DigestPath,
    FileOut,
    UploadedFileOut,
)
from backburner.core.content.file import BYTES, StoredFile
from backburner.core.content.image import RASTER_TYPES

_UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
    }
}

router = APIRouter(prefix="/api/files", tags=["files"])


@router.post(
    "",
    summary="Upload a file",
    status_code=201,
    openapi_extra=_UPLOAD,
    responses=error_responses(408, 413, 429),
)
async def upload_file(
    request: Request,
    deps: AppDeps,
    caller: Writer,
    name: Annotated[
        str, Query(max_length=MAX_GIVEN_NAME_CHARS, description="Its name, which is made safe.")
    ] = "",
) -> UploadedFileOut:
    """Upload a file for a message, which names it by its digest.

    The body is the file, as `application/octet-stream`. What type it is, its bytes say: PNG, JPEG,
    GIF and WebP images have their own, all others are `application/octet-stream`. Uploading the
    same bytes again changes nothing. A file that no message names is deleted after a day. You can
    have four uploads in progress.
    """
    with get_limits(request).hold(caller.user, HeldRequest.UPLOAD):
        # The middleware ends a body that is larger than a file may be.
        data = b"".join([chunk async for chunk in request.stream()])
        limits = deps.limits.files
        file = await files.upload(deps, caller.user, data, name=name, limits=limits)
    return UploadedFileOut.of(file)


@router.get("", summary="List files")
async def list_files(deps: AppDeps, caller: Reader, paging: Paging) -> PageOut[FileOut]:
    """List the files that messages have and that tools returned, newest first.

    A file is deleted with the last message, run or conversation that names it.
    """
    page = await files.page(deps, caller.user, paging.after(datetime, str), limit=paging.limit)
    return make_page(page, FileOut.of)


@router.get(
    "/{digest}",
    summary="Download a file",
    response_class=StreamingResponse,
    responses={200: {"content": {BYTES: {"schema": {"type": "string", "format": "binary"}}}}},
)
async def get_file(digest: DigestPath, deps: AppDeps, caller: Reader) -> StreamingResponse:
    """Download a file, as bytes. PNG, JPEG, GIF and WebP images have their own media type."""
    file = await files.load(deps, caller.user, digest)
    return StreamingResponse(
        files.stream(deps, caller.user, file),
        media_type=file.media_type if file.media_type in RASTER_TYPES else BYTES,
        headers=_headers(file),
    )


@router.delete("/{digest}", summary="Delete a file", status_code=204)
async def delete_file(digest: DigestPath, deps: AppDeps, caller: Writer) -> None:
    """Delete a file, whatever names it."""
    await files.remove(deps, caller.user, digest)


def _headers(file: StoredFile) -> dict[str, str]:
    # Whatever a browser makes of the bytes, they are no page of ours.
    shown = "inline" if file.media_type in RASTER_TYPES else "attachment"
    name = quote(file.name or file.digest[:16], safe="")
    return {
        "content-disposition": f"{shown}; filename*=UTF-8''{name}",
        "content-security-policy": CONTENT_SECURITY_POLICY,
        "content-length": str(file.size),
        "cache-control": "no-store",
    }
