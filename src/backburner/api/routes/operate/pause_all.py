"""`/api/pause-all` and `/api/resume-all`: the background work of all users."""

from fastapi import APIRouter

from backburner.actions import conversations
from backburner.api.http.auth import Operator
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.openapi import BODY_ERRORS, error_responses

router = APIRouter(prefix="/api", tags=["operate"])


@router.post(
    "/pause-all",
    summary="Pause all users' work",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def pause_all(deps: AppDeps, caller: Operator) -> None:
    """Pause the background work of all users. Chats continue, and runs in progress finish."""
    await conversations.pause_everyone(deps, caller.user, paused=True)


@router.post(
    "/resume-all",
    summary="Resume all users' work",
    status_code=204,
    responses=error_responses(*BODY_ERRORS),
)
async def resume_all(deps: AppDeps, caller: Operator) -> None:
    """Resume the background work of all users, except of those who have paused it themselves."""
    await conversations.pause_everyone(deps, caller.user, paused=False)
