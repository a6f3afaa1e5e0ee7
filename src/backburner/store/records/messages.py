"""Messages: append, read the newest, and the files that they have."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import and_, bindparam, insert, select, true, tuple_, update

from backburner.core.content.file import FileReference
from backburner.core.conversation import Conversation, Message, MessageRole, Source
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, MessageId, RunId, UserId, new_message_id
from backburner.core.transitions import NewMessage
from backburner.store.context import Group
from backburner.store.dialect import has_row_locks, number_rows
from backburner.store.mapping import dump_references, load_references, to_message
from backburner.store.records.files import Files
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
    select(messages)
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
_detach_replaced = (
    update(messages)
    .where(
        messages.c.user_id == bindparam("owner"),
        messages.c.conversation_id == bindparam("conversation"),
        messages.c.files.is_not(None),
        messages.c.replaced_at.is_not(None),
    )
    .values(files=None)
    .returning(messages.c.id)
)
_select_with_files = (
    select(messages.c.files, messages.c.run_id)
    .where(_in_conversation, messages.c.files.is_not(None))
    .order_by(messages.c.number.desc())
    .limit(bindparam("limit"))
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
        numbered = [(message.id or new_message_id(), message) for message in new]
        rows = [
            {
                "id": message_id,
                "user_id": user,
                "conversation_id": conversation_id,
                "role": message.role.value,
                "source": message.source.value,
                "content": message.content,
                "outside": message.outside,
                "shows": message.shows,
                "closes": message.closes,
                "news": message.role is not MessageRole.USER and not message.own,
                "files": dump_references(message.files),
                "run_id": run_id,
                "created_at": self.tx.now,
            }
            for message_id, message in numbered
        ]
        number_rows(self.connection, messages, rows)
        self._write(_insert, *rows)
        for message_id, message in numbered:
            self._use_files(user, conversation_id, message_id, message)

    def _use_files(
        self, user: UserId, conversation_id: ConversationId, message_id: MessageId, of: NewMessage
    ) -> None:
        for digest in sorted({file.digest for file in of.files}):
            # What a run hands over is named all the same if its owner deletes it at this moment.
            with suppress(*(() if of.role is MessageRole.USER else (NotFound,))):
                Files(self.tx).use(
                    user, digest, conversation_id=conversation_id, used_by=message_id
                )

    def detach_replaced(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete the files that nothing else names than messages that were replaced."""
        key = {"owner": user, "conversation": conversation_id}
        detached = self._execute(_detach_replaced, key).scalars().all()
        Files(self.tx).forget_messages(user, conversation_id, list(map(MessageId, detached)))

    def files_of(
        self,
        user: UserId,
        conversation_id: ConversationId,
        *,
        limit: int,
        runs: Sequence[RunId] | None = None,
    ) -> Sequence[FileReference]:
        """Read the files of messages, the newest message first; with `runs`, of what they wrote."""
        values = {"owner": user, "conversation": conversation_id, "limit": limit}
        found = self._execute(_select_with_files, values).all()
        return [
            file
            for row in found
            if runs is None or row.run_id in runs
            for file in load_references(row.files)
        ]

    def last_of_user(self, user: UserId, conversation_id: ConversationId) -> Message | None:
        key = {"owner": user, "conversation": conversation_id}
        row = self._execute(_select_last_of_user, key).one_or_none()
        return None if row is None else to_message(row)

    def remove_last(self, user: UserId, conversation_id: ConversationId) -> MessageId:
        """Mark the user's last message and all later ones as replaced; return its id."""
        key = {"owner": user, "conversation": conversation_id}
        last = self._read_one(_select_last_of_user, key)
        self._execute(_replace_since, {**key, "first_number": last.number, "at": self.tx.now})
        return MessageId(last.id)

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
