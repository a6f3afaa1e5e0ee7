"""A task as it is shown, and what its preview and its test run say."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.actions.browse import DisplayContext
from backburner.actions.deps import Deps
from backburner.actions.work.preview import TaskPreview
from backburner.api.schemas.base import example
from backburner.api.schemas.conversation import PlaceOut, next_times
from backburner.api.schemas.shown import QuestionOut
from backburner.core.conversation import Author, Conversation, Notify
from backburner.core.errors import NotFound
from backburner.core.schedule import After
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json
from backburner.core.work.estimate import Estimate
from backburner.core.work.views import TaskKind, TaskStatus, TaskView, task_view
from backburner.ports import ConversationRow

_WHICH = "c_0123456789abcdefghjkmnpqrs"
_NOON = "2026-11-16T12:00:00Z"
_SCHEDULE = {
    "type": "interval",
    "every": 1800,
    "anchor": "2026-11-16T12:00:00+00:00",
    "catch_up": "once",
}


class TaskItem(BaseModel):
    """Standing work: what, when, and where it reports."""

    model_config = example(
        id=_WHICH,
        name="watch-ci-main",
        description="Monitor CI pipeline for main branch",
        prompt="Look whether CI on main is green.",
        kind="scheduled",
        status="active",
        needs_you=False,
        schedule=_SCHEDULE,
        schedule_in_words="every 30 minutes",
        after=None,
        event_source=None,
        event_config=None,
        next_run_at=_NOON,
        next_times=[_NOON, "2026-11-16T12:30:00Z", "2026-11-16T13:00:00Z"],
        last_run_at=None,
        run_count=0,
        max_runs=None,
        run_timeout=None,
        notify="on_change",
        last_result_hash=None,
        tools=None,
        reports_to=[{"channel": "discord", "target": "42"}],
        profile="claude",
        parent_id=None,
        questions=[],
        created_by="user",
        created_at=_NOON,
        updated_at=_NOON,
    )

    id: str
    name: str
    description: str
    prompt: str
    kind: TaskKind
    status: TaskStatus
    needs_you: bool
    schedule: Mapping[str, Any] | None
    schedule_in_words: str | None
    after: str | None = Field(description="The id of what it comes after.")
    event_source: str | None
    event_config: Mapping[str, Any] | None
    next_run_at: datetime | None
    next_times: Sequence[datetime] = Field(description="The next three times, if nothing happens.")
    last_run_at: datetime | None
    run_count: int
    max_runs: int | None = Field(description="It ends after so many; null: never.")
    run_timeout: float | None = Field(description="In seconds; null: the usual.")
    notify: Notify
    last_result_hash: str | None
    tools: Sequence[str] | None = Field(description="What it is restricted to; null: nothing.")
    reports_to: Sequence[PlaceOut]
    profile: str = Field(description="The profile that it works under.")
    parent_id: str | None = Field(description="The conversation it was made in.")
    questions: Sequence[QuestionOut] = Field(description="Open ones; a proposal's is among them.")
    created_by: Author
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, seen: ConversationRow, here: DisplayContext, deps: Deps) -> Self:
        found = seen.conversation
        schedule = found.schedule
        return cls(
            **_facts(view_of(found)),
            schedule=None if schedule is None else to_json(schedule),
            schedule_in_words=None if schedule is None else describe(schedule, zone=here.zone),
            after=schedule.conversation if isinstance(schedule, After) else None,
            next_times=next_times(found),
            run_timeout=found.run_timeout.total_seconds() if found.run_timeout else None,
            reports_to=places(found),
            profile=found.profile or deps.default_profile,
            parent_id=found.parent_id,
            questions=[QuestionOut.of(asked, found.id) for asked in found.questions],
            updated_at=seen.updated_at,
        )


class CostOut(BaseModel):
    """What a run has cost on average, and what that makes in thirty days."""

    based_on: str = Field(description="Which runs this was learned from.")
    tokens_per_run: int
    usd_per_run: float | None = Field(description="Null: the model has no price.")
    runs_per_month: int | None = Field(description="Null: something else starts it.")
    tokens_per_month: int | None
    usd_per_month: float | None

    @classmethod
    def of(cls, cost: Estimate | None, profile: str) -> Self | None:
        if cost is None:
            return None
        month = cost.per_month
        runs = "1 run" if cost.runs == 1 else f"{cost.runs} runs"
        return cls(
            based_on=f"the last {runs} of its own"
            if cost.own
            else f"the last {runs} of background work under {profile}",
            tokens_per_run=cost.per_run.tokens,
            usd_per_run=cost.per_run.micros / 1_000_000 if cost.priced else None,
            runs_per_month=cost.runs_per_month,
            tokens_per_month=None if month is None else month.tokens,
            usd_per_month=month.micros / 1_000_000 if month is not None and cost.priced else None,
        )


class TaskPreviewOut(BaseModel):
    model_config = example(
        id=_WHICH,
        name="watch-ci-main",
        status="proposed",
        prompt="Look whether CI on main is green.",
        schedule_in_words="every 30 minutes",
        zone="Europe/Berlin",
        next_times=[_NOON],
        next_times_in_words=["Mon 16 Nov 2026, 13:00 CET"],
        tools=["run_command"],
        reports_to=[],
        notify="on_change",
        max_runs=None,
        profile="claude",
        cost={
            "based_on": "the last 4 runs of its own",
            "tokens_per_run": 1834,
            "usd_per_run": 0.0121,
            "runs_per_month": 1440,
            "tokens_per_month": 2640960,
            "usd_per_month": 17.42,
        },
    )

    id: str
    name: str
    status: TaskStatus
    prompt: str
    schedule_in_words: str | None
    zone: str
    next_times: Sequence[datetime] = Field(description="The next five times.")
    next_times_in_words: Sequence[str]
    tools: Sequence[str] | None = Field(description="What it is restricted to; null: nothing.")
    reports_to: Sequence[PlaceOut]
    notify: Notify
    max_runs: int | None
    profile: str
    cost: CostOut | None = Field(description="Null: nothing like it has run, so nobody knows.")

    @classmethod
    def of(cls, seen: TaskPreview) -> Self:
        found, view = seen.task, view_of(seen.task)
        schedule = found.schedule
        return cls(
            id=view.id,
            name=view.name,
            status=view.status,
            prompt=view.prompt,
            schedule_in_words=None if schedule is None else describe(schedule, zone=seen.zone),
            zone=seen.zone,
            next_times=seen.times,
            next_times_in_words=describe_times(seen.times, zone=seen.zone),
            tools=view.tools,
            reports_to=places(found),
            notify=view.notify,
            max_runs=view.max_runs,
            profile=seen.profile,
            cost=CostOut.of(seen.cost, seen.profile),
        )


class TriedOut(BaseModel):
    """A run to see what comes of a task; its result is written down in the task."""

    model_config = example(conversation_id=_WHICH, task_id="c_1123456789abcdefghjkmnpqrs")

    conversation_id: str = Field(description="The job that does it.")
    task_id: str


def view_of(found: Conversation) -> TaskView:
    view = task_view(found)
    if view is None:
        raise NotFound
    return view


def places(found: Conversation) -> list[PlaceOut]:
    return [PlaceOut(channel=place.channel, target=place.target) for place in found.reports_to]


def _facts(view: TaskView) -> dict[str, Any]:
    return {name: getattr(view, name) for name in _PLAIN}


#: Fields that are shown under the name and with the value that they have.
_PLAIN = (
    *("id", "name", "description", "prompt", "kind", "status", "needs_you", "event_source"),
    *("event_config", "next_run_at", "last_run_at", "run_count", "max_runs", "notify"),
    *("last_result_hash", "tools", "created_by", "created_at"),
)
