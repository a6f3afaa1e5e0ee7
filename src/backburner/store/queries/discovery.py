"""Discovery: the presence of users, their recent chats, and slots that are skipped."""

from collections.abc import Sequence

from sqlalchemy import (
    Integer,
    Text,
    and_,
    bindparam,
    exists,
    func,
    literal_column,
    not_,
    or_,
    select,
    text,
    update,
)

from backburner.core.conversation import Conversation, Kind, MessageRole
from backburner.core.ids import ConversationId, UserId
from backburner.core.work.discovery import Presence, Snippet
from backburner.store.context import Group
from backburner.store.mapping import to_message
from backburner.store.tables import (
    conversations,
    inbox,
    is_discovery,
    is_queued,
    is_running,
    is_shown,
    is_unserved,
    is_user_message,
    messages,
    runs,
)

#: Chats are read from the oldest of this many last messages of the user.
_MAX_USER_MESSAGES = literal_column("15", Integer)

_owner = bindparam("owner", type_=Text())
select_discovery = (
    select(conversations.c.id)
    .where(conversations.c.user_id == _owner, is_discovery)
    .order_by(conversations.c.id)
)
_user_messages = select(messages.c.conversation_id, messages.c.number, messages.c.created_at).where(
    messages.c.user_id == _owner, is_user_message
)
_newest_user_messages = _user_messages.order_by(messages.c.number.desc())
select_presence = select(
    _newest_user_messages.with_only_columns(messages.c.created_at)
    .limit(literal_column("1", Integer))
    .scalar_subquery()
    .label("last_message_at"),
    or_(
        exists().where(inbox.c.user_id == _owner, is_unserved, inbox.c.from_person),
        # Two conditions, so that each uses its index.
        *(
            exists().where(
                runs.c.user_id == _owner,
                has_status,
                runs.c.kind == text("'reply'"),
                not_(runs.c.unattended),
            )
            for has_status in (is_running, is_queued)
        ),
    ).label("awaits_reply"),
)
_recent = _newest_user_messages.limit(_MAX_USER_MESSAGES).cte("recent")
select_recent_chat = (
    select(messages, conversations.c.title)
    .join(
        conversations,
        and_(
            conversations.c.user_id == messages.c.user_id,
            conversations.c.id == messages.c.conversation_id,
        ),
    )
    .where(
        messages.c.user_id == _owner,
        messages.c.conversation_id.in_(select(_recent.c.conversation_id)),
        messages.c.number >= select(func.min(_recent.c.number)).scalar_subquery(),
        messages.c.replaced_at.is_(None),
        messages.c.role != MessageRole.SYSTEM.value,
        conversations.c.kind == Kind.CHAT.value,
        is_shown,
    )
    # An expression, or SQLite would scan all messages since then, of all conversations.
    .order_by((messages.c.number + literal_column("0", Integer)).desc())
    .limit(bindparam("limit"))
)
_skip_slot = (
    update(conversations)
    .where(conversations.c.user_id == _owner, conversations.c.id == bindparam("conversation_id"))
    .values(next_run_at=bindparam("new_next_run_at"), settled_until=bindparam("new_settled_until"))
)


class Discovery(Group):
    def conversation_ids(self, user: UserId) -> Sequence[ConversationId]:
        ids = self._execute(select_discovery, {"owner": user}).scalars()
        return [ConversationId(conversation_id) for conversation_id in ids]

    def presence(self, user: UserId) -> Presence:
        """Read when a user last wrote, and whether they wait for a reply."""
        row = self._execute(select_presence, {"owner": user}).one()
        return Presence(last_message_at=row.last_message_at, awaits_reply=bool(row.awaits_reply))

    def recent_snippets(self, user: UserId, *, limit: int) -> Sequence[Snippet]:
        """Read the last messages of a user's chats, oldest first."""
        rows = self._execute(select_recent_chat, {"owner": user, "limit": limit}).all()
        return [Snippet(row.title, to_message(row)) for row in reversed(rows)]

    def pass_over(self, passed: Conversation) -> None:
        """Store the next slot and nothing else: a skipped slot leaves no trace."""
        values = {
            "owner": passed.user_id,
            "conversation_id": passed.id,
            "new_next_run_at": passed.next_run_at,
            "new_settled_until": passed.settled_until,
        }
        self._execute(_skip_slot, values)
