"""`/api/files`: what tools returned besides text, kept for the user."""

from datetime import datetime
from urllib.parse import quote

from fastapi import APIRouter
from fastapi.responses import StreamingResponse

from backburner.actions.work import files
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.routes.downloads import CONTENT_SECURITY_POLICY
from backburner.api.schemas.work.file import DigestPath, FileOut
from backburner.core.content.file import BYTES, StoredFile
from backburner.core.content.image import RASTER_TYPES

router = APIRouter(prefix="/api/files", tags=["files"])


@router.get("", summary="List files")
async def list_files(deps: AppDeps, caller: Reader, paging: Paging) -> PageOut[FileOut]:
    """List the files that tools returned, newest first.

    A file is deleted with the last run or conversation that names it.
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
