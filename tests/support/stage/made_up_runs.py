"""Pages of runs that nobody ran, with whatever steps a test wants."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from backburner.actions.work.run_pages import NO_COST, RunPage
from backburner.core.allowance import Amount
from backburner.core.ids import CallId
from backburner.core.run import Run, RunStatus
from backburner.core.schedule import Interval
from backburner.core.work import run_facts, timeline
from backburner.core.work.activity import CallSummary
from backburner.core.work.timeline import AskedQuestion, PaidCall, RunPart
from backburner.ports import SpendingState, ToolCallRow
from backburner.web.display import Display
from support.stage import make
from support.stage.make import NOON

BERLIN = "Europe/Berlin"
EVERY_HOUR = Interval(timedelta(hours=1), anchor=NOON)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def display(seconds: float = 3600) -> Display:
    return Display(at(seconds), BERLIN)


def tool_call(
    number: int, begin: float, end: float | None, tool: str = "look", **changes: Any
) -> ToolCallRow:
    made = ToolCallRow(
        id=CallId(f"t_{number}"),
        server="test",
        tool=tool,
        arguments={"path": "a.py"},
        read_only=True,
        state="done" if end is not None else "started",
        failed=False,
        result=None,
        grant_id=None,
        started_at=at(begin),
        ended_at=None if end is None else at(end),
    )
    return replace(made, **changes)


def paid(seconds: float, tokens: int = 100, *, output: int | None = 40) -> PaidCall:
    spent = Amount(micros=2_000, tokens=tokens)
    return PaidCall(
        model="claude-sonnet", spent=spent, output=output, cached=None, ended_at=at(seconds)
    )


def run_page(
    *,
    run: Run | None = None,
    calls: Sequence[ToolCallRow] = (),
    model_calls: Sequence[PaidCall] = (),
    parts: Sequence[tuple[float, float]] = (),
    asked: Sequence[AskedQuestion] = (),
    now: float = 3600,
    **changes: Any,
) -> RunPage:
    run = run or ended_run(60)
    done = [RunPart(number, at(a), at(b)) for number, (a, b) in enumerate(parts, 1)]
    spans = timeline.work_spans(run, done, now=at(now))
    summaries = [
        CallSummary(
            id=call.id,
            tool=call.tool,
            summary=f"path={call.arguments.get('path', '')}",
            state=call.state,
            failed=call.failed,
            started_at=call.started_at,
            ended_at=call.ended_at,
        )
        for call in calls
    ]
    made = RunPage(
        run=run,
        title="Watch CI",
        conversation=make.conversation(schedule=EVERY_HOUR, title="Watch CI"),
        zone=BERLIN,
        calls=calls,
        causes=[],
        outcome=run_facts.describe_outcome(run, asked, None),
        worked=timeline.worked_for(spans),
        cost=NO_COST,
        models=["claude-sonnet"],
        time_limit=timedelta(minutes=30),
        allowances=[],
        account=SpendingState(spent={}, running=[], allowances=[], ceilings=[]),
        timeline=timeline.build_timeline(
            run, spans, calls=summaries, model_calls=model_calls, asked=asked
        ),
        asked=asked,
        tries=[],
        next_try=None,
        previous=None,
        following=None,
        prompts=[],
    )
    return replace(made, **changes)


def ended_run(seconds: float, status: RunStatus = RunStatus.SUCCESS, **changes: Any) -> Run:
    return make.run(status=status, ended_at=at(seconds), **changes)
