"""Messages: append, and read the newest."""

from collections.abc import Iterable

from sqlalchemy import bindparam, insert, select, update

from backburner.core.conversation import Message, MessageRole, Source
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, RunId, UserId, new_message_id
from backburner.core.transitions import NewMessage
from backburner.store.context import Group
from backburner.store.dialect import number_rows
from backburner.store.mapping import to_message
from backburner.store.tables import messages

_insert = insert(messages)
_recent = (
    select(messages)
    .where(
        messages.c.user_id == bindparam("owner"),
        messages.c.conversation_id == bindparam("conversation"),
        messages.c.replaced_at.is_(None),
    )
    .order_by(messages.c.number.desc())
    .limit(bindparam("limit"))
)
_last_said = (
    select(messages.c.number)
    .where(
        messages.c.user_id == bindparam("owner"),
        messages.c.conversation_id == bindparam("conversation"),
        messages.c.replaced_at.is_(None),
        messages.c.role == MessageRole.USER.value,
        messages.c.source == Source.CHAT.value,
    )
    .order_by(messages.c.number.desc())
    .limit(1)
)
_take_out = (
    update(messages)
    .where(
        messages.c.user_id == bindparam("owner"),
        messages.c.conversation_id == bindparam("conversation"),
        messages.c.replaced_at.is_(None),
        messages.c.number >= bindparam("since"),
    )
    .values(replaced_at=bindparam("at"))
)


class Messages(Group):
    def append(
        self,
        user: UserId,
        conversation_id: ConversationId,
        said: Iterable[NewMessage],
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
            for message in said
        ]
        if rows:
            number_rows(self.connection, messages, rows)
            self.connection.execute(_insert, rows)

    def remove_last(self, user: UserId, conversation_id: ConversationId) -> None:
        """Take out the user's last message and all that came after it."""
        owned = {"owner": user, "conversation": conversation_id}
        number = self.connection.execute(_last_said, owned).scalar()
        if number is None:
            raise NotFound
        self.connection.execute(_take_out, {**owned, "since": number, "at": self.tx.now})

    def recent(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> tuple[Message, ...]:
        """Read the newest messages, oldest first."""
        found = self.connection.execute(
            _recent, {"owner": user, "conversation": conversation_id, "limit": limit}
        ).all()
        return tuple(to_message(row) for row in reversed(found))
