"""The inbox of a conversation: whatever reaches it waits here until a run has served it."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, exists, insert, select, update

from backburner.core.ids import ConversationId, ItemId, RunId, UserId
from backburner.core.run import Item, NewItem, RunKind
from backburner.store.mapping import dump, to_item
from backburner.store.tables import inbox, outcomes, unserved

_insert = insert(inbox)
_in_conversation = (inbox.c.user_id == bindparam("owner")) & (
    inbox.c.conversation_id == bindparam("conversation")
)
_waiting = (
    select(inbox)
    .where(_in_conversation, unserved, inbox.c.run_kind == bindparam("kind"))
    .order_by(inbox.c.arrived_at, inbox.c.id)
)
_served_by = (
    select(inbox)
    .where(_in_conversation, inbox.c.served_by == bindparam("run"))
    .order_by(inbox.c.arrived_at, inbox.c.id)
)
_serve = (
    update(inbox)
    .where(inbox.c.user_id == bindparam("owner"), inbox.c.id == bindparam("which"), unserved)
    .values(served_at=bindparam("at"), served_by=bindparam("run"))
)
_take_back = (
    update(inbox)
    .where(
        _in_conversation,
        inbox.c.served_by == bindparam("run"),
        exists().where(
            outcomes.c.user_id == inbox.c.user_id, outcomes.c.run_id == inbox.c.served_by
        ),
    )
    .values(served_at=None, served_by=None)
)
_settle = update(inbox).where(_in_conversation, unserved).values(served_at=bindparam("at"))
_settle_kind = _settle.where(inbox.c.run_kind == bindparam("which_kind"))


def put(
    connection: Connection,
    user: UserId,
    conversation: ConversationId,
    items: Iterable[NewItem],
    *,
    now: datetime,
) -> None:
    rows = [
        {
            "id": item.id,
            "user_id": user,
            "conversation_id": conversation,
            "kind": item.kind.value,
            "run_kind": item.run_kind.value,
            "from_person": item.is_from_user,
            "at_once": item.at_once,
            "content": dump(item.content),
            # They came in this order.
            "arrived_at": now + number * timedelta.resolution,
        }
        for number, item in enumerate(items)
    ]
    if rows:
        connection.execute(_insert, rows)


def waiting(
    connection: Connection, user: UserId, conversation: ConversationId, kind: RunKind
) -> tuple[Item, ...]:
    found = connection.execute(
        _waiting, {"owner": user, "conversation": conversation, "kind": kind.value}
    )
    return tuple(to_item(row) for row in found)


def served_by(
    connection: Connection, user: UserId, conversation: ConversationId, run: RunId
) -> tuple[Item, ...]:
    """Read what a run has served, for one that has to be told again."""
    found = connection.execute(
        _served_by, {"owner": user, "conversation": conversation, "run": run}
    )
    return tuple(to_item(row) for row in found)


def serve(
    connection: Connection,
    user: UserId,
    items: Iterable[ItemId],
    *,
    run_id: RunId,
    now: datetime,
) -> None:
    rows = [{"owner": user, "which": item, "at": now, "run": run_id} for item in items]
    if rows:
        connection.execute(_serve, rows)


def take_back(
    connection: Connection, user: UserId, conversation: ConversationId, run: RunId
) -> None:
    """Let what a run served when it was handed back be served again: it never came to its end."""
    connection.execute(_take_back, {"owner": user, "conversation": conversation, "run": run})


def settle(
    connection: Connection,
    user: UserId,
    conversation: ConversationId,
    *,
    kind: RunKind | None,
    now: datetime,
) -> None:
    """Take out what nobody will serve: what runs of a kind would have, or all of it."""
    values = {"owner": user, "conversation": conversation, "at": now}
    if kind is None:
        connection.execute(_settle, values)
    else:
        connection.execute(_settle_kind, {**values, "which_kind": kind.value})
