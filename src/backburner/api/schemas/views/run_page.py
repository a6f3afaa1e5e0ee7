"""The page of a run, and the statistics of a conversation."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.actions.work import run_pages
from backburner.api.schemas.base import example
from backburner.api.schemas.run import CallSummaryOut, RunFailureOut, RunOut, ToolCallOut
from backburner.api.schemas.spending import AllowanceStatusOut, AmountOut
from backburner.core.allowance import AllowanceScope
from backburner.core.question import Purpose
from backburner.core.run import Run, RunKind, RunStatus
from backburner.core.work import run_facts, timeline
from backburner.core.work.run_facts import CauseKind, OutcomeKind
from backburner.core.work.timeline import StepKind
from backburner.ports import RunCost

_CONVERSATION, _RUN = "c_0123456789abcdefghjkmnpqrs", "r_0123456789abcdefghjkmnpqrs"


class RunCauseOut(BaseModel):
    """Something that started a run."""

    kind: CauseKind
    in_words: str
    text: str = Field(description="A message, an answer or the name of a job, shortened.")
    question: str = Field(description="Of an answer: what was asked.")
    slot_at: datetime | None = Field(description="The time in the schedule.")
    message_id: str | None
    question_id: str | None
    conversation_id: str | None = Field(description="The job.")
    run_id: str | None = Field(description="The run before it.")

    @classmethod
    def of(cls, cause: run_facts.RunCause, *, zone: str) -> Self:
        return cls(
            kind=cause.kind,
            in_words=run_facts.describe_cause(cause, zone=zone),
            text=cause.text,
            question=cause.question,
            slot_at=cause.slot_at,
            message_id=cause.message_id,
            question_id=cause.question_id,
            conversation_id=cause.conversation_id,
            run_id=cause.run_id,
        )


class RunOutcomeOut(BaseModel):
    ending: OutcomeKind = Field(description="How it ended, in a word.")
    text: str = Field(description="The same in a sentence.")
    what_to_do: str | None = Field(description="After a failure.")

    @classmethod
    def of(cls, outcome: run_facts.RunOutcome) -> Self:
        return cls(ending=outcome.ending, text=outcome.text, what_to_do=outcome.what_to_do)


class RunCostOut(AmountOut):
    """The cost of the model calls of a run."""

    input_tokens: int | None = Field(
        description="Tokens that were sent to models, those from their caches included; null: only"
        " `tokens` is known."
    )
    output_tokens: int | None = Field(description="Tokens that models wrote.")
    cached_tokens: int | None = Field(description="Of `input_tokens`, those from caches.")
    model_calls: int
    is_all_priced: bool = Field(description="False: the price of some model calls is unknown.")

    @classmethod
    def of_run(cls, cost: RunCost) -> Self:
        spent, output = cost.spent, cost.output
        return cls(
            micros=spent.micros,
            tokens=spent.tokens,
            input_tokens=None if output is None else spent.tokens - output,
            output_tokens=output,
            cached_tokens=cost.cached,
            model_calls=cost.calls,
            is_all_priced=cost.is_all_priced,
        )


class ModelCallOut(AmountOut):
    model: str
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None

    @classmethod
    def of_call(cls, call: timeline.PaidCall | None) -> Self | None:
        if call is None:
            return None
        tokens, output = call.spent.tokens, call.output
        return cls(
            model=call.model,
            micros=call.spent.micros,
            tokens=tokens,
            input_tokens=None if output is None else tokens - output,
            output_tokens=output,
            cached_tokens=call.cached,
        )


class TimelineStepOut(BaseModel):
    """A bar of a waterfall."""

    kind: StepKind
    offset: float = Field(description="Seconds from the start of the run.")
    seconds: float | None = Field(description="How long it took; null: it is not over.")
    in_words: str
    failed: bool
    call: CallSummaryOut | None = Field(description="Of a `call`.")
    model_call: ModelCallOut | None = Field(description="Of `thinking` that was paid for.")

    @classmethod
    def of(cls, step: timeline.TimelineStep) -> Self:
        return cls(
            kind=step.kind,
            offset=step.offset.total_seconds(),
            seconds=None if step.duration is None else step.duration.total_seconds(),
            in_words=step.in_words,
            failed=step.call is not None and step.call.failed,
            call=None if step.call is None else CallSummaryOut.of(step.call),
            model_call=ModelCallOut.of_call(step.model_call),
        )


class AskedOut(BaseModel):
    """A question that a run asked."""

    id: str
    purpose: Purpose
    prompt: str
    asked_at: datetime
    closed_at: datetime | None
    answer: str | None = Field(description="Null: it is open, or was withdrawn.")

    @classmethod
    def of(cls, asked: timeline.AskedQuestion) -> Self:
        return cls.model_validate(asked, from_attributes=True)


class OtherTryOut(BaseModel):
    """Another run for the same work."""

    id: str
    status: RunStatus
    started_at: datetime
    ended_at: datetime | None
    failure: RunFailureOut | None

    @classmethod
    def of(cls, run: Run) -> Self:
        return cls(
            id=run.id,
            status=run.status,
            started_at=run.started_at,
            ended_at=run.ended_at,
            failure=RunFailureOut.of(run.failure),
        )


class RunDetailsOut(RunOut):
    """A run with everything that is known of it."""

    title: str = Field(description="The title of its conversation.")
    outcome: RunOutcomeOut
    causes: Sequence[RunCauseOut] = Field(
        description="What started it, the most important first; empty: not known any more."
    )
    worked_seconds: float = Field(description="How long it worked, without its waits.")
    cost: RunCostOut
    models: Sequence[str] = Field(description="The models that it has paid for.")
    time_limit_seconds: float = Field(description="Of each part of it between two waits.")
    allowances: Sequence[AllowanceStatusOut] = Field(
        description="What it was paid from: the limits of now, with what was spent in this run, in"
        " its conversation with all jobs, on the day of the run, and in all."
    )
    tries: Sequence[OtherTryOut] = Field(
        description="Runs for the same work that failed before it, oldest first."
    )
    next_try: OtherTryOut | None = Field(description="The run after it, if it failed.")
    asked: Sequence[AskedOut] = Field(description="What it asked, oldest first.")
    timeline: Sequence[TimelineStepOut] = Field(description="Its steps in order of time.")
    timeline_is_cut: bool = Field(description="There are more steps.")
    prompts: Sequence[str] = Field(
        description="What it was told, shortened; the later ones after waits. Empty until it waits"
        " or ends, and if its process went away. It may contain text of others."
    )
    tool_calls: Sequence[ToolCallOut] = Field(description="Oldest first.")

    @classmethod
    def of_page(cls, page: run_pages.RunPage) -> Self:
        counted = set(AllowanceScope)
        return cls.of(
            page.run,
            title=page.title,
            outcome=RunOutcomeOut.of(page.outcome),
            causes=[RunCauseOut.of(cause, zone=page.zone) for cause in page.causes],
            worked_seconds=page.worked.total_seconds(),
            cost=RunCostOut.of_run(page.cost),
            models=page.models,
            time_limit_seconds=page.time_limit.total_seconds(),
            allowances=[
                AllowanceStatusOut.of(
                    state,
                    counted=state.allowance.scope in counted,
                    own=page.account.allowances,
                    ceilings=page.account.ceilings,
                )
                for state in page.allowances
            ],
            tries=[OtherTryOut.of(run) for run in page.tries],
            next_try=None if page.next_try is None else OtherTryOut.of(page.next_try),
            asked=[AskedOut.of(asked) for asked in page.asked],
            timeline=[TimelineStepOut.of(step) for step in page.timeline.steps],
            timeline_is_cut=page.timeline.is_cut,
            prompts=page.prompts,
            tool_calls=[ToolCallOut.of(call) for call in page.calls],
        )


class MeasuredRunOut(BaseModel):
    """The figures of a run, for a chart."""

    id: str
    kind: RunKind
    status: RunStatus
    started_at: datetime
    ended_at: datetime | None
    worked_seconds: float = Field(description="How long it worked, without its waits.")
    cost: RunCostOut

    @classmethod
    def of(cls, measure: run_facts.RunMeasure, cost: RunCost) -> Self:
        run = measure.run
        return cls(
            id=run.id,
            kind=run.kind,
            status=run.status,
            started_at=run.started_at,
            ended_at=run.ended_at,
            worked_seconds=measure.worked.total_seconds(),
            cost=RunCostOut.of_run(cost),
        )


class MediansOut(AmountOut):
    worked_seconds: float

    @classmethod
    def of_runs(cls, medians: run_facts.RunMedians | None) -> Self | None:
        if medians is None:
            return None
        return cls(
            worked_seconds=medians.worked.total_seconds(),
            micros=medians.micros,
            tokens=medians.tokens,
        )


class ConversationStatsOut(BaseModel):
    """The last runs of a conversation, and what it has spent."""

    model_config = example(
        conversation_id=_CONVERSATION,
        runs=[
            {
                "id": _RUN,
                "kind": "background",
                "status": "success",
                "started_at": "2026-11-16T12:00:00Z",
                "ended_at": "2026-11-16T12:00:41Z",
                "worked_seconds": 41.0,
                "cost": {
                    "micros": 12_000,
                    "tokens": 1834,
                    "input_tokens": 1700,
                    "output_tokens": 134,
                    "cached_tokens": 1200,
                    "model_calls": 2,
                    "is_all_priced": True,
                },
            }
        ],
        medians={"worked_seconds": 41.0, "micros": 12_000, "tokens": 1834},
        failed=0,
        root_id=_CONVERSATION,
        allowance={
            "scope": "conversation",
            "micros": 1_000_000,
            "tokens": None,
            "spent": {"micros": 12_000, "tokens": 1834},
            "is_used_up": False,
        },
    )

    conversation_id: str
    runs: Sequence[MeasuredRunOut] = Field(
        description="The last runs, at most 20, oldest first; skipped ones are left out."
    )
    medians: MediansOut | None = Field(
        description="Of those that ended, well or with a failure; null: there are none."
    )
    failed: int = Field(description="How many of these runs failed.")
    root_id: str = Field(description="The conversation whose allowance counts.")
    allowance: AllowanceStatusOut = Field(
        description="Of that conversation, with all that it and its jobs have spent."
    )

    @classmethod
    def of(cls, stats: run_pages.ConversationStats) -> Self:
        no_cost = run_pages.NO_COST
        values: dict[str, Any] = {
            "conversation_id": stats.conversation_id,
            "failed": stats.failed,
            "root_id": stats.root_id,
        }
        return cls(
            runs=[
                MeasuredRunOut.of(one, stats.costs.get(one.run.id, no_cost)) for one in stats.runs
            ],
            medians=MediansOut.of_runs(stats.medians),
            allowance=AllowanceStatusOut.of(
                stats.state,
                counted=True,
                own=stats.account.allowances,
                ceilings=stats.account.ceilings,
            ),
            **values,
        )
