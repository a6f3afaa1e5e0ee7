"""The summary of what happened while a user was away."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Integer,
    Row,
    RowMapping,
    Select,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    select,
    union_all,
    update,
)

from backburner.core.allowance import Amount
from backburner.core.ids import ConversationId, NoticeId, QuestionId, RunId, UserId
from backburner.core.run import RunStatus
from backburner.core.work.timeline import AskedQuestion
from backburner.ports import (
    ConversationRuns,
    PendingQuestion,
    RecentNotice,
    RunBar,
    RunCounts,
    RunReport,
    SpendTotal,
)
from backburner.store.context import Group
from backburner.store.queries.run_pages import to_asked
from backburner.store.tables import (
    conversations,
    is_open,
    is_queued,
    is_running,
    is_shown,
    messages,
    notices,
    questions,
    runs,
    spend,
    users,
)
from backburner.store.types import Time

_owner = bindparam("owner", type_=Text())
_since = bindparam("since", type_=Time)
_limit = bindparam("limit", type_=Integer())
_select_away_since = select(users.c.away_since, users.c.created_at).where(users.c.id == _owner)
_end_absence = (
    update(users)
    .where(
        users.c.id == _owner,
        func.coalesce(users.c.away_since, users.c.created_at) < bindparam("until"),
    )
    .values(away_since=bindparam("until"))
)


def _of_conversation(table: Any) -> ColumnElement[bool]:
    return and_(
        conversations.c.user_id == table.c.user_id, conversations.c.id == table.c.conversation_id
    )


def _of_conversation_in(selected: Any) -> ColumnElement[bool]:
    return and_(conversations.c.user_id == _owner, conversations.c.id == selected.c.conversation_id)


def _count(status: RunStatus) -> ColumnElement[int]:
    count = func.sum(case((runs.c.status == status.value, 1), else_=0))
    return func.coalesce(count, 0).label(status.value)


_counts = [
    _count(status)
    for status in (RunStatus.SUCCESS, RunStatus.FAILURE, RunStatus.SKIPPED, RunStatus.CANCELLED)
]
_is_unattended = and_(runs.c.user_id == _owner, runs.c.ended_at > _since, runs.c.unattended)
_select_totals = select(*_counts).where(_is_unattended)
_last_at = func.max(runs.c.ended_at).label("last_at")
_failed = runs.alias("failed")
#: The failure that a conversation ended with last; read only where one happened since then.
_last_failure = (
    select(case((_failed.c.status == RunStatus.FAILURE.value, _failed.c.failure_message)))
    .where(
        _failed.c.user_id == _owner,
        _failed.c.conversation_id == runs.c.conversation_id,
        _failed.c.status.in_([RunStatus.SUCCESS.value, RunStatus.FAILURE.value]),
        _failed.c.unattended,
    )
    .order_by(_failed.c.started_at.desc())
    .limit(1)
    .scalar_subquery()
)
_failure = case((_counts[1] > 0, _last_failure)).label("failure_message")
_select_ran = (
    select(runs.c.conversation_id, conversations.c.title, _last_at, _failure, *_counts)
    .join(conversations, _of_conversation(runs))
    .where(_is_unattended, is_shown)
    .group_by(runs.c.conversation_id, conversations.c.title)
    .order_by(_counts[1].desc(), _last_at.desc(), runs.c.conversation_id)
    .limit(_limit)
)
#: Messages of a conversation among which its last report is looked for.
_MAX_MESSAGES_READ = 50
_last_said = messages.alias("last_said")
_last_messages = (
    select(_last_said.c.number, _last_said.c.run_id, _last_said.c.created_at)
    .where(
        _last_said.c.user_id == _owner,
        _last_said.c.conversation_id == conversations.c.id,
        _last_said.c.replaced_at.is_(None),
    )
    .order_by(_last_said.c.number.desc())
    .limit(_MAX_MESSAGES_READ)
    .correlate(conversations)
    .subquery("last_messages")
)
_last_report = (
    select(func.max(_last_messages.c.number))
    .where(
        _last_messages.c.created_at > _since,
        exists().where(
            runs.c.user_id == _owner,
            runs.c.id == _last_messages.c.run_id,
            runs.c.status == RunStatus.SUCCESS.value,
            runs.c.unattended,
        ),
    )
    .scalar_subquery()
)
select_reports = (
    select(messages.c.conversation_id, messages.c.content, messages.c.created_at)
    .join(conversations, _of_conversation(messages))
    .where(
        conversations.c.user_id == _owner,
        conversations.c.id.in_(bindparam("conversation_ids", expanding=True, type_=Text())),
        messages.c.user_id == _owner,
        messages.c.number == _last_report,
        is_shown,
    )
)
_select_questions = (
    select(questions, conversations.c.title)
    .join(conversations, _of_conversation(questions))
    .where(questions.c.user_id == _owner, is_open)
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_limit)
)
_select_spent = select(
    func.coalesce(func.sum(spend.c.micros), 0).label("micros"),
    func.coalesce(func.sum(spend.c.tokens), 0).label("tokens"),
    func.coalesce(func.sum(case((spend.c.priced, 0), else_=1)), 0).label("unpriced"),
).where(spend.c.user_id == _owner, spend.c.spent_at > _since)
_newest = (
    select(notices)
    .where(notices.c.user_id == _owner)
    .order_by(notices.c.number.desc())
    .limit(_limit)
    .subquery()
)
_is_answered = and_(
    _newest.c.question_id.is_not(None),
    ~exists().where(
        questions.c.user_id == _owner, questions.c.id == _newest.c.question_id, is_open
    ),
)
#: Among the newest only, so that old notices are not scanned.
_select_notices = (
    select(_newest, conversations.c.title)
    .join(conversations, _of_conversation(_newest))
    .where(_newest.c.created_at > _since, ~_is_answered, is_shown)
    .order_by(_newest.c.number.desc())
)


_BAR = ("id", "conversation_id", "status", "started_at", "ended_at")
_bar = [runs.c[name] for name in _BAR]
select_bars: Select[Any] = (
    select(*_bar, conversations.c.title)
    .join(conversations, _of_conversation(runs))
    .where(_is_unattended, is_shown)
    .order_by(runs.c.ended_at.desc(), runs.c.id)
    .limit(_limit)
)
#: Two statements, each of which has an index of its own.
_active = union_all(
    *(
        select(*_bar).where(runs.c.user_id == _owner, is_in_progress, runs.c.unattended)
        for is_in_progress in (is_running, is_queued)
    )
).subquery("active")
select_active_bars: Select[Any] = (
    select(_active, conversations.c.title)
    .join(conversations, _of_conversation_in(_active))
    .where(is_shown)
    .order_by(_active.c.started_at.desc(), _active.c.id)
    .limit(_limit)
)
select_asked = (
    select(questions)
    .where(
        questions.c.user_id == _owner,
        questions.c.conversation_id.in_(
            bindparam("conversation_ids", expanding=True, type_=Text())
        ),
        questions.c.asked_at > _since,
    )
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_limit)
)


class Away(Group):
    def since(self, user: UserId) -> datetime:
        row = self._read_one(_select_away_since, {"owner": user})
        since: datetime = row.away_since or row.created_at
        return since

    def mark_seen(self, user: UserId, until: datetime) -> None:
        self._execute(_end_absence, {"owner": user, "until": until})

    def totals(self, user: UserId, since: datetime) -> RunCounts:
        values = {"owner": user, "since": since}
        return _to_counts(self._execute(_select_totals, values).mappings().one())

    def runs_by_conversation(
        self, user: UserId, since: datetime, *, limit: int
    ) -> Sequence[ConversationRuns]:
        values = {"owner": user, "since": since, "limit": limit}
        return [
            ConversationRuns(
                conversation=ConversationId(row["conversation_id"]),
                title=row["title"],
                counts=_to_counts(row),
                last_at=row["last_at"],
                failure=row["failure_message"],
            )
            for row in self._execute(_select_ran, values).mappings()
        ]

    def reports(
        self, user: UserId, conversation_ids: Collection[ConversationId], since: datetime
    ) -> Sequence[RunReport]:
        values: dict[str, Any] = {"owner": user, "since": since}
        values["conversation_ids"] = list(conversation_ids)
        rows = self._execute(select_reports, values) if conversation_ids else ()
        return [
            RunReport(
                conversation=ConversationId(row.conversation_id),
                text=row.content,
                created_at=row.created_at,
            )
            for row in rows
        ]

    def bars(self, user: UserId, since: datetime, *, limit: int) -> Sequence[RunBar]:
        values = {"owner": user, "since": since, "limit": limit}
        return [_to_bar(row) for row in self._execute(select_bars, values)]

    def active_bars(self, user: UserId, *, limit: int) -> Sequence[RunBar]:
        values = {"owner": user, "limit": limit}
        return [_to_bar(row) for row in self._execute(select_active_bars, values)]

    def asked(
        self,
        user: UserId,
        conversation_ids: Collection[ConversationId],
        since: datetime,
        *,
        limit: int,
    ) -> Sequence[tuple[ConversationId, AskedQuestion]]:
        values: dict[str, Any] = {"owner": user, "since": since, "limit": limit}
        values["conversation_ids"] = list(conversation_ids)
        rows = self._execute(select_asked, values) if conversation_ids else ()
        return [(ConversationId(row.conversation_id), to_asked(row)) for row in rows]

    def pending_questions(self, user: UserId, *, limit: int) -> Sequence[PendingQuestion]:
        return [
            PendingQuestion(
                question=QuestionId(row.id),
                conversation=ConversationId(row.conversation_id),
                title=row.title,
                purpose=row.purpose,
                prompt=row.prompt,
                asked_at=row.asked_at,
            )
            for row in self._execute(_select_questions, {"owner": user, "limit": limit})
        ]

    def spent(self, user: UserId, since: datetime) -> SpendTotal:
        row = self._execute(_select_spent, {"owner": user, "since": since}).one()
        return SpendTotal(Amount(int(row.micros), int(row.tokens)), is_all_priced=not row.unpriced)

    def recent_notices(
        self, user: UserId, since: datetime, *, limit: int
    ) -> Sequence[RecentNotice]:
        values = {"owner": user, "since": since, "limit": limit}
        return [
            RecentNotice(
                notice=NoticeId(row.id),
                conversation=ConversationId(row.conversation_id),
                title=row.title,
                kind=row.kind,
                text=row.text,
                created_at=row.created_at,
            )
            for row in self._execute(_select_notices, values)
        ]


def _to_bar(row: Row[Any]) -> RunBar:
    return RunBar(
        run_id=RunId(row.id),
        conversation_id=ConversationId(row.conversation_id),
        title=row.title,
        status=RunStatus(row.status),
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _to_counts(row: RowMapping) -> RunCounts:
    return RunCounts(
        succeeded=int(row[RunStatus.SUCCESS.value]),
        failed=int(row[RunStatus.FAILURE.value]),
        skipped=int(row[RunStatus.SKIPPED.value]),
        cancelled=int(row[RunStatus.CANCELLED.value]),
    )
