"""`/api/conversations`: create, list, read, change, delete, and control their work."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from backburner.actions import browse, chat, conversations
from backburner.actions.accounts import consent
from backburner.actions.chat import NewChat
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import chosen_connections, control, tasks
from backburner.api.http.auth import Reader, Writer
from backburner.api.http.dependencies import AppDeps
from backburner.api.http.idempotency import IdempotentRoute
from backburner.api.http.openapi import error_responses
from backburner.api.http.pages import PageOut, Paging, make_page
from backburner.api.schemas.base import ConversationIdPath, ParentIdQuery
from backburner.api.schemas.conversation import (
    ChosenConnectionsBody,
    ConversationChangesBody,
    ConversationOut,
    ConversationSummaryOut,
    NewConversationBody,
    SessionSummaryOut,
)
from backburner.core.accounts import Caller
from backburner.core.conversation import Kind, OnRepeatedFailure, Status
from backburner.core.ids import ConversationId
from backburner.core.validation import check_text
from backburner.ports import ConversationFilter, View

MAX_SEARCH_CHARS = 200

router = APIRouter(prefix="/api/conversations", tags=["conversations"], route_class=IdempotentRoute)


async def load_conversation(
    deps: Deps, caller: Caller, conversation_id: ConversationId
) -> ConversationOut:
    row, display = await browse.conversation(deps, caller.user, conversation_id)
    return ConversationOut.of(row, display, deps)


async def read_filter(
    *,
    status: Status | None = None,
    kind: Kind | None = None,
    view: View | None = None,
    archived: bool | None = None,
    parent_id: ParentIdQuery | None = None,
    all_: Annotated[
        bool, Query(alias="all", description="List children too, which stand under their parent.")
    ] = False,
    q: Annotated[
        str | None,
        Query(
            max_length=MAX_SEARCH_CHARS,
            description="Words in the title or in recent messages. A page may then have fewer items"
            " than `limit` although there is a next one.",
        ),
    ] = None,
) -> ConversationFilter:
    is_filtered = any(value is not None for value in (status, kind, view, parent_id))
    words = None if q is None or not q.strip() else check_text("q", q, limit=MAX_SEARCH_CHARS)
    return ConversationFilter(
        status=status,
        kind=kind,
        view=view,
        # A status says already whether archived conversations are included.
        archived=bool(archived) if status is None else archived,
        parent_id=parent_id,
        search=words and words.strip(),
        top_level=not (all_ or is_filtered or words),
    )


@router.get("", summary="List conversations", responses=error_responses(404))
async def list_conversations(
    deps: AppDeps,
    caller: Reader,
    paging: Paging,
    filters: Annotated[ConversationFilter, Depends(read_filter)],
) -> PageOut[ConversationSummaryOut]:
    """List conversations, last changed first. Archived ones are listed only on request.

    Jobs, and tasks that a conversation created, are not listed but stand in its `children`. With
    `all`, or with any filter but `archived`, they are listed as well.

    A conversation that changes between two pages moves to the front and is not on later pages.
    """
    page, display = await browse.conversations(
        deps,
        caller.user,
        filters,
        paging.after(datetime, str),
        limit=paging.limit,
        with_children=True,
    )
    return make_page(page, lambda row: ConversationSummaryOut.of(row, display, deps))


@router.post(
    "", summary="Create a conversation", status_code=201, responses=error_responses(404, 429)
)
async def create_conversation(
    body: NewConversationBody, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Create a chat, with or without a first message, or a task, which starts immediately."""
    if body.what is not None:
        report = await tasks.add(deps, Origin.by(caller), body.task())
        conversation = report.work
    else:
        new = NewChat(
            text=body.message,
            title=body.title,
            profile=body.profile,
            folder=body.folder,
            connections=body.connections,
            uses=caller.work_uses,
            given=caller.work_connections,
            on_repeated_failure=body.on_repeated_failure or OnRepeatedFailure.NOTIFY,
        )
        conversation = await chat.start(deps, caller.user, new)
    return await load_conversation(deps, caller, conversation.id)


@router.get("/{conversation_id}", summary="Get a conversation")
async def get_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> ConversationOut:
    return await load_conversation(deps, caller, conversation_id)


@router.patch("/{conversation_id}", summary="Update a conversation")
async def update_conversation(
    conversation_id: ConversationIdPath,
    body: ConversationChangesBody,
    deps: AppDeps,
    caller: Writer,
) -> ConversationOut:
    """Change its title, when it sends notices, what repeated failures lead to, or its model.

    A changed model is used from the next run on. The agent then knows the messages, but nothing
    else of its earlier session.
    """
    await conversations.update(
        deps,
        caller.user,
        conversation_id,
        title=body.title,
        notify=body.notify,
        on_repeated_failure=body.on_repeated_failure,
        model=body.model,
    )
    return await load_conversation(deps, caller, conversation_id)


@router.put("/{conversation_id}/connections", summary="Choose its connections")
async def choose_connections(
    conversation_id: ConversationIdPath,
    body: ChosenConnectionsBody,
    deps: AppDeps,
    caller: Writer,
) -> ConversationOut:
    """Choose the connections that it may use. More than it has need a credential that may approve.

    A chat uses all that chats use, unless some are chosen; other work uses the chosen ones only.
    """
    await chosen_connections.change(
        deps,
        caller.user,
        conversation_id,
        body.names,
        check_consent=consent.checker(caller),
    )
    return await load_conversation(deps, caller, conversation_id)


@router.delete("/{conversation_id}", summary="Delete a conversation", status_code=204)
async def delete_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> None:
    """Delete it and its jobs. The journal of tool calls and the spending are kept."""
    await conversations.delete(deps, caller.user, conversation_id)


@router.post("/{conversation_id}/pause", summary="Pause its work", responses=error_responses(429))
async def pause_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Pause its background work. A run in progress finishes."""
    await control.pause(deps, Origin.by_user(caller.user), conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.post("/{conversation_id}/resume", summary="Resume its work", responses=error_responses(429))
async def resume_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Resume its background work. The next run is scheduled from now."""
    await control.resume(deps, Origin.by_user(caller.user), conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.post(
    "/{conversation_id}/run-now", summary="Run its work now", responses=error_responses(429)
)
async def run_conversation_now(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Start a run now, independent of the schedule."""
    await control.run_now(deps, Origin.by_user(caller.user), conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.post("/{conversation_id}/cancel", summary="Cancel its work", responses=error_responses(429))
async def cancel_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Stop its background work for good. The conversation stays."""
    await control.cancel(deps, Origin.by_user(caller.user), conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.post(
    "/{conversation_id}/archive", summary="Archive a conversation", responses=error_responses(429)
)
async def archive_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Archive it. Its background work is stopped."""
    await conversations.archive(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.get("/{conversation_id}/summary", summary="Get its summary")
async def get_summary(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Reader
) -> SessionSummaryOut:
    """Get the summary that the agent wrote when its session became too long."""
    summary = await conversations.show_summary(deps, caller.user, conversation_id)
    return SessionSummaryOut.of(summary)


@router.delete("/{conversation_id}/summary", summary="Delete its summary", status_code=204)
async def delete_summary(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> None:
    """Delete the summary. The next session starts from the last messages alone."""
    await conversations.delete_summary(deps, caller.user, conversation_id)


@router.post(
    "/{conversation_id}/fresh", summary="Start afresh", responses=error_responses(409, 429)
)
async def start_afresh(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Start the agent afresh, without outside text.

    The next run begins a new session. It gets the messages and the parts of the state that no
    outside text can have reached. You still see all messages; marked parts of the state are
    removed.
    """
    await conversations.start_afresh(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)


@router.post(
    "/{conversation_id}/reopen", summary="Reopen a conversation", responses=error_responses(429)
)
async def reopen_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Reopen an archived conversation. Background work that was stopped stays stopped."""
    await conversations.reopen(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)
