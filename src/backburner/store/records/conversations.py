"""Conversations: load, lock, insert, save. Every lookup has the owner in its key."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    bindparam,
    case,
    delete,
    insert,
    literal,
    not_,
    select,
    text,
    update,
)

from backburner.core.conversation import Conversation, Status
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.store.mapping import to_conversation, to_row
from backburner.store.records import questions, waits
from backburner.store.tables import conversations, inbox, receipts, tool_calls, unserved

_owned = (conversations.c.user_id == bindparam("owner")) & (
    conversations.c.id == bindparam("which")
)
_load = select(conversations).where(_owned)
_lock = _load.with_for_update(key_share=True)
_insert = insert(conversations)
_save = (
    update(conversations)
    .where(_owned)
    .values(
        {
            column.name: bindparam(column.name)
            for column in conversations.columns
            if column.name not in ("user_id", "id", "created_at", "turn_run", "turn_until", "epoch")
        }
    )
)
_delete = delete(conversations).where(_owned)
_keep_receipts = insert(receipts).from_select(
    [column.name for column in receipts.columns],
    select(
        *(
            # Nobody will hear any more what became of one that is under way.
            case((tool_calls.c.state == "started", literal("unknown")), else_=tool_calls.c.state)
            if column.name == "state"
            else tool_calls.c[column.name]
            for column in receipts.columns
        )
    ).where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.conversation_id == bindparam("which"),
        not_(tool_calls.c.read_only),
    ),
)
_children = (
    select(conversations.c.id)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.parent_id == bindparam("which"),
    )
    .order_by(conversations.c.created_at, conversations.c.id)
)
_open_children = (
    select(conversations)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.parent_id == bindparam("which"),
        conversations.c.schedule.is_not(None) | (conversations.c.status == text("'waiting_input'")),
    )
    .order_by(conversations.c.created_at, conversations.c.id)
)
_followers = (
    select(conversations.c.id)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.after_id == bindparam("which"),
    )
    .order_by(conversations.c.id)
)
_parked = select(conversations.c.id).where(
    conversations.c.user_id == bindparam("owner"),
    conversations.c.pause_reason == text("'allowance'"),
)
_waiting = (
    select(inbox.c.id)
    .where(
        inbox.c.user_id == bindparam("owner"),
        inbox.c.conversation_id == bindparam("which"),
        unserved,
        inbox.c.from_person,
    )
    .limit(1)
)


def load(connection: Connection, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Read a conversation with its open questions, to look at."""
    row = connection.execute(_load, {"owner": user, "which": conversation_id}).one_or_none()
    if row is None:
        raise NotFound
    return read(connection, row)


def lock(connection: Connection, user: UserId, conversation_id: ConversationId) -> Conversation:
    """Read a conversation to change it; until the transaction ends nobody else can."""
    row = connection.execute(_lock, {"owner": user, "which": conversation_id}).one_or_none()
    if row is None:
        raise NotFound
    return read(connection, row)


def read(connection: Connection, row: Row[Any]) -> Conversation:
    """Make a conversation of its row; only one that waits for an answer has open questions."""
    has_asked = row.status == Status.WAITING_INPUT.value
    asked = questions.open_of(connection, row.user_id, row.id) if has_asked else ()
    return to_conversation(row, asked)


def add(connection: Connection, conversation: Conversation) -> None:
    row = to_row(conversation) | {"updated_at": conversation.created_at}
    connection.execute(_insert, row)


def save(connection: Connection, conversation: Conversation, *, now: datetime) -> None:
    row = to_row(conversation)
    owner, which = row.pop("user_id"), row.pop("id")
    del row["created_at"]
    connection.execute(_save, {**row, "updated_at": now, "owner": owner, "which": which})


def remove(
    connection: Connection, user: UserId, conversation_id: ConversationId, *, now: datetime
) -> None:
    """Delete a conversation and what it owns; what its calls did is kept, as what they cost is."""
    owned = {"owner": user, "which": conversation_id}
    connection.execute(_keep_receipts, owned)
    if connection.execute(_delete, owned).rowcount != 1:
        raise NotFound
    waits.settle(connection, user, conversation_id, now=now)


def children(
    connection: Connection, user: UserId, conversation_id: ConversationId
) -> tuple[ConversationId, ...]:
    return tuple(connection.execute(_children, {"owner": user, "which": conversation_id}).scalars())


def open_children(
    connection: Connection, user: UserId, conversation_id: ConversationId
) -> tuple[Conversation, ...]:
    """Read the children that have work, or ask something."""
    rows = connection.execute(_open_children, {"owner": user, "which": conversation_id}).all()
    return tuple(read(connection, row) for row in rows)


def followers(
    connection: Connection, user: UserId, conversation_id: ConversationId
) -> tuple[ConversationId, ...]:
    """Find those whose schedule is to come after this one."""
    return tuple(
        connection.execute(_followers, {"owner": user, "which": conversation_id}).scalars()
    )


def parked(connection: Connection, user: UserId) -> tuple[ConversationId, ...]:
    """Find those whose work stands still because what may be spent is spent."""
    return tuple(connection.execute(_parked, {"owner": user}).scalars())


def person_waits(connection: Connection, user: UserId, conversation_id: ConversationId) -> bool:
    """See whether somebody is waiting for a reply: derived from what lies there, never counted."""
    return (
        connection.execute(_waiting, {"owner": user, "which": conversation_id}).first() is not None
    )
