"""Messages: append, and read the newest."""

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import Connection, bindparam, insert, select

from backburner.core.conversation import Message
from backburner.core.ids import ConversationId, RunId, UserId, new_message_id
from backburner.core.transitions import NewMessage
from backburner.store.mapping import to_message
from backburner.store.tables import messages

_insert = insert(messages)
_recent = (
    select(messages)
    .where(
        messages.c.user_id == bindparam("owner"),
        messages.c.conversation_id == bindparam("conversation"),
    )
    .order_by(messages.c.number.desc())
    .limit(bindparam("most"))
)


def append(
    connection: Connection,
    user: UserId,
    conversation: ConversationId,
    said: Iterable[NewMessage],
    *,
    run_id: RunId | None,
    now: datetime,
) -> None:
    rows = [
        {
            "id": message.id or new_message_id(),
            "user_id": user,
            "conversation_id": conversation,
            "role": message.role.value,
            "source": message.source.value,
            "content": message.content,
            "outside": message.outside,
            "run_id": run_id,
            "created_at": now,
        }
        for message in said
    ]
    if rows:
        connection.execute(_insert, rows)


def recent(
    connection: Connection, user: UserId, conversation: ConversationId, *, most: int
) -> tuple[Message, ...]:
    """Read the newest messages, oldest first."""
    found = connection.execute(
        _recent, {"owner": user, "conversation": conversation, "most": most}
    ).all()
    return tuple(to_message(row) for row in reversed(found))
