"""`/api/conversations/{id}/timeline`: everything that happened in a conversation."""

from fastapi import APIRouter

from backburner.actions.work import timeline
from backburner.actions.work.timeline import KEY_TYPES, Position
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.pages import Paging
from backburner.api.schemas.base import ConversationIdPath
from backburner.api.schemas.history.timeline import TimelineOut

router = APIRouter(prefix="/api/conversations", tags=["conversations"])


@router.get("/{conversation_id}/timeline", summary="Get its timeline")
async def get_timeline(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader, paging: Paging
) -> TimelineOut:
    """Get messages, runs, questions and skipped slots, newest first.

    `runs` has each run that an item names, with what it cost and its last tool calls. A run stands
    where it began, and a question where it was asked, also if it was answered later.
    """
    after = Position.of_key(paging.after(*KEY_TYPES))
    found = await timeline.page(deps, caller.user, conversation_id, after, limit=paging.limit)
    return TimelineOut.of(found, conversation_id)
