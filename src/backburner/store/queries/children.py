"""The children of conversations: summaries for lists, and the facts that a reply is given."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import (
    BigInteger,
    Integer,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    or_,
    select,
    text,
    union_all,
)

from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, UserId
from backburner.core.run import RunStatus
from backburner.core.work.facts import EndedRun, WorkFact, WorkFacts
from backburner.ports import Children
from backburner.store.context import Group
from backburner.store.mapping import to_conversation, to_question
from backburner.store.queries.activity import activity_columns, join_activity, to_activity
from backburner.store.queries.conversations import ConversationQueries
from backburner.store.queries.jobs import last_ended_run, last_run_message
from backburner.store.tables import conversations, is_shown, questions, runs

_owner = bindparam("owner", type_=Text())
_conversation_id = bindparam("conversation_id", type_=Text())
_parent_ids = bindparam("parent_ids", expanding=True, type_=Text())
_limit = bindparam("limit", type_=BigInteger())
_ONE = literal_column("1", Integer)

_is_open = or_(
    conversations.c.schedule.is_not(None), conversations.c.status == text("'waiting_input'")
)
#: Those with work to do first, then the newest.
_order = (_is_open.desc(), conversations.c.created_at.desc(), conversations.c.id.desc())
_ranked = (
    select(
        conversations.c.id,
        conversations.c.parent_id,
        _is_open.label("is_open"),
        func.row_number()
        .over(partition_by=conversations.c.parent_id, order_by=_order)
        .label("place"),
        func.count().over(partition_by=conversations.c.parent_id).label("total"),
    )
    .where(
        conversations.c.user_id == _owner,
        conversations.c.parent_id.in_(_parent_ids),
        conversations.c.status != text("'archived'"),
    )
    .subquery("ranked")
)
_select_children: Select[Any] = (
    select(conversations, _ranked.c.total, _ranked.c.is_open)
    .join(_ranked, and_(conversations.c.user_id == _owner, conversations.c.id == _ranked.c.id))
    .where(_ranked.c.place <= _limit)
    .order_by(_ranked.c.place)
)

_newest = (
    select(
        conversations.c.id,
        func.row_number().over(order_by=_order).label("place"),
        func.count().over().label("total"),
    )
    .where(
        conversations.c.user_id == _owner,
        conversations.c.parent_id == _conversation_id,
        is_shown,
    )
    .order_by(*_order)
    .limit(_limit)
    .subquery("newest")
)
_zero = literal_column("0", Integer)
_shown = union_all(
    select(_conversation_id.label("id"), _zero.label("place"), _zero.label("total")),
    select(_newest),
).subquery("shown")
_first_question = (
    select(questions.c.id)
    .where(
        questions.c.user_id == conversations.c.user_id,
        questions.c.conversation_id == conversations.c.id,
        questions.c.closed_at.is_(None),
    )
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
)
_QUESTION = "question_"
_is_last_run = and_(runs.c.user_id == conversations.c.user_id, runs.c.id == last_ended_run)
_is_question = and_(
    questions.c.user_id == conversations.c.user_id, questions.c.id == _first_question
)
_select_facts: Select[Any] = (
    select(
        conversations,
        _shown.c.place,
        _shown.c.total,
        runs.c.status.label("run_status"),
        runs.c.ended_at.label("run_ended_at"),
        runs.c.result.label("run_result"),
        runs.c.failure_message.label("run_failure"),
        runs.c.outside.label("run_outside"),
        last_run_message.label("run_message"),
        *activity_columns,
        *(column.label(f"{_QUESTION}{column.name}") for column in questions.columns),
    )
    .select_from(
        join_activity(
            _shown.join(
                conversations,
                and_(conversations.c.user_id == _owner, conversations.c.id == _shown.c.id),
            )
        )
        .outerjoin(runs, _is_last_run)
        .outerjoin(questions, _is_question)
    )
    .order_by(_shown.c.place)
)


class ChildQueries(Group):
    def children(
        self, user: UserId, parent_ids: Collection[ConversationId], *, limit: int
    ) -> Mapping[ConversationId, Children]:
        if not parent_ids:
            return {}
        values = {"owner": user, "parent_ids": list(parent_ids), "limit": limit}
        found = self._execute(_select_children, values).all()
        rows = ConversationQueries(self.tx).read_with_activity(
            [row for row in found if row.is_open]
        )
        totals = {row.parent_id: int(row.total) for row in found}
        return {
            parent_id: Children(
                total, tuple(row for row in rows if row.conversation.parent_id == parent_id)
            )
            for parent_id, total in totals.items()
        }

    def work_facts(self, user: UserId, conversation_id: ConversationId, *, limit: int) -> WorkFacts:
        """Read the work of a conversation and of its children; its run in progress is left out.

        Nothing that was written in the same transaction is read.
        """
        values = {"owner": user, "conversation_id": conversation_id, "limit": limit}
        found = self.tx.execute_apart(_select_facts, values).all()
        if not found:
            raise NotFound
        own, *children = found
        total = int(children[0].total) if children else 0
        return WorkFacts(
            own=_to_fact(own, is_running=False),
            children=[_to_fact(row, is_running=row.current_run_id is not None) for row in children],
            more=total - len(children),
        )


class _Prefixed:
    """The columns of one table in a row of several."""

    def __init__(self, row: Row[Any], prefix: str) -> None:
        self._values, self._prefix = row._mapping, prefix  # noqa: SLF001 (as in the mapping)

    def __getattr__(self, name: str) -> Any:
        return self._values[f"{self._prefix}{name}"]


def _to_fact(row: Row[Any], *, is_running: bool) -> WorkFact:
    prefixed: Any = _Prefixed(row, _QUESTION)
    asked = () if prefixed.id is None else (to_question(prefixed),)
    last = None
    if row.run_status is not None:
        text = row.run_failure or row.run_message or row.run_result
        last = EndedRun(
            status=RunStatus(row.run_status),
            ended_at=row.run_ended_at,
            text=text,
            outside=row.run_outside,
        )
    return WorkFact(
        conversation=to_conversation(row, asked),
        last_run=last,
        running=to_activity(row) if is_running else None,
    )
