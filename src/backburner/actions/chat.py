"""Chat: store messages, find and stop replies. Replies are given by workers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from backburner.actions import steps
from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.actions.work import folders
from backburner.core import routing, transitions
from backburner.core.accounts import Caller
from backburner.core.conversation import (
    Conversation,
    Message,
    MessageRole,
    OnRepeatedFailure,
    Source,
    Uses,
)
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import (
    ConversationId,
    ItemId,
    MessageId,
    UserId,
    new_conversation_id,
    new_message_id,
)
from backburner.core.run import RunKind, RunStatus
from backburner.core.transitions import Step, Stops
from backburner.core.validation import check_message
from backburner.ports import Reply, ReplyDraft, Tx


@dataclass(frozen=True, slots=True)
class SentMessage:
    message: Message
    #: The inbox items that a run has to serve before the message is answered.
    items: frozenset[ItemId]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewChat:
    #: The first message.
    text: str | None = None
    title: str = ""
    #: None: the routes decide.
    profile: str | None = None
    #: A folder that was added, by its path or name; None: the private workspace.
    folder: str | None = None
    uses: Uses = None
    on_repeated_failure: OnRepeatedFailure = OnRepeatedFailure.NOTIFY


async def start(deps: Deps, user: UserId, new: NewChat | None = None) -> Conversation:
    """Start a chat."""
    new = new or NewChat()

    def work(tx: Tx) -> Conversation:
        started = transitions.start_chat(new_conversation_id(), user, now=tx.now).conversation
        named = transitions.rename(started, new.title).conversation if new.title else started
        asked = replace(
            named,
            requested_profile=new.profile,
            folder=folders.choose(tx, deps, user, new.folder, here=None, uses=new.uses),
            uses=new.uses,
            on_repeated_failure=new.on_repeated_failure,
        )
        chat = routing.assign(asked, deps.routes)
        step = Step(conversation=chat)
        if new.text is not None:
            step = transitions.receive_message(
                chat, new.text, message_id=new_message_id(), now=tx.now
            )
        tx.conversations.add(step)
        return step.conversation

    return await deps.store.transact(work)


async def send(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    text: str,
    *,
    profile: str | None = None,
) -> SentMessage:
    """Store a message; the reply follows later, under `profile` if one is given."""
    message_id = new_message_id()
    _check_profile(deps, profile)

    def work(tx: Tx) -> SentMessage:
        conversation = tx.conversations.lock(user, conversation_id)
        step = transitions.receive_message(
            conversation, text, message_id=message_id, now=tx.now, profile=profile
        )
        save(tx, step)
        return _sent_message(tx, step, message_id, text)

    return await deps.store.transact(work)


async def find_reply(
    deps: Deps, caller: Caller, conversation_id: ConversationId, sent: SentMessage
) -> Reply | Sequence[ReplyDraft]:
    """Find the reply to a message, or else the drafts of one that another process gives.

    A caller whose credential has ended finds neither.
    """
    user = caller.user
    # Before the read: a stored draft lags behind the pieces that were published here.
    is_written_here = deps.drafts.is_writing(user, conversation_id)

    def work(tx: Tx) -> Reply | Sequence[ReplyDraft]:
        if not tx.credentials.valid([(user, caller.credential)], now=tx.now):
            return ()
        reply = tx.replies.find(user, conversation_id, sent.message.id, sent.items)
        if reply is not None:
            return reply
        return () if is_written_here else tx.events.drafts(user, [conversation_id])

    return await deps.store.read(work)


async def stop(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Stop a running or waiting reply; the text so far is kept."""

    def work(tx: Tx) -> None:
        conversation = tx.conversations.lock(user, conversation_id)
        if tx.runs.stop_reply(user, conversation_id):
            return
        items = tx.inbox.waiting(user, conversation_id, RunKind.REPLY)
        if not items and not steps.has_run(tx, conversation, RunKind.REPLY, RunStatus.QUEUED):
            raise Conflict("There is no reply to stop.")
        save(tx, Step(conversation=conversation, stops=Stops.REPLIES))

    await deps.store.transact(work)


async def edit_last(
    deps: Deps,
    user: UserId,
    conversation_id: ConversationId,
    text: str,
    *,
    profile: str | None = None,
) -> SentMessage:
    """Replace the user's last message; everything after it is removed with it."""
    check_message(text)
    _check_profile(deps, profile)
    message_id = new_message_id()

    def work(tx: Tx) -> SentMessage:
        conversation = tx.conversations.lock(user, conversation_id)
        try:
            tx.messages.remove_last(user, conversation_id)
        except NotFound:
            raise Conflict("There is no message to edit.") from None
        tx.runs.stop_reply(user, conversation_id)
        # The agent's session contains the removed messages, so a new one starts.
        fresh = replace(conversation, session=None)
        if conversation.session is not None:
            tx.sessions.delete(user, conversation_id, conversation.session.id)
        tx.conversations.save(Step(conversation=fresh, stops=Stops.REPLIES))
        step = transitions.receive_message(
            fresh, text, message_id=message_id, now=tx.now, profile=profile
        )
        save(tx, step)
        return _sent_message(tx, step, message_id, text)

    return await deps.store.transact(work)


def _check_profile(deps: Deps, profile: str | None) -> None:
    if profile is not None:
        routing.require(deps.routes, profile)


def _sent_message(tx: Tx, step: Step, message_id: MessageId, text: str) -> SentMessage:
    message = Message(
        id=message_id,
        conversation_id=step.conversation.id,
        role=MessageRole.USER,
        content=text,
        source=Source.CHAT,
        created_at=tx.now,
    )
    return SentMessage(message, frozenset(item.id for item in step.inbox))
