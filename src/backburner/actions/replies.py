"""Saying something and waiting for what comes of it, whichever process answers."""

from dataclasses import dataclass

from backburner.actions.deps import Deps
from backburner.actions.steps import save
from backburner.core import transitions
from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, ItemId, UserId, new_message_id
from backburner.core.run import RunKind
from backburner.ports import Reply, Tx


@dataclass(frozen=True, slots=True)
class Said:
    message: Message
    #: What was put into the inbox for it.
    items: frozenset[ItemId]


async def say(deps: Deps, user: UserId, conversation_id: ConversationId, text: str) -> Said:
    """Take a message, as `chat.say` does, and remember what to wait for."""
    said = new_message_id()

    def work(tx: Tx) -> Said:
        found = tx.conversations.lock(user, conversation_id)
        before = _items(tx, user, conversation_id)
        save(tx, transitions.receive_message(found, text, message_id=said, now=tx.now))
        return Said(
            tx.replies.message(user, conversation_id, said),
            _items(tx, user, conversation_id) - before,
        )

    return await deps.store.transact(work)


async def find(
    deps: Deps, user: UserId, conversation_id: ConversationId, said: Said
) -> Reply | None:
    """Find what came of it; None: not yet."""
    return await deps.store.transact(
        lambda tx: tx.replies.find(user, conversation_id, said.message.id, said.items)
    )


def _items(tx: Tx, user: UserId, conversation_id: ConversationId) -> frozenset[ItemId]:
    return frozenset(
        item.id for kind in RunKind for item in tx.inbox.waiting(user, conversation_id, kind)
    )
