"""The facts that a list shows of each conversation besides its row: one statement for a page."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Integer, Text, and_, bindparam, func, literal_column, or_, select, text

from backburner.core.allowance import Allowance, AllowanceScope, Amount
from backburner.core.content.excerpt import MAX_READ_CHARS, make_excerpt
from backburner.core.conversation import MessageRole, Status
from backburner.core.ids import ConversationId, MessageId, UserId
from backburner.core.run import RunKind, RunStatus
from backburner.ports import LastMessage, ListFacts
from backburner.store.context import Group
from backburner.store.tables import (
    allowances,
    conversations,
    inbox,
    is_open,
    is_unserved,
    messages,
    questions,
    runs,
    totals,
)

#: More unseen messages are not counted.
MAX_UNSEEN = 100

_ONE = literal_column("1", Integer)
_message, _newer = messages.alias("message"), messages.alias("newer")
_last_number = (
    select(_newer.c.number)
    .where(
        _newer.c.user_id == conversations.c.user_id,
        _newer.c.conversation_id == conversations.c.id,
        _newer.c.replaced_at.is_(None),
    )
    .order_by(_newer.c.number.desc())
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
)
_unseen_messages = (
    select(_ONE.label("one"))
    .where(
        messages.c.user_id == conversations.c.user_id,
        messages.c.conversation_id == conversations.c.id,
        messages.c.number > conversations.c.seen_number,
        messages.c.replaced_at.is_(None),
        messages.c.news,
    )
    .correlate(conversations)
)
_unseen = _unseen_messages.limit(literal_column(str(MAX_UNSEEN), Integer)).subquery()
_first_unseen_question = (
    select(questions.c.id)
    .where(
        questions.c.user_id == conversations.c.user_id,
        questions.c.conversation_id == conversations.c.id,
        is_open,
        or_(conversations.c.seen_at.is_(None), questions.c.asked_at > conversations.c.seen_at),
    )
    # In the order of its index: PostgreSQL would read the whole table for the first that it meets.
    .order_by(questions.c.asked_at)
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
)
_awaits_reply = (
    select(_ONE)
    .where(
        inbox.c.user_id == conversations.c.user_id,
        inbox.c.conversation_id == conversations.c.id,
        is_unserved,
        inbox.c.from_person,
    )
    # In the order of its index, as above.
    .order_by(inbox.c.arrived_at)
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
)
_failed_reply = (
    select(_ONE)
    .where(
        runs.c.user_id == _message.c.user_id,
        runs.c.id == _message.c.run_id,
        runs.c.kind == text(f"'{RunKind.REPLY.value}'"),
        runs.c.status == text(f"'{RunStatus.FAILURE.value}'"),
        _message.c.number > conversations.c.seen_number,
    )
    .correlate(conversations, _message)
    .scalar_subquery()
)
#: Equal to `ConversationRow.unseen` above zero.
is_unread = or_(
    _unseen_messages.limit(_ONE).scalar_subquery().is_not(None),
    and_(
        conversations.c.status == literal_column(f"'{Status.WAITING_INPUT.value}'", Text),
        _first_unseen_question.is_not(None),
    ),
)
select_facts = (
    select(
        conversations.c.id,
        conversations.c.seen_at,
        conversations.c.pinned_at,
        select(func.count()).select_from(_unseen).scalar_subquery().label("unseen"),
        _message.c.id.label("message_id"),
        _message.c.role,
        func.substr(_message.c.content, 1, MAX_READ_CHARS).label("beginning"),
        _message.c.created_at.label("said_at"),
        _awaits_reply.is_not(None).label("awaits_reply"),
        _failed_reply.is_not(None).label("reply_failed"),
        totals.c.micros.label("spent_micros"),
        totals.c.tokens.label("spent_tokens"),
        allowances.c.scope,
        allowances.c.micros,
        allowances.c.tokens,
    )
    .select_from(
        conversations.outerjoin(
            _message,
            and_(_message.c.user_id == conversations.c.user_id, _message.c.number == _last_number),
        )
        # Both are kept for the roots of trees.
        .outerjoin(
            totals,
            and_(
                totals.c.user_id == conversations.c.user_id,
                totals.c.what == literal_column("'conversation:'", Text) + conversations.c.id,
            ),
        )
        .outerjoin(
            allowances,
            and_(
                allowances.c.user_id == conversations.c.user_id,
                allowances.c.scope == text(f"'{AllowanceScope.CONVERSATION.value}'"),
                allowances.c.root_id == conversations.c.id,
            ),
        )
    )
    .where(
        conversations.c.user_id == bindparam("owner", type_=Text()),
        conversations.c.id.in_(bindparam("conversation_ids", expanding=True, type_=Text())),
    )
)


class ListFactQueries(Group):
    def list_facts(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, ListFacts]:
        if not conversation_ids:
            return {}
        values = {"owner": user, "conversation_ids": list(conversation_ids)}
        return {
            ConversationId(row.id): _to_facts(row) for row in self._execute(select_facts, values)
        }


def _to_facts(row: Any) -> ListFacts:
    last = None
    if row.message_id is not None:
        last = LastMessage(
            MessageId(row.message_id),
            MessageRole(row.role),
            make_excerpt(row.beginning),
            row.said_at,
        )
    spent, own = Amount(), None
    if row.spent_tokens is not None:
        spent = Amount(row.spent_micros, row.spent_tokens)
    if row.scope is not None:
        own = Allowance(AllowanceScope(row.scope), row.micros, row.tokens)
    return ListFacts(
        spent=spent,
        own_allowance=own,
        unseen_messages=row.unseen,
        seen_at=row.seen_at,
        pinned_at=row.pinned_at,
        last_message=last,
        awaits_reply=bool(row.awaits_reply),
        reply_failed=bool(row.reply_failed),
    )
