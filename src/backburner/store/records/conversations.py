"""Conversations: load, lock, insert, update, delete."""

from dataclasses import replace
from typing import Any

from sqlalchemy import (
    Row,
    and_,
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
from backburner.core.run import RunKind
from backburner.core.transitions import Step
from backburner.ports import EventKind, Hint, HintKind
from backburner.store.context import Group
from backburner.store.mapping import to_conversation, to_row
from backburner.store.records import steps
from backburner.store.records.files import Files
from backburner.store.records.inbox import renew_request
from backburner.store.records.questions import Questions
from backburner.store.records.waits import Waits
from backburner.store.tables import NEVER_IN_A_STEP, conversations, is_shown, receipts, tool_calls

_by_id = and_(
    conversations.c.user_id == bindparam("owner"),
    conversations.c.id == bindparam("conversation_id"),
)
_load = select(conversations).where(_by_id, is_shown)
_lock = _load.with_for_update(key_share=True)
_insert = insert(conversations)
_update = (
    update(conversations)
    .where(_by_id)
    .values(
        {
            column.name: bindparam(column.name)
            for column in conversations.columns
            if column.name not in NEVER_IN_A_STEP
        }
    )
)
_delete = delete(conversations).where(_by_id)
_keep_receipts = insert(receipts).from_select(
    [column.name for column in receipts.columns],
    select(
        *(
            # The result of a call under way will never be known.
            case((tool_calls.c.state == "started", literal("unknown")), else_=tool_calls.c.state)
            if column.name == "state"
            else tool_calls.c[column.name]
            for column in receipts.columns
        )
    ).where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.conversation_id == bindparam("conversation_id"),
        not_(tool_calls.c.read_only),
    ),
)
_select_children = (
    select(conversations)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.parent_id == bindparam("parent_id"),
    )
    .order_by(conversations.c.created_at, conversations.c.id)
)
_select_child_ids = _select_children.with_only_columns(conversations.c.id)
_select_open_children = _select_children.where(
    conversations.c.schedule.is_not(None) | (conversations.c.status == text("'waiting_input'"))
)
_select_followers = (
    select(conversations.c.id)
    .where(
        conversations.c.user_id == bindparam("owner"),
        conversations.c.after_id == bindparam("after_id"),
    )
    .order_by(conversations.c.id)
)
_select_parked = select(conversations.c.id).where(
    conversations.c.user_id == bindparam("owner"),
    conversations.c.pause_reason == text("'allowance'"),
)


class Conversations(Group):
    def load(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        """Read a conversation with its open questions, without locking it."""
        values = {"owner": user, "conversation_id": conversation_id}
        return self.read(self._read_one(_load, values))

    def lock(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        """Read a conversation to change it, and lock it until the transaction ends."""
        values = {"owner": user, "conversation_id": conversation_id}
        row = self.tx.lock_with_clock(_lock, values)
        if row is None:
            raise NotFound
        return self.read(row)

    def read(self, row: Row[Any]) -> Conversation:
        """Convert a row; only a conversation that waits for an answer has open questions."""
        is_waiting = row.status == Status.WAITING_INPUT.value
        questions = Questions(self.tx).open_of(row.user_id, row.id) if is_waiting else ()
        return to_conversation(row, questions)

    def add(self, step: Step, *, cause: str | None = None) -> None:
        """Insert a new conversation and store its step."""
        steps.write(self.tx, step, cause=cause, first=lambda: self.insert(step.conversation))
        self.tx.announce(step)

    def save(self, step: Step, *, cause: str | None = None) -> None:
        """Store a step; `cause` names its event where that must not be reported twice."""
        if step.drops_queued:
            # What waiting answers have asked for stays, unlike that of the run that is dropped.
            kept = renew_request(self.tx, step.conversation, RunKind.BACKGROUND)
            step = replace(step, conversation=kept)
        steps.write(self.tx, step, cause=cause, first=lambda: self.update(step.conversation))
        self.tx.announce(step)

    def insert(self, conversation: Conversation) -> None:
        row = to_row(conversation) | {"updated_at": conversation.created_at}
        self._write(_insert, row)

    def update(self, conversation: Conversation) -> None:
        row = to_row(conversation)
        key = {"owner": row.pop("user_id"), "conversation_id": row.pop("id")}
        del row["created_at"]
        self._write(_update, {**row, **key, "updated_at": self.tx.now})

    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete a conversation and what it owns. Receipts of its calls and its costs stay."""
        values = {"owner": user, "conversation_id": conversation_id}
        self._execute(_keep_receipts, values)
        Files(self.tx).forget_conversation(user, conversation_id)
        if self._execute(_delete, values).rowcount != 1:
            raise NotFound
        Waits(self.tx).settle(user, conversation_id)
        self.tx.events.note(user, conversation_id, EventKind.CONVERSATION)
        # Its worker finds that it is gone, and a run that waited for it may continue.
        self.tx.hint(
            Hint(HintKind.CHANGED, user, conversation_id),
            Hint(HintKind.CANCEL, user, conversation_id),
            Hint(HintKind.WORK, user),
        )

    def children(self, user: UserId, conversation_id: ConversationId) -> tuple[ConversationId, ...]:
        """List the children, also those that their owner has deleted."""
        values = {"owner": user, "parent_id": conversation_id}
        return tuple(self._execute(_select_child_ids, values).scalars())

    def open_children(
        self, user: UserId, conversation_id: ConversationId
    ) -> tuple[Conversation, ...]:
        """Read the children that have work or an open question."""
        values = {"owner": user, "parent_id": conversation_id}
        rows = self._execute(_select_open_children, values).all()
        return tuple(self.read(row) for row in rows)

    def followers(
        self, user: UserId, conversation_id: ConversationId
    ) -> tuple[ConversationId, ...]:
        """Find the conversations that are scheduled after this one."""
        if (user, conversation_id) in self.tx.unfollowed:
            self.tx.left_alone.add((user, conversation_id))
            return ()
        values = {"owner": user, "after_id": conversation_id}
        return tuple(self._execute(_select_followers, values).scalars())

    def paused_for_allowance(self, user: UserId) -> tuple[ConversationId, ...]:
        """Find the conversations that are paused because an allowance is used up."""
        return tuple(self._execute(_select_parked, {"owner": user}).scalars())
