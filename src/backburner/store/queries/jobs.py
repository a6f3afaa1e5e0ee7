"""Jobs of a conversation, and summaries of their runs."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
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
    update,
)

from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, ItemId, UserId
from backburner.core.run import RunKind, Turn
from backburner.core.tool_policy import PROGRESS_TOOL
from backburner.core.work.activity import RunActivity
from backburner.core.work.views import WorkSummary
from backburner.store.mapping import to_conversation
from backburner.store.queries.activity import ActivityQueries
from backburner.store.queries.job_trees import JobTreeQueries
from backburner.store.records.questions import Questions
from backburner.store.records.runs import Runs
from backburner.store.records.waits import Waits
from backburner.store.tables import (
    conversations,
    inbox,
    is_job,
    is_open_job,
    is_shown,
    is_unserved,
    messages,
    runs,
    session_entries,
    tool_calls,
)

#: How many of the last tool calls a summary names.
_MAX_RECENT_CALLS = 5
_ONE = literal_column("1", Integer)

_owner = bindparam("owner", type_=Text())
_job_ids = bindparam("job_ids", expanding=True, type_=Text())
_select_children = (
    select(conversations)
    .where(
        conversations.c.user_id == _owner,
        conversations.c.parent_id == bindparam("parent_id"),
        is_shown,
    )
    .where(is_job)
    .order_by(conversations.c.created_at.desc(), conversations.c.id)
    .limit(bindparam("limit"))
)
_select_by_id = (
    select(conversations)
    .where(conversations.c.user_id == _owner, conversations.c.id.in_(_job_ids), is_job, is_shown)
    .order_by(conversations.c.id)
)
_lock = _select_by_id.with_for_update(key_share=True)
_count_open = (
    select(func.count())
    .select_from(conversations)
    .where(
        conversations.c.user_id == _owner,
        conversations.c.root_id == bindparam("root_id"),
        is_open_job,
    )
)
_mark_retrieved = (
    update(conversations)
    .where(
        conversations.c.user_id == _owner,
        conversations.c.id.in_(_job_ids),
        is_job,
        conversations.c.retrieved_at.is_(None),
    )
    .values(retrieved_at=bindparam("at"))
)
_redirect = (
    update(inbox)
    .where(
        inbox.c.user_id == _owner,
        inbox.c.id.in_(bindparam("item_ids", expanding=True, type_=Text())),
        is_unserved,
    )
    .values(run_kind=bindparam("new_run_kind"))
)
_select_session_entry = (
    select(session_entries.c.number)
    .where(
        session_entries.c.user_id == _owner,
        session_entries.c.conversation_id == bindparam("conversation_id"),
        session_entries.c.session_id == bindparam("session_id"),
    )
    .limit(_ONE)
)

_other = runs.alias("other")
last_ended_run = (
    select(_other.c.id)
    .where(
        _other.c.user_id == conversations.c.user_id,
        _other.c.conversation_id == conversations.c.id,
        _other.c.kind == text("'background'"),
        _other.c.status.in_(["success", "failure"]),
    )
    .order_by(_other.c.started_at.desc(), _other.c.epoch.desc())
    .limit(_ONE)
    .correlate(conversations)
    .scalar_subquery()
)
last_run_message = (
    select(messages.c.content)
    .where(
        messages.c.user_id == runs.c.user_id,
        messages.c.conversation_id == runs.c.conversation_id,
        messages.c.run_id == runs.c.id,
        messages.c.role == text("'assistant'"),
    )
    .order_by(messages.c.number.desc())
    .limit(_ONE)
    .correlate(runs)
    .scalar_subquery()
)
_select_last_runs: Select[Any] = (
    select(
        conversations.c.id,
        runs.c.result,
        runs.c.data,
        runs.c.failure_message,
        last_run_message.label("message"),
    )
    .select_from(conversations)
    .join(
        runs,
        and_(
            runs.c.user_id == conversations.c.user_id,
            runs.c.conversation_id == conversations.c.id,
            runs.c.id == last_ended_run,
        ),
    )
    .where(conversations.c.user_id == _owner, conversations.c.id.in_(_job_ids))
)
_select_activity: Select[Any] = (
    select(
        runs.c.conversation_id.label("id"),
        func.max(runs.c.started_at).label("started_at"),
        func.max(runs.c.drafted_at).label("drafted_at"),
    )
    .where(
        runs.c.user_id == _owner,
        runs.c.conversation_id.in_(_job_ids),
        runs.c.kind == text("'background'"),
    )
    .group_by(runs.c.conversation_id)
)
_rank = (
    func.row_number()
    .over(
        partition_by=tool_calls.c.conversation_id,
        order_by=(tool_calls.c.started_at.desc(), tool_calls.c.id),
    )
    .label("rank")
)
_count = func.count().over(partition_by=tool_calls.c.conversation_id).label("call_count")
_ranked_calls = (
    select(
        tool_calls.c.conversation_id.label("id"),
        tool_calls.c.tool,
        func.coalesce(tool_calls.c.ended_at, tool_calls.c.started_at).label("at"),
        _rank,
        _count,
    )
    .where(tool_calls.c.user_id == _owner, tool_calls.c.conversation_id.in_(_job_ids))
    .where(tool_calls.c.tool != text(f"'{PROGRESS_TOOL}'"))
    .subquery()
)
_select_recent_calls: Select[Any] = (
    select(_ranked_calls)
    .where(_ranked_calls.c.rank <= literal_column(str(_MAX_RECENT_CALLS), Integer))
    .order_by(_ranked_calls.c.id, _ranked_calls.c.rank)
)


class Jobs(JobTreeQueries):
    def started_by(
        self,
        user: UserId,
        parent: ConversationId,
        *,
        limit: int,
        ids: Collection[str] | None = None,
        batch: str | None = None,
    ) -> Sequence[Conversation]:
        statement = _select_children
        if ids is not None:
            has_prefix = [conversations.c.id.startswith(prefix, autoescape=True) for prefix in ids]
            statement = statement.where(or_(*has_prefix)) if has_prefix else statement.limit(0)
        if batch is not None:
            statement = statement.where(conversations.c.batch == batch)
        values = {"owner": user, "parent_id": parent, "limit": limit}
        return self._read(user, self._execute(statement, values).all())

    def load(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        return self._read_all(_select_by_id, user, conversation_ids)

    def lock(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        return self._read_all(_lock, user, conversation_ids)

    def work_summaries(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, WorkSummary]:
        values = {"owner": user, "job_ids": list(conversation_ids)}
        last_runs = {row.id: row for row in self._execute(_select_last_runs, values)}
        activity = {row.id: row for row in self._execute(_select_activity, values)}
        progress = Runs(self.tx).progress_of(user, conversation_ids)
        calls = defaultdict[str, list[Row[Any]]](list)
        for row in self._execute(_select_recent_calls, values):
            calls[row.id].append(row)
        running = ActivityQueries(self.tx).activities(user, conversation_ids)
        return {
            job_id: replace(
                _to_summary(
                    last_runs.get(job_id), activity.get(job_id), calls[job_id], running.get(job_id)
                ),
                progress=progress.get(job_id),
            )
            for job_id in conversation_ids
        }

    def count_open(self, user: UserId, root: ConversationId) -> int:
        return int(self._execute(_count_open, {"owner": user, "root_id": root}).scalar_one())

    def mark_retrieved(self, user: UserId, conversation_ids: Collection[ConversationId]) -> None:
        if conversation_ids:
            values = {"owner": user, "job_ids": list(conversation_ids), "at": self.tx.now}
            self._execute(_mark_retrieved, values)

    def has_session(self, user: UserId, conversation_id: ConversationId, session_id: str) -> bool:
        values = {"owner": user, "conversation_id": conversation_id, "session_id": session_id}
        return self._exists(_select_session_entry, values)

    def wait(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        Waits(self.tx).begin(turn, conversation_ids)

    def waiting_kind(
        self, user: UserId, parent: ConversationId, job: ConversationId
    ) -> RunKind | None:
        return Waits(self.tx).awaited_by(user, parent, job)

    def redirect(self, user: UserId, items: Collection[ItemId], kind: RunKind) -> None:
        if items:
            values = {"owner": user, "item_ids": list(items), "new_run_kind": kind.value}
            self._execute(_redirect, values)

    def _read_all(
        self, statement: Select[Any], user: UserId, job_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        rows = self._execute(statement, {"owner": user, "job_ids": list(job_ids)}).all()
        return {job.id: job for job in self._read(user, rows)}

    def _read(self, user: UserId, rows: Sequence[Row[Any]]) -> Sequence[Conversation]:
        questions = Questions(self.tx).open_of_all(user, [row.id for row in rows])
        return [to_conversation(row, questions.get(row.id, ())) for row in rows]


def _to_summary(
    last_run: Row[Any] | None,
    activity: Row[Any] | None,
    calls: Sequence[Row[Any]],
    running: RunActivity | None,
) -> WorkSummary:
    times = [activity.started_at, activity.drafted_at] if activity else []
    times += [call.at for call in calls]
    return WorkSummary(
        message=last_run and last_run.message,
        result=last_run and last_run.result,
        result_json=last_run and last_run.data,
        failure=last_run and last_run.failure_message,
        calls=calls[0].call_count if calls else 0,
        recent_tools=tuple(call.tool for call in calls),
        updated_at=max((time for time in times if time is not None), default=None),
        running=running,
    )
