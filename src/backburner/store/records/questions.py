"""Questions: store, close once, and find those that are open or due."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import and_, bindparam, case, exists, insert, literal, or_, select, union, update

from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, QuestionId, UserId
from backburner.core.question import YES, Purpose, Question
from backburner.ports import EventKind
from backburner.store.context import Group
from backburner.store.mapping import dump, to_question
from backburner.store.tables import conversations, is_open
from backburner.store.tables import questions as table

_select_open = (
    select(table)
    .where(table.c.user_id == bindparam("owner"), is_open)
    .order_by(table.c.asked_at, table.c.id)
)
_select_open_of = _select_open.where(table.c.conversation_id == bindparam("conversation_id"))
_select_open_of_all = _select_open.where(
    table.c.conversation_id.in_(bindparam("conversation_ids", expanding=True))
)
#: In a conversation, and in the work it has started.
_select_open_around = _select_open.where(
    or_(
        table.c.conversation_id == bindparam("conversation_id"),
        exists().where(
            conversations.c.user_id == table.c.user_id,
            conversations.c.id == table.c.conversation_id,
            conversations.c.parent_id == bindparam("conversation_id"),
        ),
    )
)
_by_id = and_(table.c.user_id == bindparam("owner"), table.c.id == bindparam("question_id"))
_select_conversation = select(table.c.conversation_id).where(_by_id)
_select_open_allowances = select(table.c.binds_to).where(
    table.c.user_id == bindparam("owner"),
    table.c.purpose == literal(Purpose.ALLOWANCE.value),
    is_open,
)
_select_open_with = _select_open.where(table.c.purpose == bindparam("purpose"))
_select_last_proposal = (
    select(table)
    .where(
        table.c.user_id == bindparam("owner"),
        table.c.conversation_id == bindparam("conversation_id"),
        table.c.purpose == Purpose.PROPOSAL.value,
    )
    # One that was approved comes first: it counts whatever was asked later.
    .order_by(
        case((table.c.answer == YES, 0), else_=1),
        table.c.asked_at.desc(),
        table.c.closed_at.desc(),
    )
    .limit(1)
)
_select_purposes = select(table.c.purpose).where(
    table.c.user_id == bindparam("owner"), table.c.id.in_(bindparam("question_ids", expanding=True))
)
_insert = insert(table)
_close = (
    update(table)
    .where(_by_id, is_open)
    .values(closed_at=bindparam("at"), answer=bindparam("new_answer"))
)
_keep_answerer = update(table).where(_by_id).values(answered_by=bindparam("credential"))
_snooze = (
    update(table)
    .where(_by_id, is_open)
    .values(remind_at=bindparam("at"), reminders=bindparam("count"))
)
_select_due = union(
    select(table.c.user_id, table.c.id).where(is_open, table.c.remind_at <= bindparam("at")),
    select(table.c.user_id, table.c.id).where(is_open, table.c.expires_at <= bindparam("at")),
).limit(bindparam("limit"))


class Questions(Group):
    def open_of(self, user: UserId, conversation_id: ConversationId) -> tuple[Question, ...]:
        rows = self._execute(_select_open_of, {"owner": user, "conversation_id": conversation_id})
        return tuple(to_question(row) for row in rows)

    def open_around(
        self, user: UserId, conversation_id: ConversationId
    ) -> Sequence[tuple[ConversationId, Question]]:
        """Read the open questions of a conversation and of its children, oldest first."""
        values = {"owner": user, "conversation_id": conversation_id}
        rows = self._execute(_select_open_around, values)
        return [(ConversationId(row.conversation_id), to_question(row)) for row in rows]

    def open_allowances(self, user: UserId) -> frozenset[str]:
        """Read the subjects of the open questions about allowances."""
        bindings = self._execute(_select_open_allowances, {"owner": user}).scalars()
        return frozenset(json.loads(binds_to)["about"] for binds_to in bindings)

    def open_with(
        self, user: UserId, purpose: Purpose
    ) -> Sequence[tuple[ConversationId, Question]]:
        rows = self._execute(_select_open_with, {"owner": user, "purpose": purpose.value})
        return [(ConversationId(row.conversation_id), to_question(row)) for row in rows]

    def unapproved_proposal(self, user: UserId, conversation_id: ConversationId) -> Question | None:
        """Read the last question that proposed work; None: there is none, or one was approved."""
        values = {"owner": user, "conversation_id": conversation_id}
        row = self._execute(_select_last_proposal, values).one_or_none()
        return None if row is None or row.answer == YES else to_question(row)

    def purposes(self, user: UserId, question_ids: Iterable[QuestionId]) -> frozenset[Purpose]:
        values = {"owner": user, "question_ids": list(question_ids)}
        return frozenset(map(Purpose, self._execute(_select_purposes, values).scalars()))

    def open_of_all(
        self, user: UserId, conversations: Sequence[ConversationId]
    ) -> Mapping[ConversationId, tuple[Question, ...]]:
        questions = defaultdict[ConversationId, tuple[Question, ...]](tuple)
        if conversations:
            values = {"owner": user, "conversation_ids": list(conversations)}
            for row in self._execute(_select_open_of_all, values):
                questions[row.conversation_id] += (to_question(row),)
        return questions

    def exists(self, user: UserId, question_id: QuestionId) -> bool:
        """See whether a question exists, open or closed."""
        return self._exists(_select_conversation, {"owner": user, "question_id": question_id})

    def conversation_of(self, user: UserId, question_id: QuestionId) -> ConversationId:
        row = self._read_one(_select_conversation, {"owner": user, "question_id": question_id})
        return ConversationId(row.conversation_id)

    def due(self, *, limit: int) -> Sequence[tuple[UserId, QuestionId]]:
        """Find open questions whose reminder is due or that have expired."""
        rows = self._execute(_select_due, {"at": self.tx.now, "limit": limit})
        return [(UserId(row.user_id), QuestionId(row.id)) for row in rows]

    def put(
        self, user: UserId, conversation_id: ConversationId, questions: Iterable[Question]
    ) -> None:
        rows = [_row(user, conversation_id, question) for question in questions]
        self._write(_insert, *rows)

    def close(self, user: UserId, question_id: QuestionId, answer: str | None) -> None:
        """Close an open question; without an answer it is withdrawn. The first close wins."""
        values = {"owner": user, "question_id": question_id, "new_answer": answer}
        if self._execute(_close, {**values, "at": self.tx.now}).rowcount != 1:
            raise Conflict("This question has been answered or withdrawn.")

    def keep_answerer(self, user: UserId, question_id: QuestionId, credential: str) -> None:
        """Store with which credential a question was answered."""
        values = {"owner": user, "question_id": question_id, "credential": credential}
        self._execute(_keep_answerer, values)

    def snooze(self, user: UserId, question: Question) -> None:
        """Store the next reminder of a question."""
        values = {"owner": user, "question_id": question.id, "count": question.reminders}
        self._execute(_snooze, {**values, "at": question.remind_at})
        self.tx.changed(user, self.conversation_of(user, question.id), EventKind.QUESTION)


def _row(user: UserId, conversation: ConversationId, question: Question) -> dict[str, Any]:
    return {
        "id": question.id,
        "user_id": user,
        "conversation_id": conversation,
        "purpose": question.purpose.value,
        "type": question.type.value,
        "prompt": question.prompt,
        "options": json.dumps(question.options),
        "binds_to": dump(question.binds_to),
        "run_id": question.run_id,
        "run_kind": question.run_kind.value,
        "asked_at": question.asked_at,
        "remind_at": question.remind_at,
        "reminders": question.reminders,
        "expires_at": question.expires_at,
        "default_answer": question.default,
        "outside": question.outside,
    }
