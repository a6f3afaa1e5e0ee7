"""Jobs as trees: the conversations that have started some, and their jobs level by level."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    BigInteger,
    Label,
    Select,
    Text,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    text,
)

from backburner.core.allowance import Amount
from backburner.core.conversation import Kind
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.work.views import JobStatus
from backburner.ports import JobCounts, JobLevel, JobParent
from backburner.store.context import Group
from backburner.store.mapping import to_conversation
from backburner.store.queries.run_pages import RunPageQueries
from backburner.store.queries.view_filters import has_job_status
from backburner.store.records.questions import Questions
from backburner.store.tables import conversations, is_job, is_shown, runs

_owner = bindparam("owner", type_=Text())
_limit = bindparam("limit", type_=BigInteger())
_each = bindparam("each", type_=BigInteger())
_searched = bindparam("searched", type_=BigInteger())
_parent_ids = bindparam("parent_ids", expanding=True, type_=Text())
_job_ids = bindparam("job_ids", expanding=True, type_=Text())

#: In three steps: a planner that knows nothing of the tables joins them by scanning.
select_newest = (
    select(conversations.c.parent_id)
    .where(conversations.c.user_id == _owner, is_job, is_shown)
    .order_by(conversations.c.updated_at.desc(), conversations.c.id.desc())
    .limit(_searched)
)
select_named = select(
    conversations.c.id, conversations.c.title, conversations.c.kind, conversations.c.parent_id
).where(conversations.c.user_id == _owner, conversations.c.id.in_(_parent_ids), is_shown)


def _count(status: JobStatus) -> Label[int]:
    matches = case((has_job_status(status), 1), else_=0)
    return func.sum(matches).over(partition_by=conversations.c.parent_id).label(status.value)


_is_open = or_(
    conversations.c.schedule.is_not(None), conversations.c.status == text("'waiting_input'")
)
_order = (_is_open.desc(), conversations.c.created_at.desc(), conversations.c.id.desc())
_ENDS = (JobStatus.COMPLETED, JobStatus.ERROR, JobStatus.CANCELLED)
_ranked = (
    select(
        conversations.c.id,
        func.row_number()
        .over(partition_by=conversations.c.parent_id, order_by=_order)
        .label("place"),
        func.count().over(partition_by=conversations.c.parent_id).label("total"),
        *(_count(status) for status in _ENDS),
    )
    .where(
        conversations.c.user_id == _owner,
        conversations.c.parent_id.in_(_parent_ids),
        is_job,
        is_shown,
    )
    .subquery("ranked")
)
select_level: Select[Any] = (
    select(conversations, _ranked.c.total, *(_ranked.c[status.value] for status in _ENDS))
    .join(_ranked, and_(conversations.c.user_id == _owner, conversations.c.id == _ranked.c.id))
    .where(_ranked.c.place <= _each)
    .order_by(_ranked.c.place, conversations.c.id)
    .limit(_limit)
)
select_runs = (
    select(runs.c.id, runs.c.conversation_id)
    .where(runs.c.user_id == _owner, runs.c.conversation_id.in_(_job_ids))
    .order_by(runs.c.conversation_id, runs.c.started_at)
    .limit(_limit)
)
#: Most jobs have one run or two.
_MAX_RUNS = 5_000
#: A job may be that of a job, and no deeper.
_MAX_STEPS = 3


class JobTreeQueries(Group):
    def parents(self, user: UserId, *, searched: int, limit: int) -> Sequence[JobParent]:
        values = {"owner": user, "searched": searched}
        newest = [row.parent_id for row in self._execute(select_newest, values)]
        wanted = list(dict.fromkeys(one for one in newest if one is not None))
        known = dict[str, Any]()
        for _ in range(_MAX_STEPS):
            missing = [one for one in wanted if one not in known]
            if not missing:
                break
            rows = self._execute(select_named, {"owner": user, "parent_ids": missing})
            known |= {row.id: row for row in rows}
            above = dict.fromkeys(_above(known.get(one), one) for one in wanted)
            wanted = [one for one in above if one is not None]
        tops = [known[one] for one in wanted if one in known]
        return [JobParent(ConversationId(row.id), row.title, Kind(row.kind)) for row in tops][
            :limit
        ]

    def level(
        self, user: UserId, parent_ids: Collection[ConversationId], *, each: int, limit: int
    ) -> JobLevel:
        values = {"owner": user, "parent_ids": list(parent_ids), "each": each, "limit": limit}
        rows = self._execute(select_level, values).all() if parent_ids else []
        questions = Questions(self.tx).open_of_all(user, [row.id for row in rows])
        counts = dict[ConversationId, JobCounts]()
        jobs = defaultdict[ConversationId, list[Any]](list)
        for row in rows:
            parent = ConversationId(row.parent_id)
            jobs[parent].append(to_conversation(row, questions.get(row.id, ())))
            counts[parent] = JobCounts(
                total=int(row.total),
                completed=int(row.completed),
                failed=int(row.error),
                cancelled=int(row.cancelled),
            )
        return JobLevel(jobs, counts)

    def costs(
        self, user: UserId, job_ids: Collection[ConversationId]
    ) -> Mapping[ConversationId, Amount]:
        if not job_ids:
            return {}
        values = {"owner": user, "job_ids": list(job_ids), "limit": _MAX_RUNS}
        places = {
            RunId(row.id): ConversationId(row.conversation_id)
            for row in self._execute(select_runs, values)
        }
        costs = dict[ConversationId, Amount]()
        for run_id, spent in RunPageQueries(self.tx).run_totals(user, places).items():
            place = places[run_id]
            costs[place] = costs.get(place, Amount()) + spent
        return costs


def _above(row: Any, conversation_id: str) -> str | None:
    """Return what stands above a job, or the conversation itself if it is none."""
    is_below = row is not None and row.kind == Kind.JOB.value
    above: str | None = row.parent_id if is_below else conversation_id
    return above
