"""The log of what changed, for those who watch. It says where to look, not what is there."""

from datetime import datetime

from sqlalchemy import Connection, insert

from backburner.core.ids import ConversationId, UserId
from backburner.store.tables import events

_insert = insert(events)


def note(
    connection: Connection,
    user: UserId,
    conversation: ConversationId,
    kind: str,
    *,
    now: datetime,
) -> None:
    connection.execute(
        _insert,
        {"user_id": user, "conversation_id": conversation, "kind": kind, "created_at": now},
    )
