"""`/api/conversations/{id}/schedule`: set, clear and preview schedules."""

from fastapi import APIRouter

from backburner.actions import schedules
from backburner.actions.accounts import consent
from backburner.actions.origin import Origin
from backburner.actions.work import control
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.routes.conversations import load_conversation
from backburner.api.schemas.base import ConversationIdPath
from backburner.api.schemas.conversation import ConversationOut
from backburner.api.schemas.schedule import NewScheduleBody, SchedulePreviewOut, ScheduleTimesBody

router = APIRouter(prefix="/api", tags=["schedules"], route_class=IdempotentRoute)


@router.put(
    "/conversations/{conversation_id}/schedule",
    summary="Set a schedule",
    responses=error_responses(409, 429),
)
async def set_schedule(
    conversation_id: ConversationIdPath, body: NewScheduleBody, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Start background work in a conversation, or change its schedule.

    If it uses a connection or a folder that the token was not given, `what` needs a credential that
    may approve.
    """
    await schedules.set_schedule(
        deps,
        caller.user,
        conversation_id,
        body.timing,
        prompt=body.what,
        check_instructions=consent.instructions_checker(caller),
    )
    return await load_conversation(deps, caller, conversation_id)


@router.post(
    "/conversations/{conversation_id}/stop-run",
    summary="Stop the run of background work",
    responses=error_responses(409),
)
async def stop_run(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Stop the run of its recurring work that is in progress. It runs again at its next time."""
    await control.stop_run(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.delete(
    "/conversations/{conversation_id}/schedule",
    summary="Clear a schedule",
    responses=error_responses(409),
)
async def clear_schedule(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Stop its background work for good. The conversation stays. To stop for a while, pause it."""
    await control.cancel(deps, Origin.by_user(caller.user), conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.post("/schedule/preview", summary="Preview a schedule", responses=error_responses(404))
async def preview_schedule(
    body: ScheduleTimesBody, deps: AppDeps, caller: Reader
) -> SchedulePreviewOut:
    """Parse a schedule and list its next times. Nothing is changed."""
    return SchedulePreviewOut.of(await schedules.preview(deps, caller.user, body.timing))
