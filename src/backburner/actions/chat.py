"""Talking: what a person says is stored at once, and answered by whichever process can."""

from dataclasses import replace

from backburner.actions.deps import Deps
from backburner.actions.steps import change, save
from backburner.core import routing, transitions
from backburner.core.conversation import Conversation, check_message
from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import (
    ConversationId,
    MessageId,
    UserId,
    new_conversation_id,
    new_message_id,
)
from backburner.core.run import RunKind, RunStatus
from backburner.core.transitions import Step, Stops
from backburner.ports import Tx

#: A reply that is under way is among the last few runs.
_FEW = 5


async def begin(
    deps: Deps, user: UserId, *, profile: str | None = None, title: str = ""
) -> Conversation:
    def work(tx: Tx) -> Conversation:
        born = transitions.start_chat(new_conversation_id(), user, now=tx.now).conversation
        named = transitions.rename(born, title).conversation if title else born
        chat = routing.assign(replace(named, requested_profile=profile), deps.routes)
        tx.conversations.add(Step(conversation=chat))
        return chat

    return await deps.store.transact(work)


async def open_with(
    deps: Deps, user: UserId, text: str, *, profile: str | None = None, title: str = ""
) -> Conversation:
    """Begin a chat with what is said first: both are there, or neither."""

    def work(tx: Tx) -> Conversation:
        born = transitions.start_chat(new_conversation_id(), user, now=tx.now).conversation
        named = transitions.rename(born, title).conversation if title else born
        chat = routing.assign(replace(named, requested_profile=profile), deps.routes)
        step = transitions.receive_message(chat, text, message_id=new_message_id(), now=tx.now)
        tx.conversations.add(step)
        return step.conversation

    return await deps.store.transact(work)


async def say(deps: Deps, user: UserId, conversation_id: ConversationId, text: str) -> MessageId:
    """Take a message. It is there for good when this returns; the reply comes when it comes."""
    said = new_message_id()
    await change(
        deps,
        user,
        conversation_id,
        lambda found, tx: transitions.receive_message(found, text, message_id=said, now=tx.now),
    )
    return said


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
) -> MessageId:
    """Say something else instead of one's last message; what was answered to it is gone with it."""
    check_message(text)
    said = new_message_id()

    def work(tx: Tx) -> None:
        found = tx.conversations.lock(user, conversation_id)
        try:
            tx.messages.remove_last(user, conversation_id)
        except NotFound:
            raise Conflict("You have not said anything yet.") from None
        tx.runs.stop_reply(user, conversation_id)
        # The agent's own session knows what was taken back: it begins a new one.
        fresh = replace(found, session=None)
        if found.session is not None:
            tx.sessions.delete(user, conversation_id, found.session.id)
        tx.conversations.save(Step(conversation=fresh, stops=Stops.REPLIES))
        save(tx, transitions.receive_message(fresh, text, message_id=said, now=tx.now))

    await deps.store.transact(work)
    return said
