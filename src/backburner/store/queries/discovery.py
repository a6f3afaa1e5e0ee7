"""What discovery goes by: who was heard when, what was said lately, and slots that pass."""

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
    is_heard,
    is_queued,
    is_running,
    messages,
    runs,
    unserved,
)

#: What a user said last: from there on their chats are read.
_MOST_HEARD = literal_column("15", Integer)

_owner = bindparam("owner", type_=Text())
finding = (
    select(conversations.c.id)
    .where(conversations.c.user_id == _owner, is_discovery)
    .order_by(conversations.c.id)
)
_heard = select(messages.c.conversation_id, messages.c.number, messages.c.created_at).where(
    messages.c.user_id == _owner, is_heard
)
_newest_heard = _heard.order_by(messages.c.number.desc())
presence_of = select(
    _newest_heard.with_only_columns(messages.c.created_at)
    .limit(literal_column("1", Integer))
    .scalar_subquery()
    .label("last_message_at"),
    or_(
        exists().where(inbox.c.user_id == _owner, unserved, inbox.c.from_person),
        # Apart, so that each has an index.
        *(
            exists().where(
                runs.c.user_id == _owner,
                stands,
                runs.c.kind == text("'reply'"),
                not_(runs.c.unattended),
            )
            for stands in (is_running, is_queued)
        ),
    ).label("awaits_reply"),
)
_lately = _newest_heard.limit(_MOST_HEARD).cte("lately")
talk_of = (
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
        messages.c.conversation_id.in_(select(_lately.c.conversation_id)),
        messages.c.number >= select(func.min(_lately.c.number)).scalar_subquery(),
        messages.c.replaced_at.is_(None),
        messages.c.role != MessageRole.SYSTEM.value,
        conversations.c.kind == Kind.CHAT.value,
    )
    # As an expression, or SQLite would go through all that was said since then, also elsewhere.
    .order_by((messages.c.number + literal_column("0", Integer)).desc())
    .limit(bindparam("limit"))
)
_pass = (
    update(conversations)
    .where(conversations.c.user_id == _owner, conversations.c.id == bindparam("which"))
    .values(next_run_at=bindparam("following"), settled_until=bindparam("settled"))
)


class Discovery(Group):
    def find(self, user: UserId) -> Sequence[ConversationId]:
        return [
            ConversationId(found) for found in self._execute(finding, {"owner": user}).scalars()
        ]

    def presence(self, user: UserId) -> Presence:
        """See when a user was last heard, and whether something of theirs is being answered."""
        row = self._execute(presence_of, {"owner": user}).one()
        return Presence(last_message_at=row.last_message_at, awaits_reply=bool(row.awaits_reply))

    def talk(self, user: UserId, *, limit: int) -> Sequence[Snippet]:
        """Read what was said last in a user's chats, oldest first."""
        rows = self._execute(talk_of, {"owner": user, "limit": limit}).all()
        return [Snippet(row.title, to_message(row)) for row in reversed(rows)]

    def pass_over(self, passed: Conversation) -> None:
        """Go on to the next slot, and nothing else: nobody is to see that there was one."""
        values = {
            "owner": passed.user_id,
            "which": passed.id,
            "following": passed.next_run_at,
            "settled": passed.settled_until,
        }
        self._execute(_pass, values)
