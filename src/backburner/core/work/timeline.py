"""The timeline of a run: its tool calls, its model's thinking between them, and its waits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from backburner.core.allowance import Amount
from backburner.core.ids import QuestionId
from backburner.core.question import Purpose
from backburner.core.run import Run, RunStatus
from backburner.core.work.activity import CallSummary

#: Shorter gaps are not shown: the program needs some time between two steps.
MIN_GAP = timedelta(milliseconds=50)
MAX_TIMELINE_STEPS = 500
#: The tool with which an agent waits for jobs.
WAITING_TOOL = "background_block"


class StepKind(StrEnum):
    CALL = "call"  #: A tool call.
    THINKING = "thinking"  #: The model worked, or was waited for.
    WAITING = "waiting"  #: It was handed back until something happened.


@dataclass(frozen=True, slots=True)
class RunPart:
    """A part of a run, from a claim to the commit, or to when it was handed back."""

    epoch: int
    #: None: it was not recorded.
    began_at: datetime | None
    ended_at: datetime


@dataclass(frozen=True, slots=True)
class Span:
    began_at: datetime
    ended_at: datetime

    @property
    def duration(self) -> timedelta:
        return self.ended_at - self.began_at


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidCall:
    model: str
    spent: Amount
    #: Of the tokens, those that the model wrote, and those from its cache; None: not recorded.
    output: int | None
    cached: int | None
    ended_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedQuestion:
    """A question that a run asked."""

    id: QuestionId
    purpose: Purpose
    prompt: str
    asked_at: datetime
    closed_at: datetime | None
    #: None: it is open, or was withdrawn.
    answer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStep:
    kind: StepKind
    #: From the start of the run.
    offset: timedelta
    #: None: it is not over.
    duration: timedelta | None
    in_words: str
    call: CallSummary | None = None
    model_call: PaidCall | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    steps: Sequence[TimelineStep]
    #: There are more steps.
    is_cut: bool


def work_spans(run: Run, parts: Sequence[RunPart], *, now: datetime) -> Sequence[Span]:
    """Find when a run worked; in between it was handed back."""
    spans, at = list[Span](), run.started_at
    for part in parts:
        began_at = max(part.began_at or at, at)
        spans.append(Span(began_at, max(part.ended_at, began_at)))
        at = spans[-1].ended_at
    if run.status not in (RunStatus.SKIPPED, RunStatus.QUEUED) and _lacks_part(run, parts):
        # It runs, or its process went away.
        began_at = max(run.resumed_at or at, at)
        spans.append(Span(began_at, max(run.ended_at or now, began_at)))
    return spans


def worked_for(spans: Sequence[Span]) -> timedelta:
    """Sum up how long a run worked, without its waits."""
    return sum((span.duration for span in spans), timedelta())


def build_timeline(
    run: Run,
    spans: Sequence[Span],
    *,
    calls: Sequence[CallSummary],
    model_calls: Sequence[PaidCall],
    asked: Sequence[AskedQuestion] = (),
    limit: int = MAX_TIMELINE_STEPS,
) -> Timeline:
    """Put the steps of a run in order, for a waterfall; `calls` and the others oldest first."""
    steps, at = list[TimelineStep](), run.started_at
    last = len(spans) - 1
    for number, span in enumerate(spans):
        if span.began_at - at > MIN_GAP:
            steps.append(_wait(run, at, span.began_at, asked, steps))
        until = spans[number + 1].began_at if number < last else None
        is_open = number == last and run.status is RunStatus.RUNNING
        steps += _work(
            run,
            span,
            [call for call in calls if _is_in(call.started_at, at, until)],
            [call for call in model_calls if _is_in(call.ended_at, at, until)],
            is_open=is_open,
        )
        at = span.ended_at
    if run.status is RunStatus.QUEUED:
        steps.append(_wait(run, at, None, asked, steps))
    elif run.ended_at is not None and run.ended_at - at > MIN_GAP:
        steps.append(_wait(run, at, run.ended_at, asked, steps))
    return Timeline(steps[:limit], is_cut=len(steps) > limit)


def _lacks_part(run: Run, parts: Sequence[RunPart]) -> bool:
    return all(part.epoch != run.epoch for part in parts)


def _is_in(moment: datetime, after: datetime, until: datetime | None) -> bool:
    return moment >= after and (until is None or moment < until)


def _work(
    run: Run,
    span: Span,
    calls: Sequence[CallSummary],
    model_calls: Sequence[PaidCall],
    *,
    is_open: bool,
) -> Iterator[TimelineStep]:
    """Yield the steps of one part of a run; between calls, its model thinks."""
    at = span.began_at
    moments: list[tuple[datetime, int, CallSummary | PaidCall]] = [
        *((call.ended_at, 0, call) for call in model_calls),
        *((call.started_at, 1, call) for call in calls),
    ]
    for moment, _, step in sorted(moments, key=lambda one: one[:2]):
        if isinstance(step, PaidCall):
            yield _think(run, min(at, moment), moment, step)
            at = max(at, moment)
            continue
        if moment - at > MIN_GAP:
            yield _think(run, at, moment)
        yield TimelineStep(
            kind=StepKind.CALL,
            offset=moment - run.started_at,
            duration=None if step.ended_at is None else step.ended_at - moment,
            in_words=step.in_words,
            call=step,
        )
        at = max(at, step.ended_at or span.ended_at)
    if not is_open and span.ended_at - at > MIN_GAP:
        yield _think(run, at, span.ended_at)
    if is_open and all(call.ended_at is not None for call in calls):
        yield _think(run, at, None)


def _think(
    run: Run, began_at: datetime, ended_at: datetime | None, call: PaidCall | None = None
) -> TimelineStep:
    return TimelineStep(
        kind=StepKind.THINKING,
        offset=began_at - run.started_at,
        duration=None if ended_at is None else ended_at - began_at,
        in_words="Thinking" if call is None else f"Thinking, with {call.model}",
        model_call=call,
    )


def _wait(
    run: Run,
    began_at: datetime,
    ended_at: datetime | None,
    asked: Sequence[AskedQuestion],
    before: Sequence[TimelineStep],
) -> TimelineStep:
    # It is handed back at the moment at which it asks.
    questions = [one for one in asked if one.asked_at == began_at]
    call = before[-1].call if before else None
    if questions:
        what = awaited_answer(questions[0].purpose)
    elif call is not None and call.tool == WAITING_TOOL:
        what = "its jobs"
    elif ended_at is None and run.failure is not None:
        what = f"this to be over: {run.failure.message}"
    else:
        what = "its turn"
    return TimelineStep(
        kind=StepKind.WAITING,
        offset=began_at - run.started_at,
        duration=None if ended_at is None else ended_at - began_at,
        in_words=f"{'Waits' if ended_at is None else 'Waited'} for {what}",
    )


def awaited_answer(purpose: Purpose) -> str:
    """Say in a phrase what somebody is waited for."""
    match purpose:
        case Purpose.APPROVAL | Purpose.PROPOSAL | Purpose.CHANGE:
            return "your approval"
        case Purpose.RECONNECT:
            return "your sign-in"
        case Purpose.ALLOWANCE:
            return "your decision about the allowance"
        case Purpose.QUESTION | Purpose.IN_DOUBT | Purpose.FAILURE | Purpose.INPUT:
            return "your answer"
        case _:
            assert_never(purpose)
