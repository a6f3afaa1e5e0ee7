"""Runs, and the tool calls in them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field

from backburner.actions.work import run_pages
from backburner.api.schemas.base import example
from backburner.api.schemas.spending import AmountOut
from backburner.api.schemas.work.file import FileReferenceOut
from backburner.core.run import (
    Failure,
    FailureKind,
    Progress,
    Run,
    RunKind,
    RunStatus,
    SkippedSlots,
    SkipReason,
    StartedBy,
)
from backburner.core.work.activity import Activity, CallSummary, RunActivity
from backburner.ports import ToolCallRow


class RunFailureOut(BaseModel):
    kind: FailureKind
    message: str

    @classmethod
    def of(cls, failure: Failure | None) -> Self | None:
        return None if failure is None else cls(kind=failure.kind, message=failure.message)


class ProgressOut(BaseModel):
    """The progress that a run reports."""

    model_config = example(text="Read 40 of 120 files", reported_at="2026-11-16T12:00:10Z")

    text: str
    reported_at: datetime

    @classmethod
    def of(cls, progress: Progress | None) -> Self | None:
        return (
            None if progress is None else cls(text=progress.text, reported_at=progress.reported_at)
        )


class SkippedSlotsOut(BaseModel):
    reason: SkipReason
    in_words: str = Field(description="The reason, and how often, as a phrase.")
    count: int = Field(description="How many slots were skipped.")
    or_more: bool
    first_at: datetime
    last_at: datetime

    @classmethod
    def of(cls, skipped: SkippedSlots | None) -> Self | None:
        if skipped is None:
            return None
        gap = skipped.gap
        return cls(
            reason=skipped.reason,
            in_words=skipped.in_words,
            count=gap.count,
            or_more=gap.or_more,
            first_at=gap.first_at,
            last_at=gap.last_at,
        )


class RunOut(BaseModel):
    model_config = example(
        id="r_0123456789abcdefghjkmnpqrs",
        conversation_id="c_0123456789abcdefghjkmnpqrs",
        kind="background",
        status="success",
        started_at="2026-11-16T12:00:00Z",
        ended_at="2026-11-16T12:00:41Z",
        slot_at="2026-11-16T12:00:00Z",
        started_by="schedule",
        result="All green.",
        tokens=1834,
        profile="claude",
        escalated_from=None,
        failure=None,
        skipped=None,
    )

    id: str
    conversation_id: str
    kind: RunKind
    status: RunStatus
    started_at: datetime
    ended_at: datetime | None
    slot_at: datetime | None = Field(description="The time in the schedule that it was due.")
    started_by: StartedBy | None = Field(
        description="What started it: an item of the inbox, its schedule, the `start` of work that"
        " was to begin at once, a `retry`, or the `continuation` of unfinished work. Null: unknown."
    )
    result: str | None = Field(description="A summary: the result as text, or else the message.")
    tokens: int
    profile: str | None
    escalated_from: str | None = Field(description="The profile that failed before.")
    failure: RunFailureOut | None
    skipped: SkippedSlotsOut | None

    @classmethod
    def of(cls, run: Run, **more: Any) -> Self:
        return cls(
            id=run.id,
            conversation_id=run.conversation_id,
            kind=run.kind,
            status=run.status,
            started_at=run.started_at,
            ended_at=run.ended_at,
            slot_at=run.slot_at,
            started_by=run.started_by,
            result=run.result,
            tokens=run.tokens,
            profile=run.profile,
            escalated_from=run.escalated_from,
            failure=RunFailureOut.of(run.failure),
            skipped=SkippedSlotsOut.of(run.skipped),
            **more,
        )


class ToolCallOut(BaseModel):
    id: str
    server: str
    tool: str
    arguments: Mapping[str, Any]
    read_only: bool
    state: str = Field(description="`started`, `done`, or `unknown`: it may have taken effect.")
    failed: bool
    result: str | None
    grant_id: str | None = Field(description="The single-use grant that it consumed.")
    started_at: datetime
    ended_at: datetime | None
    files: Sequence[FileReferenceOut] = Field(description="The files that its result names.")

    @classmethod
    def of(cls, call: ToolCallRow) -> Self:
        return cls.model_validate(call, from_attributes=True)


class CallSummaryOut(BaseModel):
    """A tool call without its result."""

    model_config = example(
        id="t_0123456789abcdefghjkmnpqrs",
        tool="run_command",
        summary="gh run list --branch main",
        state="started",
        failed=False,
        started_at="2026-11-16T12:00:12Z",
        ended_at=None,
    )

    id: str
    tool: str
    summary: str = Field(description="Its arguments in one line, shortened and without secrets.")
    state: str = Field(description="`started`, `done`, or `unknown`: it may have taken effect.")
    failed: bool
    started_at: datetime
    ended_at: datetime | None

    @classmethod
    def of(cls, call: CallSummary) -> Self:
        return cls.model_validate(call, from_attributes=True)


class RunningOut(BaseModel):
    """A run in progress."""

    run_id: str
    kind: RunKind
    started_at: datetime
    activity: Activity
    doing: str = Field(description="What it is doing, in one line.")
    call: CallSummaryOut | None = Field(description="The tool call in progress, else the last one.")
    calls: int = Field(description="The number of tool calls so far.")

    @classmethod
    def of(cls, running: RunActivity | None) -> Self | None:
        return None if running is None else cls.model_validate(running, from_attributes=True)


RunningField = Annotated[
    RunningOut | None, Field(description="Its run in progress; null: it does not run now.")
]


class RunListItemOut(RunOut):
    """A run in a list of all conversations."""

    title: str = Field(description="The title of its conversation.")
    running: RunningField
    progress: ProgressOut | None = Field(description="What it says that it is doing.")
    worked_seconds: float = Field(description="How long it has worked, without its waits.")
    spent: AmountOut
    waits_for: str | None = Field(description="Why it is queued, in a sentence.")
    resumes_at: datetime | None = Field(
        description="When a queued run goes on at the earliest; null: when something lets it."
    )

    @classmethod
    def of_listed(cls, listed: run_pages.ListedRun) -> Self:
        row = listed.row
        return cls.of(
            row.run,
            title=row.title,
            running=RunningOut.of(row.running),
            progress=ProgressOut.of(listed.progress),
            worked_seconds=listed.worked.total_seconds(),
            spent=AmountOut.of(listed.spent),
            waits_for=listed.waits_for,
            resumes_at=row.resumes_at,
        )
