"""The schedule editor of a conversation, and what a typed text would mean."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from backburner.actions import schedules
from backburner.actions.schedules import Timing
from backburner.actions.work import schedule_choices
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.schemas.base import ConversationIdPath
from backburner.core.errors import BadRequest
from backburner.web.display import Display
from backburner.web.rendering import respond
from backburner.web.routes.lists import Shown
from backburner.web.views.schedule import ShownPreview, show_editor, show_preview, show_problem

#: Longer texts are refused by the parser in its own words.
MAX_TEXT_CHARS = 500

router = APIRouter(include_in_schema=False)


@router.get("/page/schedule/preview")
async def preview_schedule(
    deps: AppDeps,
    caller: Reader,
    display: Shown,
    text: Annotated[str, Query(max_length=MAX_TEXT_CHARS)] = "",
) -> Response:
    """Say what a text would mean, or what is wrong with it; while nothing is typed, nothing."""
    if not text.strip():
        preview = ShownPreview()
    else:
        try:
            found = await schedules.preview(deps, caller.user, Timing(text))
            preview = show_preview(found, display)
        except BadRequest as error:
            preview = show_problem(error, text)
    return await respond("pages/schedule_preview.html", display, preview=preview)


@router.get("/page/c/{conversation_id}/schedule")
async def show_schedule_editor(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> Response:
    choices = await schedule_choices.load_choices(deps, caller.user, conversation_id)
    display = Display(choices.now, choices.zone)
    return await respond("pages/schedule.html", display, editor=show_editor(choices, display))
