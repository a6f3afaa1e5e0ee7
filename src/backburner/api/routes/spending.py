"""`/api/spend`: spending and allowances."""

from fastapi import APIRouter

from backburner.actions.accounts import profile
from backburner.api.http.auth import Approver, Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.schemas.base import ConversationIdPath, ConversationIdQuery
from backburner.api.schemas.spending import ConversationAllowanceBody, SpendingOut

router = APIRouter(prefix="/api", tags=["spending"])


@router.get("/spend", summary="Get your spending", responses=error_responses(404))
async def get_spending(
    deps: AppDeps, caller: Reader, conversation_id: ConversationIdQuery | None = None
) -> SpendingOut:
    """Get spending and allowances: in total, today, and of one conversation on request."""
    return SpendingOut.of(await profile.spend_statement(deps, caller.user, conversation_id))


@router.put("/conversations/{conversation_id}/allowance", summary="Set a conversation's allowance")
async def set_conversation_allowance(
    conversation_id: ConversationIdPath,
    body: ConversationAllowanceBody,
    deps: AppDeps,
    caller: Approver,
) -> SpendingOut:
    """Set what may be spent on a conversation with its jobs and child tasks.

    It is kept at the conversation at the top. Work that was paused for it goes on.
    """
    await profile.set_conversation_allowance(deps, caller, conversation_id, body.limit)
    return SpendingOut.of(await profile.spend_statement(deps, caller.user, conversation_id))
