"""Descriptions of what work waits for, for its user."""

from collections.abc import Iterable, Mapping, Sequence

from backburner.core.connections import access
from backburner.core.conversation import Conversation, PauseReason
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Purpose
from backburner.ports import Tx


def warnings_for(
    tx: Tx, user: UserId, conversations: Iterable[Conversation]
) -> Mapping[ConversationId, Sequence[str]]:
    """Say which connections open work names and cannot use now. Without any, nothing is read."""
    named = [one for one in conversations if one.schedule is not None and access.named(one)]
    existing = tx.connections.list(user) if named else ()
    return {one.id: access.find_lacking(one, existing).warnings for one in named}


def awaited_sign_ins(
    tx: Tx, user: UserId, conversations: Iterable[Conversation]
) -> Mapping[ConversationId, str]:
    """Say which connections have to be reconnected for work that waits for it.

    Where nothing says that it does, nothing is read.
    """
    ids = {one.id for one in conversations if _waits_for_sign_in(one)}
    if not ids:
        return {}
    names = {one.id: one.name for one in tx.connections.list(user)}
    return {
        run.conversation_id: f"Reconnect {names[connection_id]}."
        for connection_id, run in tx.runs.waiting_for_sign_in(user)
        if run.conversation_id in ids and connection_id in names
    }


def _waits_for_sign_in(conversation: Conversation) -> bool:
    is_asked = any(asked.purpose is Purpose.RECONNECT for asked in conversation.questions)
    return is_asked or conversation.pause_reason is PauseReason.SIGNED_OUT
