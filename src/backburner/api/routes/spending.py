"""`/api/spend`: spending and allowances."""

from fastapi import APIRouter

from backburner.actions.accounts import profile
from backburner.api.http.auth import Reader
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import error_responses
from backburner.api.schemas.base import ConversationIdQuery
from backburner.api.schemas.spending import SpendingOut

router = APIRouter(prefix="/api", tags=["spending"])


@router.get("/spend", summary="Get your spending", responses=error_responses(404))
async def get_spending(
    deps: AppDeps, caller: Reader, conversation_id: ConversationIdQuery | None = None
) -> SpendingOut:
    """Get spending and allowances: in total, today, and of one conversation on request."""
    return SpendingOut.of(await profile.spend_statement(deps, caller.user, conversation_id))
