"""`/api/conversations`: create, list, read, change, delete, and control their work."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query

from backburner.actions import browse, chat, conversations
from backburner.actions.accounts import consent
from backburner.actions.chat import NewChat
from backburner.actions.conversations import Changes
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import chosen_connections, control, deletion, tasks
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
    SeenConversationBody,
    SessionSummaryOut,
)
from backburner.core.accounts import Caller
from backburner.core.content.search import split_words
from backburner.core.conversation import Kind, OnRepeatedFailure, Status
from backburner.core.ids import ConversationId, MessageId
from backburner.core.validation import check_text
from backburner.core.work.list_states import ListState
from backburner.ports import ConversationFilter, View

MAX_SEARCH_CHARS = 200

router = APIRouter(prefix="/api/conversations", tags=["conversations"], route_class=IdempotentRoute)


async def load_conversation(
    deps: Deps, caller: Caller, conversation_id: ConversationId
) -> ConversationOut:
    row, display = await browse.conversation(deps, caller.user, conversation_id)
    return ConversationOut.of(row, display, deps)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the list as a person sees it."""

    state: ListState | None
    pinned: bool | None
    unread: bool | None
    archived: bool | None


async def read_section(
    *,
    archived: bool | None = None,
    state: Annotated[
        ListState | None,
        Query(
            description="As a person thinks of it: `needs_you` has an open question or waits for a"
            " sign-in, `working` runs now, `scheduled` runs later, `failed` ended in an error, was"
            " paused for one or failed last."
        ),
    ] = None,
    pinned: Annotated[
        bool | None, Query(description="Only pinned conversations, or only the others.")
    ] = None,
    unread: Annotated[
        bool | None,
        Query(
            description="Only conversations with something that you have not seen, or only the"
            " others."
        ),
    ] = None,
) -> Section:
    if state is ListState.ARCHIVED:
        return Section(None, pinned, unread, archived=True)
    return Section(state, pinned, unread, archived)


async def read_filter(
    *,
    status: Status | None = None,
    kind: Kind | None = None,
    view: View | None = None,
    parent_id: ParentIdQuery | None = None,
    section: Annotated[Section, Depends(read_section)],
    all_: Annotated[
        bool, Query(alias="all", description="List children too, which stand under their parent.")
    ] = False,
    q: Annotated[
        str | None,
        Query(
            max_length=MAX_SEARCH_CHARS,
            description="Words that are all in the title, or in one recent message and the title"
            " together, whatever their case and accents; a phrase in quotes is one word. `hits` say"
            " where. A page may have fewer items than `limit` although there is a next one.",
        ),
    ] = None,
) -> ConversationFilter:
    filters = (status, kind, view, parent_id, section.state)
    marked = section.pinned or section.unread
    is_filtered = bool(marked) or any(value is not None for value in filters)
    words = None if q is None else check_text("q", q, limit=MAX_SEARCH_CHARS)
    words = words if words and split_words(words) else None
    return ConversationFilter(
        status=status,
        kind=kind,
        view=view,
        # A status says already whether archived conversations are included.
        archived=bool(section.archived) if status is None else section.archived,
        parent_id=parent_id,
        state=section.state,
        pinned=section.pinned,
        unread=section.unread,
        search=words,
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
    `all`, or with any filter but `archived`, `pinned=false` and `unread=false`, they are listed as
    well.

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
            attachments=[one.attachment() for one in body.attachments],
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


@router.patch("/{conversation_id}", summary="Update a conversation", responses=error_responses(409))
async def update_conversation(
    conversation_id: ConversationIdPath,
    body: ConversationChangesBody,
    deps: AppDeps,
    caller: Writer,
) -> ConversationOut:
    """Change its title, notices, what repeated failures lead to, or its model; or pin it.

    A changed model is used from the next run on. The agent then knows the messages, but nothing
    else of its earlier session.
    """
    changes = Changes(
        title=body.title,
        notify=body.notify,
        on_repeated_failure=body.on_repeated_failure,
        model=body.model,
        pinned=body.pinned,
    )
    await conversations.update(deps, caller.user, conversation_id, changes)
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


@router.post("/{conversation_id}/seen", summary="Mark it as seen")
async def mark_conversation_seen(
    conversation_id: ConversationIdPath,
    deps: AppDeps,
    caller: Writer,
    body: SeenConversationBody | None = None,
) -> ConversationOut:
    """Mark its messages, open questions and notices as seen: all, or those up to a message.

    What was seen once stays so. Other clients hear of it as a change of the conversation.
    """
    up_to = None if body is None or body.up_to is None else MessageId(body.up_to)
    await conversations.see(deps, caller.user, conversation_id, up_to)
    return await load_conversation(deps, caller, conversation_id)


@router.delete("/{conversation_id}", summary="Delete a conversation", status_code=204)
async def delete_conversation(
    conversation_id: ConversationIdPath,
    deps: AppDeps,
    caller: Writer,
    *,
    now: Annotated[bool, Query(description="Remove it at once: it cannot be restored.")] = False,
) -> None:
    """Delete it with its jobs and tasks, and stop their work.

    For 30 seconds it can be restored; then it is removed. Tool calls and spending are kept.
    """
    remove = conversations.delete if now else deletion.delete
    await remove(deps, caller.user, conversation_id)


@router.post(
    "/{conversation_id}/restore",
    summary="Restore a deleted conversation",
    responses=error_responses(404, 409),
)
async def restore_conversation(
    conversation_id: ConversationIdPath, deps: AppDeps, caller: Writer
) -> ConversationOut:
    """Restore it within 30 seconds, with what was deleted with it.

    Work that was stopped stays stopped: it has no schedule any more. Work that was proposed and
    never approved is proposed again.
    """
    await deletion.restore(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)


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
    """Stop its background work for good. The conversation stays; a proposal is archived."""
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
    """Reopen an archived conversation. Background work that was stopped stays stopped.

    Work that was proposed and never approved is proposed again.
    """
    await conversations.reopen(deps, caller.user, conversation_id)
    return await load_conversation(deps, caller, conversation_id)
