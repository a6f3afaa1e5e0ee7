"""Jobs that a conversation has handed out: found, and told what is known of their runs."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
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
from backburner.core.work.views import WorkSummary
from backburner.store.context import Group
from backburner.store.mapping import to_conversation
from backburner.store.records.questions import Questions
from backburner.store.records.waits import Waits
from backburner.store.tables import (
    conversations,
    inbox,
    is_open_job,
    messages,
    runs,
    session_entries,
    tool_calls,
    unserved,
)

#: Of tools that were called last.
_SOME = 5
_ONE = literal_column("1", Integer)

_owner = bindparam("owner", type_=Text())
_these = bindparam("which", expanding=True, type_=Text())
_is_job = conversations.c.kind == text("'job'")
_under = (
    select(conversations)
    .where(conversations.c.user_id == _owner, conversations.c.parent_id == bindparam("parent"))
    .where(_is_job)
    .order_by(conversations.c.created_at.desc(), conversations.c.id)
    .limit(bindparam("limit"))
)
_named = (
    select(conversations)
    .where(conversations.c.user_id == _owner, conversations.c.id.in_(_these), _is_job)
    .order_by(conversations.c.id)
)
_lock = _named.with_for_update(key_share=True)
_count_open = (
    select(func.count())
    .select_from(conversations)
    .where(
        conversations.c.user_id == _owner,
        conversations.c.root_id == bindparam("root"),
        is_open_job,
    )
)
_retrieve = (
    update(conversations)
    .where(
        conversations.c.user_id == _owner,
        conversations.c.id.in_(_these),
        _is_job,
        conversations.c.retrieved_at.is_(None),
    )
    .values(retrieved_at=bindparam("at"))
)
_redirect = (
    update(inbox)
    .where(inbox.c.user_id == _owner, inbox.c.id.in_(_these), unserved)
    .values(run_kind=bindparam("served_as"))
)
_remembered = (
    select(session_entries.c.number)
    .where(
        session_entries.c.user_id == _owner,
        session_entries.c.conversation_id == bindparam("conversation"),
        session_entries.c.session_id == bindparam("session"),
    )
    .limit(_ONE)
)

_same = and_(
    runs.c.user_id == conversations.c.user_id, runs.c.conversation_id == conversations.c.id
)
_is_work = runs.c.kind == text("'background'")
_of_job = and_(conversations.c.user_id == _owner, conversations.c.id.in_(_these))
_other = runs.alias("other")
_last_ended = (
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
_said = (
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
_ends: Select[Any] = (
    select(conversations.c.id, runs.c.result, runs.c.failure_message, _said.label("said"))
    .select_from(conversations)
    .join(runs, and_(_same, runs.c.id == _last_ended))
    .where(_of_job)
)
_heard: Select[Any] = (
    select(
        runs.c.conversation_id.label("id"),
        func.max(runs.c.started_at).label("started_at"),
        func.max(runs.c.drafted_at).label("drafted_at"),
    )
    .where(runs.c.user_id == _owner, runs.c.conversation_id.in_(_these), _is_work)
    .group_by(runs.c.conversation_id)
)
_place = (
    func.row_number()
    .over(
        partition_by=tool_calls.c.conversation_id,
        order_by=(tool_calls.c.started_at.desc(), tool_calls.c.id),
    )
    .label("place")
)
_count = func.count().over(partition_by=tool_calls.c.conversation_id).label("how_many")
_numbered = (
    select(
        tool_calls.c.conversation_id.label("id"),
        tool_calls.c.tool,
        func.coalesce(tool_calls.c.ended_at, tool_calls.c.started_at).label("at"),
        _place,
        _count,
    )
    .where(tool_calls.c.user_id == _owner, tool_calls.c.conversation_id.in_(_these))
    .subquery()
)
_calls: Select[Any] = (
    select(_numbered)
    .where(_numbered.c.place <= literal_column(str(_SOME), Integer))
    .order_by(_numbered.c.id, _numbered.c.place)
)


class Jobs(Group):
    def under(
        self,
        user: UserId,
        parent: ConversationId,
        *,
        limit: int,
        ids: Collection[str] | None = None,
        batch: str | None = None,
    ) -> Sequence[Conversation]:
        statement = _under
        if ids is not None:
            begin_so = [conversations.c.id.startswith(one, autoescape=True) for one in ids]
            statement = statement.where(or_(*begin_so)) if begin_so else statement.limit(0)
        if batch is not None:
            statement = statement.where(conversations.c.batch == batch)
        values = {"owner": user, "parent": parent, "limit": limit}
        return self._read(user, self._execute(statement, values).all())

    def named(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        rows = self._execute(_named, {"owner": user, "which": list(conversation_ids)}).all()
        return {job.id: job for job in self._read(user, rows)}

    def lock(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Conversation]:
        rows = self._execute(_lock, {"owner": user, "which": list(conversation_ids)}).all()
        return {job.id: job for job in self._read(user, rows)}

    def work(
        self, user: UserId, conversation_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, WorkSummary]:
        values = {"owner": user, "which": list(conversation_ids)}
        ends = {row.id: row for row in self._execute(_ends, values)}
        heard = {row.id: row for row in self._execute(_heard, values)}
        calls = defaultdict[str, list[Row[Any]]](list)
        for row in self._execute(_calls, values):
            calls[row.id].append(row)
        return {job: _work(ends.get(job), heard.get(job), calls[job]) for job in conversation_ids}

    def count_open(self, user: UserId, root: ConversationId) -> int:
        found: int = self._execute(_count_open, {"owner": user, "root": root}).scalar_one()
        return found

    def retrieve(self, user: UserId, conversation_ids: Collection[ConversationId]) -> None:
        if conversation_ids:
            values = {"owner": user, "which": list(conversation_ids), "at": self.tx.now}
            self._execute(_retrieve, values)

    def is_remembered(self, user: UserId, conversation_id: ConversationId, session_id: str) -> bool:
        values = {"owner": user, "conversation": conversation_id, "session": session_id}
        return self._execute(_remembered, values).first() is not None

    def wait(self, turn: Turn, conversation_ids: Mapping[ConversationId, bool]) -> None:
        Waits(self.tx).begin(turn, conversation_ids)

    def awaited_by(
        self, user: UserId, parent: ConversationId, job: ConversationId
    ) -> RunKind | None:
        return Waits(self.tx).awaited_by(user, parent, job)

    def redirect(self, user: UserId, items: Collection[ItemId], kind: RunKind) -> None:
        if items:
            values = {"owner": user, "which": list(items), "served_as": kind.value}
            self._execute(_redirect, values)

    def _read(self, user: UserId, rows: Sequence[Row[Any]]) -> Sequence[Conversation]:
        asked = Questions(self.tx).open_of_all(user, [row.id for row in rows])
        return [to_conversation(row, asked.get(row.id, ())) for row in rows]


def _work(end: Row[Any] | None, heard: Row[Any] | None, calls: Sequence[Row[Any]]) -> WorkSummary:
    moments = [heard.started_at, heard.drafted_at] if heard else []
    known = [moment for moment in [*moments, *(call.at for call in calls)] if moment is not None]
    return WorkSummary(
        message=end and end.said,
        result_json=end and end.result,
        failure=end and end.failure_message,
        calls=calls[0].how_many if calls else 0,
        recent_tools=tuple(call.tool for call in calls),
        updated_at=max(known, default=None),
    )
