"""What happened while a user was away, counted where it lies."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    RowMapping,
    Text,
    and_,
    bindparam,
    case,
    func,
    select,
    update,
)

from backburner.core.allowance import Amount
from backburner.core.errors import NotFound
from backburner.core.ids import ConversationId, NoticeId, QuestionId, UserId
from backburner.core.run import RunStatus
from backburner.ports import ConversationRuns, PendingQuestion, RecentNotice, RunCounts, SpendTotal
from backburner.store.context import Group
from backburner.store.tables import conversations, is_open, notices, questions, runs, spend, users
from backburner.store.types import Time

_owner = bindparam("owner", type_=Text())
_since = bindparam("since", type_=Time)
_most = bindparam("limit", type_=Integer())
_away_since = select(users.c.away_since, users.c.created_at).where(users.c.id == _owner)
_come_back = (
    update(users)
    .where(
        users.c.id == _owner,
        func.coalesce(users.c.away_since, users.c.created_at) < bindparam("until"),
    )
    .values(away_since=bindparam("until"))
)


def _of_conversation(table: Any) -> ColumnElement[bool]:
    return and_(
        conversations.c.user_id == table.c.user_id,
        conversations.c.id == table.c.conversation_id,
    )


def _how_many(status: RunStatus) -> ColumnElement[int]:
    counted = func.sum(case((runs.c.status == status.value, 1), else_=0))
    return func.coalesce(counted, 0).label(status.value)


_counts = [
    _how_many(status)
    for status in (
        RunStatus.SUCCESS,
        RunStatus.FAILURE,
        RunStatus.SKIPPED,
        RunStatus.CANCELLED,
    )
]
#: What ran by itself and has ended since then.
_by_itself = and_(runs.c.user_id == _owner, runs.c.ended_at > _since, runs.c.unattended)
_totals = select(*_counts).where(_by_itself)
_last_at = func.max(runs.c.ended_at).label("last_at")
_failed = runs.alias("failed")
#: Where there was one since then, the last of all is it.
_failure = (
    select(_failed.c.failure_message)
    .where(
        _failed.c.user_id == _owner,
        _failed.c.conversation_id == runs.c.conversation_id,
        _failed.c.status == RunStatus.FAILURE.value,
        _failed.c.unattended,
    )
    .order_by(_failed.c.started_at.desc())
    .limit(1)
    .scalar_subquery()
)
_why = case((_counts[1] > 0, _failure)).label("why")
_ran = (
    select(runs.c.conversation_id, conversations.c.title, _last_at, _why, *_counts)
    .join(conversations, _of_conversation(runs))
    .where(_by_itself)
    .group_by(runs.c.conversation_id, conversations.c.title)
    .order_by(_counts[1].desc(), _last_at.desc(), runs.c.conversation_id)
    .limit(_most)
)
_needs = (
    select(questions, conversations.c.title)
    .join(conversations, _of_conversation(questions))
    .where(questions.c.user_id == _owner, is_open)
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_most)
)
_spent = select(
    func.coalesce(func.sum(spend.c.micros), 0).label("micros"),
    func.coalesce(func.sum(spend.c.tokens), 0).label("tokens"),
    func.coalesce(func.sum(case((spend.c.priced, 0), else_=1)), 0).label("unpriced"),
).where(spend.c.user_id == _owner, spend.c.spent_at > _since)
_newest = (
    select(notices)
    .where(notices.c.user_id == _owner)
    .order_by(notices.c.number.desc())
    .limit(_most)
    .subquery()
)
#: Of the newest only, so that nobody has to look through all there ever were.
_told = select(_newest).where(_newest.c.created_at > _since).order_by(_newest.c.number.desc())


class Away(Group):
    def since(self, user: UserId) -> datetime:
        row = self._execute(_away_since, {"owner": user}).one_or_none()
        if row is None:
            raise NotFound
        since: datetime = row.away_since or row.created_at
        return since

    def end(self, user: UserId, until: datetime) -> None:
        self._execute(_come_back, {"owner": user, "until": until})

    def totals(self, user: UserId, since: datetime) -> RunCounts:
        values = {"owner": user, "since": since}
        return _counted(self._execute(_totals, values).mappings().one())

    def ran(self, user: UserId, since: datetime, *, limit: int) -> Sequence[ConversationRuns]:
        values = {"owner": user, "since": since, "limit": limit}
        return [
            ConversationRuns(
                conversation=ConversationId(row["conversation_id"]),
                title=row["title"],
                counts=_counted(row),
                last_at=row["last_at"],
                failure=row["why"],
            )
            for row in self._execute(_ran, values).mappings()
        ]

    def needs(self, user: UserId, *, limit: int) -> Sequence[PendingQuestion]:
        return [
            PendingQuestion(
                question=QuestionId(row.id),
                conversation=ConversationId(row.conversation_id),
                title=row.title,
                purpose=row.purpose,
                prompt=row.prompt,
                asked_at=row.asked_at,
            )
            for row in self._execute(_needs, {"owner": user, "limit": limit})
        ]

    def spent(self, user: UserId, since: datetime) -> SpendTotal:
        row = self._execute(_spent, {"owner": user, "since": since}).one()
        return SpendTotal(Amount(int(row.micros), int(row.tokens)), is_all_priced=not row.unpriced)

    def told(self, user: UserId, since: datetime, *, limit: int) -> Sequence[RecentNotice]:
        values = {"owner": user, "since": since, "limit": limit}
        return [
            RecentNotice(
                notice=NoticeId(row.id),
                conversation=ConversationId(row.conversation_id),
                kind=row.kind,
                text=row.text,
                created_at=row.created_at,
            )
            for row in self._execute(_told, values)
        ]


def _counted(row: RowMapping) -> RunCounts:
    return RunCounts(
        succeeded=int(row[RunStatus.SUCCESS.value]),
        failed=int(row[RunStatus.FAILURE.value]),
        skipped=int(row[RunStatus.SKIPPED.value]),
        cancelled=int(row[RunStatus.CANCELLED.value]),
    )
