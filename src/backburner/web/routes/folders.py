"""Folders that conversations work in, and the instructions in them."""

from fastapi import APIRouter
from starlette.responses import Response

from backburner.actions.work import folders
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.connect.folders import MAX_CONVERSATIONS, show_folder

router = APIRouter(include_in_schema=False)


@router.get("/page/folders")
async def show_folders(deps: AppDeps, caller: Reader, display: Shown) -> Response:
    found = await folders.list_uses(deps, caller.user, limit=MAX_CONVERSATIONS + 1)
    return await respond(
        "pages/folders.html",
        display,
        folders=lambda: [show_folder(one) for one in found],
        may_add=deps.folders.may_be_added,
        command=deps.command,
    )
