"""Marks of owners on their conversations; no step of the core changes them.

The time of the last change, by which conversations are listed, stays.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Text, and_, bindparam, false, func, select, update

from backburner.core.conversation import Conversation, Status
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, MessageId, UserId
from backburner.ports import DeletedConversation, EventKind
from backburner.store.context import Group
from backburner.store.mapping import to_conversation
from backburner.store.records.notices import Notices
from backburner.store.tables import conversations, is_pinned, is_shown, messages

_by_id = and_(
    conversations.c.user_id == bindparam("owner", type_=Text()),
    conversations.c.id == bindparam("which", type_=Text()),
)
_select_seen = select(conversations.c.seen_number, conversations.c.seen_at).where(_by_id)
_in_conversation = and_(
    messages.c.user_id == bindparam("owner", type_=Text()),
    messages.c.conversation_id == bindparam("which", type_=Text()),
)
_select_message = select(messages.c.number, messages.c.created_at).where(
    _in_conversation, messages.c.id == bindparam("message_id", type_=Text())
)
_select_last_number = (
    select(messages.c.number).where(_in_conversation).order_by(messages.c.number.desc()).limit(1)
)
_see = (
    update(conversations)
    .where(_by_id)
    .values(seen_number=bindparam("last_number"), seen_at=bindparam("at"))
)
_pin = update(conversations).where(_by_id).values(pinned_at=bindparam("at"))
_count_pinned = (
    select(func.count())
    .select_from(conversations)
    .where(conversations.c.user_id == bindparam("owner", type_=Text()), is_pinned)
)
_hide = (
    update(conversations)
    .where(_by_id, is_shown)
    .values(
        deleted_at=bindparam("at"),
        deleted_with=bindparam("root"),
        was_archived=bindparam("is_archived"),
    )
)
_hidden = select(conversations).where(_by_id, ~is_shown)
_lock_hidden = _hidden.with_for_update(key_share=True)
_show = (
    update(conversations)
    .where(_by_id, ~is_shown)
    .values(deleted_at=None, deleted_with=None, was_archived=false())
)
_select_deleted = (
    select(conversations.c.user_id, conversations.c.id)
    .where(
        ~is_shown,
        conversations.c.deleted_at <= bindparam("before", type_=conversations.c.deleted_at.type),
        conversations.c.deleted_with == conversations.c.id,
    )
    .order_by(conversations.c.deleted_at)
    .limit(bindparam("limit"))
)


class Marks(Group):
    def see(self, conversation: Conversation, up_to: MessageId | None = None) -> bool:
        """Mark everything in a locked conversation as seen, with its notices, or up to a message.

        False: it was seen before. What was seen once stays so.
        """
        user, which = conversation.user_id, conversation.id
        values = {"owner": user, "which": which}
        seen = self._execute(_select_seen, values).one()
        if up_to is None:
            number, at = self._execute(_select_last_number, values).scalar() or 0, self.tx.now
        else:
            message = self._read_one(_select_message, {**values, "message_id": up_to})
            number, at = message.number, message.created_at
        Notices(self.tx).mark_seen_in(user, which, until=at)
        has_unseen_question = any(
            asked.asked_at <= at and (seen.seen_at is None or asked.asked_at > seen.seen_at)
            for asked in conversation.questions
        )
        if number <= seen.seen_number and not has_unseen_question:
            return False
        number = max(number, seen.seen_number)
        at = at if seen.seen_at is None else max(at, seen.seen_at)
        self._execute(_see, {**values, "last_number": number, "at": at})
        self._changed(user, which)
        return True

    def pin(self, conversation: Conversation, *, pinned: bool) -> None:
        """Pin a locked conversation, now, or unpin it."""
        user, which = conversation.user_id, conversation.id
        at = self.tx.now if pinned else None
        self._execute(_pin, {"owner": user, "which": which, "at": at})
        self._changed(user, which)

    def count_pinned(self, user: UserId) -> int:
        return int(self._execute(_count_pinned, {"owner": user}).scalar_one())

    def hide(self, before: Conversation, *, root: ConversationId) -> None:
        """Hide a conversation that is deleted with `root`, as it was before its work was ended."""
        user, which = before.user_id, before.id
        is_archived = before.status is Status.ARCHIVED
        values = {"owner": user, "which": which, "root": root, "is_archived": is_archived}
        self._execute(_hide, {**values, "at": self.tx.now})

    def lock_deleted(self, user: UserId, conversation_id: ConversationId) -> DeletedConversation:
        """Lock a conversation that was deleted and not removed yet."""
        values = {"owner": user, "which": conversation_id}
        row = self._execute(_lock_hidden, values).one_or_none()
        if row is None:
            raise NotFound
        return DeletedConversation(
            to_conversation(row, ()),
            deleted_at=row.deleted_at,
            deleted_with=ConversationId(row.deleted_with),
            was_archived=row.was_archived,
        )

    def is_deleted(self, user: UserId, conversation_id: ConversationId) -> bool:
        return self._exists(_hidden, {"owner": user, "which": conversation_id})

    def show(self, user: UserId, conversation_id: ConversationId) -> None:
        self._execute(_show, {"owner": user, "which": conversation_id})

    def deleted_before(
        self, before: datetime, *, limit: int
    ) -> Sequence[tuple[UserId, ConversationId]]:
        rows = self._execute(_select_deleted, {"before": before, "limit": limit})
        return [(UserId(row.user_id), ConversationId(row.id)) for row in rows]

    def _changed(self, user: UserId, conversation_id: ConversationId) -> None:
        self.tx.changed(user, conversation_id, EventKind.CONVERSATION)
