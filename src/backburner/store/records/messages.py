"""Messages: append, and read the newest."""

from collections.abc import Iterable

from sqlalchemy import and_, bindparam, insert, select, update

from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.ids import ConversationId, RunId, UserId, new_message_id
from backburner.core.transitions import NewMessage
from backburner.store.context import Group
from backburner.store.dialect import number_rows
from backburner.store.mapping import to_message
from backburner.store.tables import messages

_insert = insert(messages)
_in_conversation = and_(
    messages.c.user_id == bindparam("owner"),
    messages.c.conversation_id == bindparam("conversation"),
    messages.c.replaced_at.is_(None),
)
_select_recent = (
    select(messages)
    .where(_in_conversation)
    .order_by(messages.c.number.desc())
    .limit(bindparam("limit"))
)
_select_last_of_user = (
    select(messages.c.number)
    .where(
        _in_conversation,
        messages.c.role == MessageRole.USER.value,
        messages.c.source == Source.CHAT.value,
    )
    .order_by(messages.c.number.desc())
    .limit(1)
)
_replace_since = (
    update(messages)
    .where(_in_conversation, messages.c.number >= bindparam("first_number"))
    .values(replaced_at=bindparam("at"))
)


class Messages(Group):
    def append(
        self,
        user: UserId,
        conversation_id: ConversationId,
        new: Iterable[NewMessage],
        *,
        run_id: RunId | None,
    ) -> None:
        rows = [
            {
                "id": message.id or new_message_id(),
                "user_id": user,
                "conversation_id": conversation_id,
                "role": message.role.value,
                "source": message.source.value,
                "content": message.content,
                "outside": message.outside,
                "run_id": run_id,
                "created_at": self.tx.now,
            }
            for message in new
        ]
        number_rows(self.connection, messages, rows)
        self._write(_insert, *rows)

    def remove_last(self, user: UserId, conversation_id: ConversationId) -> None:
        """Mark the user's last message and all later ones as replaced."""
        key = {"owner": user, "conversation": conversation_id}
        number = self._read_one(_select_last_of_user, key).number
        self._execute(_replace_since, {**key, "first_number": number, "at": self.tx.now})

    def recent(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> tuple[Message, ...]:
        """Read the newest messages, oldest first."""
        values = {"owner": user, "conversation": conversation_id, "limit": limit}
        rows = self._execute(_select_recent, values).all()
        return tuple(to_message(row) for row in reversed(rows))
