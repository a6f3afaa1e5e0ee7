"""Questions: put, close once, find the open ones and those whose time has come."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import bindparam, insert, literal, select, union, update

from backburner.core.errors import Conflict, NotFound
from backburner.core.ids import ConversationId, QuestionId, UserId
from backburner.core.question import Purpose, Question
from backburner.ports import EventKind
from backburner.store.context import Group
from backburner.store.mapping import dump, to_question
from backburner.store.tables import is_open as unanswered
from backburner.store.tables import questions as table

_open_of = (
    select(table)
    .where(
        table.c.user_id == bindparam("owner"),
        table.c.conversation_id == bindparam("conversation"),
        unanswered,
    )
    .order_by(table.c.asked_at, table.c.id)
)
_open_of_all = (
    select(table)
    .where(
        table.c.user_id == bindparam("owner"),
        table.c.conversation_id.in_(bindparam("which", expanding=True)),
        unanswered,
    )
    .order_by(table.c.asked_at, table.c.id)
)
_conversation_of = select(table.c.conversation_id).where(
    table.c.user_id == bindparam("owner"), table.c.id == bindparam("which")
)
_about_allowances = select(table.c.binds_to).where(
    table.c.user_id == bindparam("owner"),
    table.c.purpose == literal(Purpose.ALLOWANCE.value),
    unanswered,
)
_purposes = select(table.c.purpose).where(
    table.c.user_id == bindparam("owner"), table.c.id.in_(bindparam("which", expanding=True))
)
_insert = insert(table)
_close = (
    update(table)
    .where(
        table.c.user_id == bindparam("owner"),
        table.c.id == bindparam("which"),
        unanswered,
    )
    .values(closed_at=bindparam("at"), answer=bindparam("said"))
)
_put_off = (
    update(table)
    .where(
        table.c.user_id == bindparam("owner"),
        table.c.id == bindparam("which"),
        unanswered,
    )
    .values(remind_at=bindparam("at"), reminders=bindparam("count"))
)


_due = union(
    select(table.c.user_id, table.c.id).where(unanswered, table.c.remind_at <= bindparam("at")),
    select(table.c.user_id, table.c.id).where(unanswered, table.c.expires_at <= bindparam("at")),
).limit(bindparam("limit"))


class Questions(Group):
    def open_of(self, user: UserId, conversation_id: ConversationId) -> tuple[Question, ...]:
        found = self.connection.execute(_open_of, {"owner": user, "conversation": conversation_id})
        return tuple(to_question(row) for row in found)

    def open_allowances(self, user: UserId) -> frozenset[str]:
        """Find what open questions about allowances are about."""
        found = self.connection.execute(_about_allowances, {"owner": user}).scalars()
        return frozenset(json.loads(binds_to)["about"] for binds_to in found)

    def purposes(self, user: UserId, question_ids: Iterable[QuestionId]) -> frozenset[Purpose]:
        found = self.connection.execute(
            _purposes, {"owner": user, "which": list(question_ids)}
        ).scalars()
        return frozenset(Purpose(purpose) for purpose in found)

    def open_of_all(
        self, user: UserId, conversations: Sequence[ConversationId]
    ) -> Mapping[ConversationId, tuple[Question, ...]]:
        """Read the open questions of several conversations at once."""
        found: dict[ConversationId, tuple[Question, ...]] = {}
        if conversations:
            values = {"owner": user, "which": list(conversations)}
            for row in self.connection.execute(_open_of_all, values):
                found[row.conversation_id] = (*found.get(row.conversation_id, ()), to_question(row))
        return found

    def exists(self, user: UserId, question_id: QuestionId) -> bool:
        """See whether a question was ever asked, whatever became of it."""
        found = self.connection.execute(_conversation_of, {"owner": user, "which": question_id})
        return found.first() is not None

    def conversation_of(self, user: UserId, question_id: QuestionId) -> ConversationId:
        found: ConversationId | None = self.connection.execute(
            _conversation_of, {"owner": user, "which": question_id}
        ).scalar()
        if found is None:
            raise NotFound
        return found

    def due(self, *, limit: int) -> Sequence[tuple[UserId, QuestionId]]:
        """Find open questions that are to be brought up again, or that have expired."""
        found = self.connection.execute(_due, {"at": self.tx.now, "limit": limit})
        return [(UserId(user), QuestionId(which)) for user, which in found]

    def put(self, user: UserId, conversation_id: ConversationId, asked: Iterable[Question]) -> None:
        rows = [_row(user, conversation_id, question) for question in asked]
        if rows:
            self.connection.execute(_insert, rows)

    def close(self, user: UserId, question_id: QuestionId, said: str | None) -> None:
        """Close an open question, answered or withdrawn; whoever comes second changes nothing."""
        closed = self.connection.execute(
            _close, {"owner": user, "which": question_id, "at": self.tx.now, "said": said}
        )
        if closed.rowcount != 1:
            raise Conflict("This question has been answered or withdrawn.")

    def snooze(self, user: UserId, question: Question) -> None:
        """Store when a question comes up again."""
        self.connection.execute(
            _put_off,
            {
                "owner": user,
                "which": question.id,
                "at": question.remind_at,
                "count": question.reminders,
            },
        )
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
    }
