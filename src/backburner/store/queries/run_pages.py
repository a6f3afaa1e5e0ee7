"""Facts for the page of a run and the statistics of a conversation: parts, costs, and questions."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import BigInteger, Row, Text, bindparam, case, func, select

from backburner.core.allowance import Amount
from backburner.core.ids import ConversationId, QuestionId, RunId, UserId
from backburner.core.question import Purpose
from backburner.core.run import Run, RunStatus
from backburner.core.work.timeline import AskedQuestion, PaidCall, RunPart
from backburner.ports import AwaitedJobs, RunCost
from backburner.store.context import Group
from backburner.store.mapping import to_run
from backburner.store.tables import outcomes, questions, runs, spend, totals, waits

_owner = bindparam("owner", type_=Text())
_conversation_id = bindparam("conversation_id", type_=Text())
_run_id = bindparam("run_id", type_=Text())
_run_ids = bindparam("run_ids", expanding=True, type_=Text())
_limit = bindparam("limit", type_=BigInteger())
_at, _id = bindparam("at", type_=runs.c.started_at.type), bindparam("id", type_=Text())

select_parts = (
    select(outcomes.c.run_id, outcomes.c.epoch, outcomes.c.began_at, outcomes.c.committed_at)
    .where(outcomes.c.user_id == _owner, outcomes.c.run_id.in_(_run_ids))
    .order_by(outcomes.c.run_id, outcomes.c.epoch)
)
select_prompts = (
    select(outcomes.c.prompt)
    .where(
        outcomes.c.user_id == _owner,
        outcomes.c.run_id == _run_id,
        outcomes.c.prompt.is_not(None),
    )
    .order_by(outcomes.c.epoch)
    .limit(_limit)
)
select_model_calls = (
    select(spend)
    .where(spend.c.user_id == _owner, spend.c.run_id == _run_id)
    .order_by(spend.c.spent_at, spend.c.number)
    .limit(_limit)
)
select_costs = (
    select(
        spend.c.run_id,
        func.sum(spend.c.micros).label("micros"),
        func.sum(spend.c.tokens).label("tokens"),
        func.sum(spend.c.output_tokens).label("output"),
        func.sum(spend.c.cached_tokens).label("cached"),
        func.count().label("calls"),
        func.count(spend.c.output_tokens).label("counted"),
        func.sum(case((spend.c.priced, 0), else_=1)).label("unpriced"),
    )
    .where(spend.c.user_id == _owner, spend.c.run_id.in_(_run_ids))
    .group_by(spend.c.run_id)
)
select_totals = select(totals.c.what, totals.c.micros, totals.c.tokens).where(
    totals.c.user_id == _owner, totals.c.what.in_(bindparam("what", expanding=True, type_=Text()))
)
select_asked = (
    select(questions)
    .where(
        questions.c.user_id == _owner,
        questions.c.conversation_id == _conversation_id,
        questions.c.asked_at >= _at,
        questions.c.run_id == _run_id,
    )
    .order_by(questions.c.asked_at, questions.c.id)
    .limit(_limit)
)
select_awaited = (
    select(
        waits.c.run_id,
        func.count().label("awaited"),
        func.count(waits.c.settled_at).label("settled"),
    )
    .where(waits.c.user_id == _owner, waits.c.run_id.in_(_run_ids))
    .group_by(waits.c.run_id)
)
_of_conversation = select(runs).where(
    runs.c.user_id == _owner, runs.c.conversation_id == _conversation_id
)
_newest_first = (runs.c.started_at.desc(), runs.c.epoch.desc(), runs.c.id)
select_earlier = (
    _of_conversation.where(runs.c.started_at <= _at, runs.c.id != _id)
    .order_by(*_newest_first)
    .limit(_limit)
)
select_later = (
    _of_conversation.where(runs.c.started_at > _at)
    .order_by(runs.c.started_at, runs.c.epoch, runs.c.id)
    .limit(_limit)
)
select_last = _of_conversation.order_by(*_newest_first).limit(_limit)


class RunPageQueries(Group):
    def run_parts(
        self, user: UserId, run_ids: Collection[RunId]
    ) -> Mapping[RunId, Sequence[RunPart]]:
        parts = defaultdict[RunId, list[RunPart]](list)
        values = {"owner": user, "run_ids": list(run_ids)}
        for row in self._execute(select_parts, values) if run_ids else ():
            part = RunPart(row.epoch, row.began_at, row.committed_at)
            parts[RunId(row.run_id)].append(part)
        return parts

    def prompts(self, user: UserId, run_id: RunId, *, limit: int) -> Sequence[str]:
        values = {"owner": user, "run_id": run_id, "limit": limit}
        return [row.prompt for row in self._execute(select_prompts, values)]

    def model_calls(self, user: UserId, run_id: RunId, *, limit: int) -> Sequence[PaidCall]:
        values = {"owner": user, "run_id": run_id, "limit": limit}
        return [
            PaidCall(
                model=row.model,
                spent=Amount(row.micros, row.tokens),
                output=row.output_tokens,
                cached=row.cached_tokens,
                ended_at=row.spent_at,
            )
            for row in self._execute(select_model_calls, values)
        ]

    def run_costs(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, RunCost]:
        values = {"owner": user, "run_ids": list(run_ids)}
        rows = self._execute(select_costs, values) if run_ids else ()
        return {RunId(row.run_id): _to_cost(row) for row in rows}

    def run_totals(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, Amount]:
        if not run_ids:
            return {}
        of_key = {f"run:{run_id}": run_id for run_id in run_ids}
        rows = self._execute(select_totals, {"owner": user, "what": list(of_key)})
        return {of_key[row.what]: Amount(row.micros, row.tokens) for row in rows}

    def awaited_jobs(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, AwaitedJobs]:
        values = {"owner": user, "run_ids": list(run_ids)}
        rows = self._execute(select_awaited, values) if run_ids else ()
        return {RunId(row.run_id): AwaitedJobs(row.awaited, row.settled) for row in rows}

    def asked_by(self, user: UserId, run: Run, *, limit: int) -> Sequence[AskedQuestion]:
        values = {
            "owner": user,
            "conversation_id": run.conversation_id,
            "run_id": run.id,
            "at": run.started_at,
            "limit": limit,
        }
        return [to_asked(row) for row in self._execute(select_asked, values)]

    def earlier_runs(self, user: UserId, run: Run, *, limit: int) -> Sequence[Run]:
        values = self._around(user, run, limit)
        rows = self._execute(select_earlier, {**values, "id": run.id})
        return [to_run(row) for row in rows]

    def later_runs(self, user: UserId, run: Run, *, limit: int) -> Sequence[Run]:
        return [to_run(row) for row in self._execute(select_later, self._around(user, run, limit))]

    def last_runs(
        self, user: UserId, conversation_id: ConversationId, *, limit: int
    ) -> Sequence[Run]:
        values = {"owner": user, "conversation_id": conversation_id, "limit": 3 * limit}
        found = (to_run(row) for row in self._execute(select_last, values))
        return [run for run in found if run.status is not RunStatus.SKIPPED][:limit]

    def _around(self, user: UserId, run: Run, limit: int) -> dict[str, Any]:
        values = {"conversation_id": run.conversation_id, "at": run.started_at}
        return {"owner": user, "limit": limit, **values}


def to_asked(row: Row[Any]) -> AskedQuestion:
    return AskedQuestion(
        id=QuestionId(row.id),
        purpose=Purpose(row.purpose),
        prompt=row.prompt,
        asked_at=row.asked_at,
        closed_at=row.closed_at,
        answer=row.answer,
    )


def _to_cost(row: Row[Any]) -> RunCost:
    # Of model calls from before they were counted apart, only all tokens together are known.
    is_counted = row.counted == row.calls
    return RunCost(
        Amount(int(row.micros), int(row.tokens)),
        output=int(row.output) if is_counted else None,
        cached=int(row.cached) if is_counted else None,
        calls=row.calls,
        is_all_priced=not row.unpriced,
    )
