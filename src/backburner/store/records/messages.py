"""Messages: append, and read the newest."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, insert, select, true, tuple_, update

from backburner.core.conversation import Conversation, Message, MessageRole, Source
from backburner.core.ids import ConversationId, RunId, UserId, new_message_id
from backburner.core.transitions import NewMessage
from backburner.store.context import Group
from backburner.store.dialect import has_row_locks, number_rows
from backburner.store.mapping import to_message
from backburner.store.tables import conversations, messages

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
#: For PostgreSQL; an alias, because the conversations themselves are locked.
_said = conversations.alias("said")
_newest = (
    select(messages)
    .where(
        messages.c.user_id == _said.c.user_id,
        messages.c.conversation_id == _said.c.id,
        messages.c.replaced_at.is_(None),
    )
    .order_by(messages.c.number.desc())
    .limit(bindparam("limit"))
    .lateral("newest")
)
_select_recent_of_each = (
    select(_newest)
    .select_from(_said.join(_newest, true()))
    .where(tuple_(_said.c.user_id, _said.c.id).in_(bindparam("keys", expanding=True)))
    .order_by(_newest.c.number)
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
                "shows": message.shows,
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
        return _in_order(self._execute(_select_recent, values).all())

    def _recent(self, of: Conversation, limit: int) -> tuple[Message, ...]:
        values = {"owner": of.user_id, "conversation": of.id, "limit": limit}
        return _in_order(self.tx.execute_apart(_select_recent, values).all())

    def recent_of_each(
        self, of: Sequence[Conversation], *, limit: int
    ) -> Mapping[ConversationId, Sequence[Message]]:
        """Read the newest messages of several conversations, oldest first.

        Those that were written in the same transaction may be missing.
        """
        if len(of) == 1 or not has_row_locks(self.connection):
            return {one.id: self._recent(one, limit) for one in of}
        keys = [(one.user_id, one.id) for one in of]
        found: dict[ConversationId, list[Message]] = {one.id: [] for one in of}
        values = {"keys": keys, "limit": limit}
        for row in self.tx.execute_apart(_select_recent_of_each, values):
            found[ConversationId(row.conversation_id)].append(to_message(row))
        return found


def _in_order(rows: Sequence[Any]) -> tuple[Message, ...]:
    return tuple(to_message(row) for row in reversed(rows))
