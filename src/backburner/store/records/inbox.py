"""The inbox of a conversation: items wait here until a run has served them."""

from collections.abc import Collection, Iterable
from datetime import timedelta

from sqlalchemy import and_, bindparam, exists, insert, literal, or_, select, update

from backburner.core import routing
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, ItemId, RunId, UserId
from backburner.core.run import Item, ItemKind, NewItem, RunKind
from backburner.store.context import Context, Group
from backburner.store.mapping import dump, to_item
from backburner.store.tables import inbox, is_queued, is_running, is_unserved, outcomes, runs

_insert = insert(inbox)
_in_conversation = and_(
    inbox.c.user_id == bindparam("owner"), inbox.c.conversation_id == bindparam("conversation")
)
_select = select(inbox).where(_in_conversation).order_by(inbox.c.arrived_at, inbox.c.id)
_select_waiting = _select.where(is_unserved, inbox.c.run_kind == bindparam("kind"))
_select_served = _select.where(inbox.c.served_by == bindparam("run_id"))
_select_pending = _select.where(
    inbox.c.kind == literal(ItemKind.ANSWER.value),
    or_(
        is_unserved,
        exists().where(
            runs.c.user_id == inbox.c.user_id,
            runs.c.id == inbox.c.served_by,
            or_(is_running, is_queued),
        ),
    ),
)
_serve = (
    update(inbox)
    .where(
        inbox.c.user_id == bindparam("owner"),
        inbox.c.id.in_(bindparam("item_ids", expanding=True)),
        is_unserved,
    )
    .values(served_at=bindparam("at"), served_by=bindparam("run_id"))
)
_take_back = (
    update(inbox)
    .where(
        _in_conversation,
        inbox.c.served_by == bindparam("run_id"),
        exists().where(
            outcomes.c.user_id == inbox.c.user_id, outcomes.c.run_id == inbox.c.served_by
        ),
    )
    .values(served_at=None, served_by=None)
)
_settle = update(inbox).where(_in_conversation, is_unserved).values(served_at=bindparam("at"))
_settle_kind = _settle.where(inbox.c.run_kind == bindparam("of_kind"))


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
                # Distinct times keep the order of the items.
                "arrived_at": self.tx.now + number * timedelta.resolution,
            }
            for number, item in enumerate(items)
        ]
        self._write(_insert, *rows)

    def waiting(
        self, user: UserId, conversation_id: ConversationId, kind: RunKind
    ) -> tuple[Item, ...]:
        values = {"owner": user, "conversation": conversation_id, "kind": kind.value}
        return tuple(to_item(row) for row in self._execute(_select_waiting, values))

    def served_by(
        self, user: UserId, conversation_id: ConversationId, run_id: RunId
    ) -> tuple[Item, ...]:
        values = {"owner": user, "conversation": conversation_id, "run_id": run_id}
        return tuple(to_item(row) for row in self._execute(_select_served, values))

    def pending_answers(self, user: UserId, conversation_id: ConversationId) -> tuple[Item, ...]:
        values = {"owner": user, "conversation": conversation_id}
        return tuple(to_item(row) for row in self._execute(_select_pending, values))

    def serve(self, user: UserId, items: Iterable[ItemId], *, run_id: RunId) -> None:
        if item_ids := list(items):
            values = {"owner": user, "item_ids": item_ids, "at": self.tx.now, "run_id": run_id}
            self._write(_serve, values)

    def take_back(self, user: UserId, conversation_id: ConversationId, run_id: RunId) -> None:
        """Make the items wait again that a run served before it was handed back and crashed."""
        values = {"owner": user, "conversation": conversation_id, "run_id": run_id}
        self._execute(_take_back, values)

    def settle(
        self, user: UserId, conversation_id: ConversationId, *, kind: RunKind | None
    ) -> None:
        """Remove the items that wait for runs of a kind; None: for any run."""
        values = {"owner": user, "conversation": conversation_id, "at": self.tx.now}
        if kind is None:
            self._write(_settle, values)
        else:
            self._write(_settle_kind, {**values, "of_kind": kind.value})


def renew_request(
    tx: Context, conversation: Conversation, kind: RunKind, *, served: Collection[ItemId] = ()
) -> Conversation:
    """Leave of the profile that messages asked for what those ask for that wait for the next run.

    Mostly none did, and nothing is read.
    """
    if not routing.request_for(conversation, kind):
        return conversation
    waiting = Inbox(tx).waiting(conversation.user_id, conversation.id, kind)
    requested = routing.requested_by(item for item in waiting if item.id not in served)
    return routing.with_request(conversation, kind, requested)
