"""The inbox of a conversation: whatever reaches it waits here until a run has served it."""

from collections.abc import Iterable
from datetime import timedelta

from sqlalchemy import bindparam, exists, insert, select, update

from backburner.core.ids import ConversationId, ItemId, RunId, UserId
from backburner.core.run import Item, NewItem, RunKind
from backburner.store.context import Group
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


class Inbox(Group):
    def put(self, user: UserId, conversation_id: ConversationId, items: Iterable[NewItem]) -> None:
        rows = [
            {
                "id": item.id,
                "user_id": user,
                "conversation_id": conversation_id,
                "kind": item.kind.value,
                "run_kind": item.run_kind.value,
                "from_person": item.is_from_user,
                "at_once": item.at_once,
                "content": dump(item.content),
                # They came in this order.
                "arrived_at": self.tx.now + number * timedelta.resolution,
            }
            for number, item in enumerate(items)
        ]
        if rows:
            self.connection.execute(_insert, rows)

    def waiting(
        self, user: UserId, conversation_id: ConversationId, kind: RunKind
    ) -> tuple[Item, ...]:
        found = self.connection.execute(
            _waiting, {"owner": user, "conversation": conversation_id, "kind": kind.value}
        )
        return tuple(to_item(row) for row in found)

    def served_by(
        self, user: UserId, conversation_id: ConversationId, run_id: RunId
    ) -> tuple[Item, ...]:
        """Read what a run has served, for one that has to be told again."""
        found = self.connection.execute(
            _served_by, {"owner": user, "conversation": conversation_id, "run": run_id}
        )
        return tuple(to_item(row) for row in found)

    def serve(self, user: UserId, items: Iterable[ItemId], *, run_id: RunId) -> None:
        rows = [{"owner": user, "which": item, "at": self.tx.now, "run": run_id} for item in items]
        if rows:
            self.connection.execute(_serve, rows)

    def take_back(self, user: UserId, conversation_id: ConversationId, run_id: RunId) -> None:
        """Make the items that a run served before it was handed back wait again: it never ended."""
        self.connection.execute(
            _take_back, {"owner": user, "conversation": conversation_id, "run": run_id}
        )

    def settle(
        self, user: UserId, conversation_id: ConversationId, *, kind: RunKind | None
    ) -> None:
        """Take out what nobody will serve: what runs of a kind would have, or all of it."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if kind is None:
            self.connection.execute(_settle, values)
        else:
            self.connection.execute(_settle_kind, {**values, "which_kind": kind.value})
