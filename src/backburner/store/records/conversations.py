"""Conversations: load, lock, insert, save. Every lookup has the owner in its key."""

from typing import Any

from sqlalchemy import (
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
from backburner.core.transitions import Step
from backburner.ports import EventKind, Hint, HintKind
from backburner.store.context import Group
from backburner.store.mapping import to_conversation, to_row
from backburner.store.records import steps
from backburner.store.records.questions import Questions
from backburner.store.records.waits import Waits
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


class Conversations(Group):
    def load(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        """Read a conversation with its open questions, to look at."""
        row = self.connection.execute(
            _load, {"owner": user, "which": conversation_id}
        ).one_or_none()
        if row is None:
            raise NotFound
        return self.read(row)

    def lock(self, user: UserId, conversation_id: ConversationId) -> Conversation:
        """Read a conversation to change it; until the transaction ends nobody else can."""
        row = self.connection.execute(
            _lock, {"owner": user, "which": conversation_id}
        ).one_or_none()
        if row is None:
            raise NotFound
        return self.read(row)

    def read(self, row: Row[Any]) -> Conversation:
        """Make a conversation of its row; only one that waits for an answer has open questions."""
        has_asked = row.status == Status.WAITING_INPUT.value
        asked = Questions(self.tx).open_of(row.user_id, row.id) if has_asked else ()
        return to_conversation(row, asked)

    def add(self, step: Step, *, cause: str | None = None) -> None:
        """Insert a new conversation and everything of its step."""
        self.insert(step.conversation)
        steps.write(self.tx, step, cause=cause)
        self.tx.announce(step)

    def save(self, step: Step, *, cause: str | None = None) -> None:
        """Save a step; `cause` names its event where that must not be reported twice."""
        self.update(step.conversation)
        steps.write(self.tx, step, cause=cause)
        self.tx.announce(step)

    def insert(self, conversation: Conversation) -> None:
        row = to_row(conversation) | {"updated_at": conversation.created_at}
        self.connection.execute(_insert, row)

    def update(self, conversation: Conversation) -> None:
        row = to_row(conversation)
        owner, which = row.pop("user_id"), row.pop("id")
        del row["created_at"]
        self.connection.execute(
            _save, {**row, "updated_at": self.tx.now, "owner": owner, "which": which}
        )

    def delete(self, user: UserId, conversation_id: ConversationId) -> None:
        """Delete a conversation and what it owns. Receipts of its calls and its costs stay."""
        owned = {"owner": user, "which": conversation_id}
        self.connection.execute(_keep_receipts, owned)
        if self.connection.execute(_delete, owned).rowcount != 1:
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
        return tuple(
            self.connection.execute(_children, {"owner": user, "which": conversation_id}).scalars()
        )

    def open_children(
        self, user: UserId, conversation_id: ConversationId
    ) -> tuple[Conversation, ...]:
        """Read the children that have work, or ask something."""
        rows = self.connection.execute(
            _open_children, {"owner": user, "which": conversation_id}
        ).all()
        return tuple(self.read(row) for row in rows)

    def followers(
        self, user: UserId, conversation_id: ConversationId
    ) -> tuple[ConversationId, ...]:
        """Find those whose schedule is to come after this one."""
        return tuple(
            self.connection.execute(_followers, {"owner": user, "which": conversation_id}).scalars()
        )

    def paused_for_allowance(self, user: UserId) -> tuple[ConversationId, ...]:
        """Find those whose work stands still because what may be spent is spent."""
        return tuple(self.connection.execute(_parked, {"owner": user}).scalars())

    def person_waits(self, user: UserId, conversation_id: ConversationId) -> bool:
        """See whether the user waits for a reply: derived from the inbox, never counted."""
        return (
            self.connection.execute(_waiting, {"owner": user, "which": conversation_id}).first()
            is not None
        )
