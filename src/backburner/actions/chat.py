"""Chat: messages are stored at once, and answered by whichever process can."""

from dataclasses import dataclass, replace

from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.core import routing, transitions
from backburner.core.conversation import Conversation, Message, MessageRole, Source, check_message
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
from backburner.ports import Reply, Tx

#: A reply that is under way is among the last few runs.
_FEW = 5


@dataclass(frozen=True, slots=True)
class SentMessage:
    message: Message
    #: The inbox items that a run has to serve before the message is answered.
    items: frozenset[ItemId]


async def begin(
    deps: Deps,
    user: UserId,
    text: str | None = None,
    *,
    profile: str | None = None,
    title: str = "",
) -> Conversation:
    """Start a chat, with its first message if there is one: both are stored, or neither."""

    def work(tx: Tx) -> Conversation:
        started = transitions.start_chat(new_conversation_id(), user, now=tx.now).conversation
        named = transitions.rename(started, title).conversation if title else started
        chat = routing.assign(replace(named, requested_profile=profile), deps.routes)
        step = Step(conversation=chat)
        if text is not None:
            step = transitions.receive_message(chat, text, message_id=new_message_id(), now=tx.now)
        tx.conversations.add(step)
        return step.conversation

    return await deps.store.transact(work)


async def say(deps: Deps, user: UserId, conversation_id: ConversationId, text: str) -> SentMessage:
    """Store a message. It is stored for good when this returns; the reply follows later."""
    message_id = new_message_id()

    def work(tx: Tx) -> SentMessage:
        conversation = tx.conversations.lock(user, conversation_id)
        step = transitions.receive_message(conversation, text, message_id=message_id, now=tx.now)
        save(tx, step)
        return _sent(tx, step, message_id, text)

    return await deps.store.transact(work)


async def find_reply(
    deps: Deps, user: UserId, conversation_id: ConversationId, sent: SentMessage
) -> Reply | None:
    """Find the reply to a message, whichever process gave it; None: there is none yet."""
    return await deps.store.transact(
        lambda tx: tx.replies.find(user, conversation_id, sent.message.id, sent.items)
    )


async def stop(deps: Deps, user: UserId, conversation_id: ConversationId) -> None:
    """Stop the reply that is being given, or would be; what was said of it so far stays."""

    def work(tx: Tx) -> None:
        found = tx.conversations.lock(user, conversation_id)
        is_given = tx.runs.stop_reply(user, conversation_id)
        waits = tx.inbox.waiting(user, conversation_id, RunKind.REPLY) or _is_put_aside(
            tx, user, conversation_id
        )
        if not is_given and not waits:
            raise Conflict("There is no reply to stop.")
        if not is_given:
            save(tx, Step(conversation=found, stops=Stops.REPLIES))

    await deps.store.transact(work)


def _is_put_aside(tx: Tx, user: UserId, conversation_id: ConversationId) -> bool:
    """See whether a reply was handed back: it is under way, and nobody has its turn."""
    return any(
        run.kind is RunKind.REPLY and run.status is RunStatus.QUEUED
        for run in tx.runs.history(user, conversation_id, limit=_FEW)
    )


async def edit_last(
    deps: Deps, user: UserId, conversation_id: ConversationId, text: str
) -> SentMessage:
    """Replace the user's last message; everything after it is removed with it."""
    check_message(text)
    message_id = new_message_id()

    def work(tx: Tx) -> SentMessage:
        conversation = tx.conversations.lock(user, conversation_id)
        try:
            tx.messages.remove_last(user, conversation_id)
        except NotFound:
            raise Conflict("You have not said anything yet.") from None
        tx.runs.stop_reply(user, conversation_id)
        # The agent's session contains what was removed, so a new one begins.
        fresh = replace(conversation, session=None)
        if conversation.session is not None:
            tx.sessions.delete(user, conversation_id, conversation.session.id)
        tx.conversations.save(Step(conversation=fresh, stops=Stops.REPLIES))
        step = transitions.receive_message(fresh, text, message_id=message_id, now=tx.now)
        save(tx, step)
        return _sent(tx, step, message_id, text)

    return await deps.store.transact(work)


def _sent(tx: Tx, step: Step, message_id: MessageId, text: str) -> SentMessage:
    message = Message(
        id=message_id,
        role=MessageRole.USER,
        content=text,
        source=Source.CHAT,
        created_at=tx.now,
    )
    return SentMessage(message, frozenset(item.id for item in step.inbox))
