"""Jobs as trees: under one conversation, or of all that have started some."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from backburner.actions.deps import Deps
from backburner.actions.waits import shown
from backburner.actions.work import jobs
from backburner.core.allowance import Amount
from backburner.core.conversation import Conversation
from backburner.core.ids import ConversationId, UserId
from backburner.core.question import Question
from backburner.core.work import lookup
from backburner.core.work.views import JobView
from backburner.ports import JobCounts, JobLevel, JobParent, Tx

#: Levels of jobs; agents cannot start deeper ones.
MAX_DEPTH = 3
MAX_TREES = 50
MAX_NODES = 500
#: Of one conversation or job.
MAX_SIBLINGS = 100
#: The last changed jobs, by which trees are found.
_MAX_SEARCHED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNode:
    view: JobView
    #: From its start to its end, or to now.
    elapsed: timedelta
    spent: Amount
    counts: JobCounts
    children: Sequence["JobNode"]
    #: The open question to the user.
    asked: Question | None = None
    #: What it waits for, in a sentence; None: it runs, is paused or has ended.
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class JobTree:
    parent: JobParent
    counts: JobCounts
    children: Sequence[JobNode]
    #: What the parent waits for, if only its tree was asked for.
    waits_for: str | None = None


@dataclass(frozen=True, slots=True)
class JobTrees:
    trees: Sequence[JobTree]
    #: There are more jobs.
    is_cut: bool


async def trees(
    deps: Deps, user: UserId, conversation_id: ConversationId | None = None
) -> JobTrees:
    """Read the jobs below a conversation, or below those whose jobs changed last."""

    def work(tx: Tx) -> JobTrees:
        here = None
        if conversation_id is None:
            parents = tx.jobs.parents(user, searched=_MAX_SEARCHED, limit=MAX_TREES + 1)
        else:
            here = tx.conversations.load(user, conversation_id)
            parents = [JobParent(here.id, here.title, here.kind)]
        reader = _Reader(tx, deps, user, here)
        return reader.read(parents[:MAX_TREES], is_cut=len(parents) > MAX_TREES)

    return await deps.store.read(work)


class _Reader:
    """Reads level by level, so that the number of statements does not grow with that of jobs."""

    def __init__(self, tx: Tx, deps: Deps, user: UserId, here: Conversation | None) -> None:
        self._tx, self._deps, self._user, self._here = tx, deps, user, here

    def read(self, parents: Sequence[JobParent], *, is_cut: bool) -> JobTrees:
        levels, room = list[JobLevel](), MAX_NODES
        ids = [parent.id for parent in parents]
        for _ in range(MAX_DEPTH):
            level = self._tx.jobs.level(self._user, ids, each=MAX_SIBLINGS, limit=room)
            levels.append(level)
            ids = [job.id for siblings in level.jobs.values() for job in siblings]
            room -= len(ids)
            if not ids or room <= 0:
                break
        found = [job for level in levels for some in level.jobs.values() for job in some]
        self._views = {job.id: job for job in jobs.views(self._tx, self._user, found)}
        self._costs = self._tx.jobs.costs(self._user, [job.id for job in found])
        self._questions = {job.id: job.pending_question for job in found}
        self._waits = self._explain(found)
        self._levels = levels
        counted = sum(counts.total for level in levels for counts in level.counts.values())
        made = [
            JobTree(
                parent,
                self._counts(parent.id, 0),
                self._children(parent.id, 0),
                self._waits.get(parent.id),
            )
            for parent in parents
        ]
        return JobTrees(made, is_cut or counted > len(found) or room <= 0)

    def _explain(self, found: Sequence[Conversation]) -> Mapping[ConversationId, str]:
        here = [] if self._here is None else [self._here]
        idle = [
            job
            for job in [*here, *found]
            if lookup.is_open(job)
            and (job.id not in self._views or self._views[job.id].running is None)
        ]
        return shown.awaited_by_work(self._tx, self._deps, self._user, idle)

    def _counts(self, parent_id: ConversationId, depth: int) -> JobCounts:
        if depth >= len(self._levels):
            return JobCounts()
        return self._levels[depth].counts.get(parent_id, JobCounts())

    def _children(self, parent_id: ConversationId, depth: int) -> Sequence[JobNode]:
        if depth >= len(self._levels):
            return ()
        return [
            JobNode(
                view=view,
                elapsed=(view.completed_at or self._tx.now) - view.created_at,
                spent=self._costs.get(job.id, Amount()),
                counts=self._counts(job.id, depth + 1),
                children=self._children(job.id, depth + 1),
                asked=self._questions[job.id],
                waits_for=self._waits.get(job.id),
            )
            for job in self._levels[depth].jobs.get(parent_id, ())
            for view in [self._views[job.id]]
        ]
