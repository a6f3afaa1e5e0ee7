"""The parts of a conversation's timeline: its questions, and what runs did and cost.

Each is one statement for all runs on a page. Long arguments of calls are not read.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import BigInteger, Row, Text, and_, bindparam, case, func, select, tuple_

from backburner.core.allowance import Amount, Cost
from backburner.core.ids import CallId, ConversationId, RunId, UserId
from backburner.core.run import Run
from backburner.core.work.activity import CallSummary
from backburner.core.work.call_summary import summarize_arguments
from backburner.ports import Answerer, PageKey, RunDetails, ShownCall, TimelineQuestion
from backburner.store.context import Group
from backburner.store.mapping import load, to_question, to_run
from backburner.store.tables import questions, runs, spend, tool_calls

#: Of the calls of a run, the last ones are shown.
CALLS_SHOWN = 20
#: Longer arguments are counted only.
MAX_ARGUMENT_CHARS = 10_000

_owner = bindparam("owner", type_=Text())
_conversation_id = bindparam("conversation_id", type_=Text())
_run_ids = bindparam("run_ids", expanding=True, type_=Text())
questions_page = (
    select(questions)
    .where(questions.c.user_id == _owner, questions.c.conversation_id == _conversation_id)
    .order_by(questions.c.asked_at.desc(), questions.c.id.desc())
    .limit(bindparam("limit", type_=BigInteger()))
)
questions_after = questions_page.where(
    tuple_(questions.c.asked_at, questions.c.id)
    < tuple_(bindparam("at", type_=questions.c.asked_at.type), bindparam("id", type_=Text()))
)
_select_runs = select(runs).where(
    runs.c.user_id == _owner, runs.c.conversation_id == _conversation_id, runs.c.id.in_(_run_ids)
)
_ranked = (
    select(
        tool_calls.c.id,
        func.row_number()
        .over(
            partition_by=tool_calls.c.run_id,
            order_by=(tool_calls.c.started_at.desc(), tool_calls.c.id.desc()),
        )
        .label("place"),
        func.count().over(partition_by=tool_calls.c.run_id).label("total"),
    )
    .where(tool_calls.c.user_id == _owner, tool_calls.c.run_id.in_(_run_ids))
    .subquery("ranked")
)
_select_calls = (
    select(
        *(
            tool_calls.c[name]
            for name in "id run_id server tool state failed started_at ended_at".split()
        ),
        case(
            (func.length(tool_calls.c.arguments) <= MAX_ARGUMENT_CHARS, tool_calls.c.arguments)
        ).label("arguments"),
        func.length(tool_calls.c.arguments).label("size"),
        _ranked.c.total,
    )
    .join(_ranked, and_(tool_calls.c.user_id == _owner, tool_calls.c.id == _ranked.c.id))
    .where(_ranked.c.place <= CALLS_SHOWN)
    .order_by(tool_calls.c.started_at, tool_calls.c.id)
)
_select_costs = (
    select(
        spend.c.run_id,
        func.sum(spend.c.micros).label("micros"),
        func.sum(spend.c.tokens).label("tokens"),
        func.min(case((spend.c.priced, 1), else_=0)).label("priced"),
    )
    .where(spend.c.user_id == _owner, spend.c.run_id.in_(_run_ids))
    .group_by(spend.c.run_id)
)


class TimelineQueries(Group):
    def asked(
        self, user: UserId, conversation_id: ConversationId, after: PageKey | None, *, limit: int
    ) -> Sequence[TimelineQuestion]:
        values = {"owner": user, "conversation_id": conversation_id, "limit": limit}
        statement = questions_page
        if after is not None:
            statement, (values["at"], values["id"]) = questions_after, after
        return [_to_asked(row) for row in self._execute(statement, values)]

    def runs_with_ids(
        self, user: UserId, conversation_id: ConversationId, run_ids: Collection[RunId]
    ) -> Sequence[Run]:
        if not run_ids:
            return ()
        values = {"owner": user, "conversation_id": conversation_id, "run_ids": list(run_ids)}
        return [to_run(row) for row in self._execute(_select_runs, values)]

    def run_details(self, user: UserId, run_ids: Collection[RunId]) -> Mapping[RunId, RunDetails]:
        if not run_ids:
            return {}
        values = {"owner": user, "run_ids": list(run_ids)}
        details = defaultdict[RunId, RunDetails](RunDetails)
        for row in self._execute(_select_costs, values):
            # PostgreSQL adds integers up to a number of another type.
            amount = Amount(int(row.micros), int(row.tokens))
            details[RunId(row.run_id)] = RunDetails(cost=Cost(amount, priced=bool(row.priced)))
        calls = defaultdict[RunId, list[Any]](list)
        for made in self._execute(_select_calls, values):
            calls[RunId(made.run_id)].append(made)
        for run_id, rows in calls.items():
            shown = tuple(_to_shown_call(row) for row in rows)
            details[run_id] = replace(details[run_id], calls=rows[0].total, shown_calls=shown)
        return details


def _to_asked(row: Row[Any]) -> TimelineQuestion:
    answerer = None
    if row.answered_by is not None:
        kind, _, rest = row.answered_by.partition(" ")
        _, _, name = rest.partition(" ")
        answerer = Answerer(kind, name)
    return TimelineQuestion(
        question=to_question(row),
        closed_at=row.closed_at,
        answer=row.answer,
        answered_by=answerer,
    )


def _to_shown_call(row: Row[Any]) -> ShownCall:
    is_long = row.arguments is None
    call = CallSummary(
        id=CallId(row.id),
        tool=row.tool,
        summary=f"({row.size:,} characters)"
        if is_long
        else summarize_arguments(load(row.arguments)),
        state=row.state,
        failed=row.failed,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )
    return ShownCall(row.server, call)
