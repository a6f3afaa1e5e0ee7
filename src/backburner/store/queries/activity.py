"""Runs in progress and their tool calls: for pages of conversations, and as lists of their own."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    FromClause,
    Integer,
    Row,
    Select,
    Text,
    and_,
    bindparam,
    func,
    literal_column,
    select,
    text,
    tuple_,
)

from backburner.core.ids import CallId, ConversationId, RunId, UserId
from backburner.core.run import RunKind, RunStatus
from backburner.core.work.activity import CallSummary, RunActivity
from backburner.core.work.call_summary import summarize_arguments
from backburner.ports import PageKey, RunRow
from backburner.store.context import Group
from backburner.store.mapping import load, to_run
from backburner.store.tables import (
    conversations,
    is_queued,
    is_running,
    is_shown,
    runs,
    tool_calls,
)

_ONE = literal_column("1", Integer)
_owner = bindparam("owner", type_=Text())
_run_id = bindparam("run_id", type_=Text())
_limit = bindparam("limit", type_=BigInteger())
_at, _id = bindparam("at", type_=runs.c.started_at.type), bindparam("id", type_=Text())

_current, _call = runs.alias("current"), tool_calls.alias("call")
_other = tool_calls.alias("other_call")
_of_current = and_(_other.c.user_id == _current.c.user_id, _other.c.run_id == _current.c.id)
#: A call in progress, else the last one.
_last_call = (
    select(_other.c.id)
    .where(_of_current)
    .order_by(_other.c.ended_at.is_(None).desc(), _other.c.started_at.desc(), _other.c.id.desc())
    .limit(_ONE)
    .correlate(_current)
    .scalar_subquery()
)
_count_calls = (
    select(func.count()).select_from(_other).where(_of_current).correlate(_current)
).scalar_subquery()
activity_columns = (
    _current.c.conversation_id.label("current_conversation_id"),
    _current.c.id.label("current_run_id"),
    _current.c.kind.label("current_kind"),
    _current.c.started_at.label("current_started_at"),
    _current.c.drafted_at.label("current_drafted_at"),
    _count_calls.label("current_calls"),
    *(
        _call.c[name].label(f"call_{name}")
        for name in ("id", "tool", "arguments", "state", "failed", "started_at", "ended_at")
    ),
)


def join_activity(work: FromClause) -> FromClause:
    """Join conversations with their run in progress, if there is one."""
    is_current = and_(
        _current.c.user_id == conversations.c.user_id,
        _current.c.conversation_id == conversations.c.id,
        _current.c.status == text("'running'"),
    )
    is_last_call = and_(_call.c.user_id == _current.c.user_id, _call.c.id == _last_call)
    return work.outerjoin(_current, is_current).outerjoin(_call, is_last_call)


_select_activities: Select[Any] = (
    select(*activity_columns)
    .select_from(join_activity(conversations))
    .where(
        conversations.c.user_id == _owner,
        conversations.c.id.in_(bindparam("conversation_ids", expanding=True, type_=Text())),
        conversations.c.turn_run.is_not(None),
        _current.c.id.is_not(None),
    )
)
#: Not a join: SQLite would begin with all conversations of the user.
_title = (
    select(conversations.c.title)
    .where(
        conversations.c.user_id == runs.c.user_id,
        conversations.c.id == runs.c.conversation_id,
        is_shown,
    )
    .correlate(runs)
    .scalar_subquery()
)
_select_runs = select(runs, _title.label("title"))
count_running = (
    select(func.count())
    .select_from(runs)
    .where(runs.c.user_id == _owner, is_running, _title.is_not(None))
)


def select_runs(status: RunStatus | None, *, after: bool) -> Select[Any]:
    """Build a page of runs: of those that have ended the last ended ones first, else the newest.

    Without a status, those that have ended with any.
    """
    order = _order(status)
    # Without a title it was deleted.
    statement = _select_runs.where(runs.c.user_id == _owner, _title.is_not(None))
    match status:
        case RunStatus.RUNNING:
            statement = statement.where(is_running)
        case RunStatus.QUEUED:
            statement = statement.where(is_queued)
        case None:
            statement = statement.where(runs.c.ended_at.is_not(None))
        case _:
            has_status = runs.c.status == text(f"'{status.value}'")
            statement = statement.where(runs.c.ended_at.is_not(None), has_status)
    if after:
        statement = statement.where(tuple_(order, runs.c.id) < tuple_(_at, _id))
    return statement.order_by(order.desc(), runs.c.id.desc()).limit(_limit)


def _order(status: RunStatus | None) -> Any:
    is_active = status in (RunStatus.RUNNING, RunStatus.QUEUED)
    return runs.c.started_at if is_active else runs.c.ended_at


_select_pages = {
    (status, after): select_runs(status, after=after)
    for status in (*RunStatus, None)
    for after in (False, True)
}
_select_run = select(runs.c.id).where(
    runs.c.user_id == _owner, runs.c.id == _run_id, _title.is_not(None)
)
select_calls = (
    select(
        *(
            tool_calls.c[name].label(f"call_{name}")
            for name in ("id", "tool", "arguments", "state", "failed", "started_at", "ended_at")
        )
    )
    .where(tool_calls.c.user_id == _owner, tool_calls.c.run_id == _run_id)
    .order_by(tool_calls.c.started_at.desc(), tool_calls.c.id.desc())
    .limit(_limit)
)
select_calls_after = select_calls.where(
    tuple_(tool_calls.c.started_at, tool_calls.c.id) < tuple_(_at, _id)
)


class ActivityQueries(Group):
    def activities(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, RunActivity]:
        values = {"owner": user, "conversation_ids": list(conversation_ids)}
        rows = self._execute(_select_activities, values) if conversation_ids else ()
        return {ConversationId(row.current_conversation_id): to_activity(row) for row in rows}

    def runs_by_status(
        self, user: UserId, status: RunStatus | None, after: PageKey | None, *, limit: int
    ) -> Sequence[RunRow]:
        values: dict[str, Any] = {"owner": user, "limit": limit}
        if after is not None:
            values["at"], values["id"] = after
        found = self._execute(_select_pages[status, after is not None], values).all()
        in_progress = [row.conversation_id for row in found] if status is RunStatus.RUNNING else []
        running = self.activities(user, in_progress)
        return [
            RunRow(to_run(row), row.title, running.get(row.conversation_id), row.wait_until)
            for row in found
        ]

    def count_running(self, user: UserId) -> int:
        return int(self._execute(count_running, {"owner": user}).scalar_one())

    def call_summaries(
        self, user: UserId, run_id: RunId, after: PageKey | None, *, limit: int
    ) -> Sequence[CallSummary]:
        values: dict[str, Any] = {"owner": user, "run_id": run_id, "limit": limit}
        self._read_one(_select_run, values)
        statement = select_calls
        if after is not None:
            statement, (values["at"], values["id"]) = select_calls_after, after
        return [_to_call_summary(row) for row in self._execute(statement, values)]


def to_activity(row: Row[Any]) -> RunActivity:
    return RunActivity(
        run_id=RunId(row.current_run_id),
        kind=RunKind(row.current_kind),
        started_at=row.current_started_at,
        call=None if row.call_id is None else _to_call_summary(row),
        calls=row.current_calls,
        drafted_at=row.current_drafted_at,
    )


def _to_call_summary(row: Row[Any]) -> CallSummary:
    return CallSummary(
        id=CallId(row.call_id),
        tool=row.call_tool,
        summary=summarize_arguments(load(row.call_arguments)),
        state=row.call_state,
        failed=row.call_failed,
        started_at=row.call_started_at,
        ended_at=row.call_ended_at,
    )
