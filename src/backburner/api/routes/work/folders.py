"""`/api/folders`: the folders in which conversations may work."""

from typing import Annotated

from fastapi import APIRouter, Query

from backburner.actions.work import folders
from backburner.api.http.auth import Approver, Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut
from backburner.api.schemas.work.folder import AcceptInstructionsBody, FolderOut, NewFolderBody
from backburner.core.work.folders import MAX_PATH_CHARS

router = APIRouter(prefix="/api/folders", tags=["folders"])

FolderPath = Annotated[str, Query(min_length=1, max_length=MAX_PATH_CHARS)]


@router.get("", summary="List folders")
async def list_folders(deps: AppDeps, caller: Reader) -> PageOut[FolderOut]:
    """List the folders that your conversations may work in, on one page."""
    states = await folders.list_folders(deps, caller.user)
    return PageOut(items=[FolderOut.of(state) for state in states], next=None)


@router.post("", summary="Add a folder", status_code=201, responses=error_responses(404, 429))
async def add_folder(body: NewFolderBody, deps: AppDeps, caller: Approver) -> FolderOut:
    """Add a folder of the server's machine, or change whether agents may write in it.

    Only the command line of that machine may, in an installation with SQLite and one account.
    """
    state = await folders.add(deps, caller, body.path, read_only=body.read_only)
    return FolderOut.of(state)


@router.delete("", summary="Remove a folder", status_code=204, responses=error_responses(404))
async def remove_folder(path: FolderPath, deps: AppDeps, caller: Approver) -> None:
    """Remove a folder. Its files stay; agents can no longer use it."""
    await folders.remove(deps, caller.user, path)


@router.post("/accept", summary="Accept instructions", responses=error_responses(404))
async def accept_instructions(
    body: AcceptInstructionsBody, deps: AppDeps, caller: Approver
) -> FolderOut:
    """Accept AGENTS.md and CLAUDE.md of a folder as they are now; agents follow them."""
    state = await folders.accept(deps, caller.user, body.path, digest=body.digest)
    return FolderOut.of(state)
