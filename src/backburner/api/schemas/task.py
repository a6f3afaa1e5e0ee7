"""Tasks: creating and changing them, previews and test runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, model_validator

from backburner.actions.browse import DisplayContext
from backburner.actions.deps import Deps
from backburner.actions.models.changes import ModelChoice
from backburner.actions.schedules import Timing
from backburner.actions.work.control import TaskChanges
from backburner.actions.work.preview import TaskPreview
from backburner.actions.work.tasks import NewTask
from backburner.api.schemas.base import RequestBody, example
from backburner.api.schemas.conversation import (
    MAX_DESCRIPTION_CHARS,
    PROFILE_CHANGE,
    DestinationOut,
    FailurePolicy,
    MaxRuns,
    RunTimeout,
    ToolNames,
    UsesOut,
    WaitsFor,
    list_destinations,
    list_next_times,
    list_uses,
)
from backburner.api.schemas.question import QuestionOut
from backburner.api.schemas.run import ProgressOut, RunningField, RunningOut
from backburner.api.schemas.schedule import CatchUpChoice
from backburner.api.schemas.work.connection import ConnectionNames, ConnectionNamesOut
from backburner.api.schemas.work.folder import FolderName
from backburner.core.allowance import AllowanceScope, parse_limit
from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Author,
    Conversation,
    Destination,
    Notify,
    OnRepeatedFailure,
    PauseReason,
)
from backburner.core.errors import BadRequest, NotFound
from backburner.core.ids import QuestionId
from backburner.core.schedule import After, AfterCondition
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json
from backburner.core.transitions import Terms
from backburner.core.work.estimate import Estimate
from backburner.core.work.views import TaskKind, TaskStatus, TaskView, task_view
from backburner.ports import ConversationRow

MAX_DESTINATIONS = 20
MICROS_PER_USD = 1_000_000

_ID = "c_0123456789abcdefghjkmnpqrs"
_NOON = "2026-11-16T12:00:00Z"
_SCHEDULE = {
    "type": "interval",
    "every": 1800,
    "anchor": "2026-11-16T12:00:00+00:00",
    "catch_up": "once",
}


class NewDestinationBody(RequestBody):
    channel: str = Field(max_length=100)
    target: str = Field(max_length=500)


class TaskTimesBody(RequestBody):
    """The time of the work: at most one of these."""

    interval: str | None = Field(
        default=None, max_length=200, description="Such as `30m`, `2h` or `1d`."
    )
    when: str | None = Field(default=None, max_length=200, description="A phrase, or cron.")
    after: str | None = Field(
        default=None,
        max_length=MAX_TITLE_CHARS,
        description="Run after this task: its name or id.",
    )
    after_on: AfterCondition = Field(
        default=AfterCondition.SUCCESS,
        description="`any`: also after that task failed or was cancelled.",
    )
    schedule: dict[str, Any] | None = Field(
        default=None, description="The schedule in full, or an event."
    )
    catch_up: CatchUpChoice = None

    def timing(self, kind: TaskKind | None = None) -> Timing:
        return Timing(
            self.when,
            self.schedule,
            self.interval,
            self.after,
            self.after_on,
            kind,
            catch_up=self.catch_up,
        )


class NewTaskBody(TaskTimesBody):
    model_config = example(
        name="watch-ci-main",
        prompt="Check whether CI on main is green.",
        kind="scheduled",
        interval="30m",
        notify="on_change",
    )

    name: str = Field(min_length=1, max_length=MAX_TITLE_CHARS)
    prompt: str = Field(min_length=1, description="The prompt of each run.")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    kind: TaskKind | None = Field(
        default=None, description="Has to match the time; `oneshot` without a time runs at once."
    )
    notify: Notify = Notify.ON_CHANGE
    max_runs: MaxRuns | None = None
    timeout: RunTimeout | None = Field(
        default=None, description="Of a run, in seconds; null: the default."
    )
    folder: FolderName = None
    connections: ConnectionNames = None
    tools: ToolNames | None = Field(
        default=None, description="The only tools it may use; null: all."
    )
    reports_to: list[NewDestinationBody] = Field(default=[], max_length=MAX_DESTINATIONS)
    on_repeated_failure: FailurePolicy = OnRepeatedFailure.PAUSE
    agent: str | None = Field(default=None, description="An agent or a profile.")
    profile: str | None = Field(default=None, description="Null: the default profile.")
    allowance: Annotated[str, Field(max_length=100)] | None = Field(
        default=None,
        description="What may be spent on it and its jobs, such as `2.50 USD`; null: the default."
        " It needs a credential that may approve.",
    )
    paused: bool = Field(
        default=False,
        description="Set it up without starting it: you can try it with a test run, and resume it.",
    )

    def task(self) -> NewTask:
        return NewTask(
            name=self.name,
            prompt=self.prompt,
            timing=self.timing(self.kind),
            description=self.description,
            notify=self.notify,
            max_runs=self.max_runs,
            run_timeout=_read_seconds(self.timeout),
            folder=self.folder,
            connections=self.connections,
            tools=self.tools,
            agent=self.agent,
            profile=self.profile,
            reports_to=_read_destinations(self.reports_to),
            on_repeated_failure=self.on_repeated_failure,
            allowance=None
            if self.allowance is None
            else parse_limit(self.allowance, AllowanceScope.CONVERSATION),
            paused=self.paused,
        )


class TaskChangesBody(TaskTimesBody):
    """Fields that are left out stay unchanged; null removes a limit."""

    model_config = example(interval="2h", notify="always")

    name: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    prompt: str | None = None
    description: str | None = Field(default=None, max_length=MAX_DESCRIPTION_CHARS)
    notify: Notify | None = None
    max_runs: MaxRuns | None = None
    timeout: RunTimeout | None = Field(default=None, description="Of a run, in seconds.")
    tools: ToolNames | None = None
    connections: ConnectionNames = None
    reports_to: list[NewDestinationBody] | None = Field(default=None, max_length=MAX_DESTINATIONS)
    on_repeated_failure: FailurePolicy | None = None
    profile: str | None = Field(default=None, description=PROFILE_CHANGE)

    @model_validator(mode="after")
    def _check_nulls(self) -> Self:
        for name in _NEVER_NULL:
            if name in self.model_fields_set and getattr(self, name) is None:
                raise BadRequest(f"`{name}` cannot be null.", hint="Leave it out.")
        return self

    def changes(self) -> TaskChanges:
        timing = self.timing()
        return TaskChanges(
            terms=self._change_terms,
            timing=timing if timing.is_given else None,
            model=ModelChoice(self.profile) if "profile" in self.model_fields_set else None,
        )

    def _change_terms(self, terms: Terms) -> Terms:
        changed = {
            _TERMS[name]: _READERS.get(name, _unchanged)(getattr(self, name))
            for name in self.model_fields_set & _TERMS.keys()
        }
        return replace(terms, **changed)


class ProposalAnswerBody(RequestBody):
    model_config = example(question_id="q_0123456789abcdefghjkmnpqrs")

    question_id: str | None = Field(
        default=None,
        max_length=100,
        description="The question that was answered. If the proposal has changed since, the request"
        " is refused. Left out: the current one.",
    )

    @property
    def question(self) -> QuestionId | None:
        return None if self.question_id is None else QuestionId(self.question_id)


class TaskCancellationBody(RequestBody):
    model_config = example(reason="The branch was merged.")

    reason: str = Field(default="", max_length=2_000, description="Added to the task as a message.")


class TaskOut(BaseModel):
    """A task, or a chat with background work."""

    model_config = example(
        id=_ID,
        name="watch-ci-main",
        description="Monitor CI pipeline for main branch",
        prompt="Check whether CI on main is green.",
        kind="scheduled",
        status="active",
        needs_you=False,
        pause_reason=None,
        waits_for=None,
        schedule=_SCHEDULE,
        schedule_in_words="every 30 minutes",
        after=None,
        event_source=None,
        event_config=None,
        next_run_at=_NOON,
        next_times=[_NOON, "2026-11-16T12:30:00Z", "2026-11-16T13:00:00Z"],
        last_run_at=None,
        progress=None,
        run_count=0,
        max_runs=None,
        timeout=None,
        notify="on_change",
        last_result_hash=None,
        tools=None,
        uses=None,
        agent=None,
        folder="/srv/ada/app",
        connections=["mail"],
        warnings=[],
        reports_to=[{"channel": "discord", "target": "42"}],
        on_repeated_failure="pause",
        profile="claude",
        parent_id=None,
        questions=[],
        created_by="user",
        created_at=_NOON,
        updated_at=_NOON,
        running=None,
    )

    id: str
    name: str
    description: str
    prompt: str
    kind: TaskKind
    status: TaskStatus
    needs_you: bool
    pause_reason: PauseReason | None = Field(description="Why it is paused; null: it is not.")
    waits_for: WaitsFor
    schedule: Mapping[str, Any] | None
    schedule_in_words: str | None
    after: str | None = Field(description="The id of the task that it runs after.")
    event_source: str | None
    event_config: Mapping[str, Any] | None
    next_run_at: datetime | None
    next_times: Sequence[datetime] = Field(description="The next three times.")
    last_run_at: datetime | None
    progress: ProgressOut | None = Field(
        description="What its run in progress says that it is doing."
    )
    run_count: int
    max_runs: int | None = Field(description="The task ends after this many runs; null: never.")
    timeout: float | None = Field(description="Of a run, in seconds; null: the default.")
    notify: Notify
    last_result_hash: str | None
    tools: Sequence[str] | None = Field(description="The only tools it may use; null: all.")
    uses: UsesOut
    agent: str | None = Field(description="The agent that was asked for, if any.")
    folder: str | None = Field(description="Where it works; null: the private workspace.")
    connections: ConnectionNamesOut
    warnings: Sequence[str] = Field(
        description="What becomes of it because it names connections that it cannot use now."
    )
    reports_to: Sequence[DestinationOut]
    on_repeated_failure: FailurePolicy
    profile: str = Field(description="The profile that its runs use.")
    parent_id: str | None = Field(description="The conversation that created it.")
    questions: Sequence[QuestionOut] = Field(description="Open questions, also of a proposal.")
    created_by: Author
    created_at: datetime
    updated_at: datetime
    running: RunningField

    @classmethod
    def of(cls, row: ConversationRow, display: DisplayContext, deps: Deps) -> Self:
        conversation = row.conversation
        view, schedule = _view(conversation), conversation.schedule
        timeout = conversation.run_timeout
        return cls(
            **{name: getattr(conversation, name) for name in _COPIED},
            **{field.name: getattr(view, field.name) for field in fields(view)},
            name=conversation.title,
            schedule=None if schedule is None else to_json(schedule),
            schedule_in_words=None if schedule is None else describe(schedule, zone=display.zone),
            after=schedule.conversation if isinstance(schedule, After) else None,
            next_times=list_next_times(conversation),
            waits_for=display.waits.get(conversation.id),
            timeout=timeout.total_seconds() if timeout else None,
            uses=list_uses(conversation),
            reports_to=list_destinations(conversation),
            profile=conversation.profile or deps.default_profile,
            questions=[
                QuestionOut.of(question, conversation.id) for question in conversation.questions
            ],
            folder=conversation.folder_path,
            warnings=display.warnings.get(conversation.id, ()),
            progress=ProgressOut.of(row.progress),
            updated_at=row.updated_at,
            running=RunningOut.of(row.running),
        )


class TaskCostOut(BaseModel):
    """The average cost of a run, and the projected cost of thirty days."""

    based_on: str = Field(description="The runs that the average was taken from.")
    tokens_per_run: int
    usd_per_run: float | None = Field(description="Null: the model has no price.")
    runs_per_month: int | None = Field(description="Null: it does not run by the clock.")
    tokens_per_month: int | None
    usd_per_month: float | None

    @classmethod
    def of(cls, cost: Estimate | None, profile: str) -> Self | None:
        if cost is None:
            return None
        month = cost.per_month
        runs = "1 run" if cost.runs == 1 else f"{cost.runs} runs"
        origin = "of its own" if cost.own else f"of background work under {profile}"
        return cls(
            based_on=f"the last {runs} {origin}",
            tokens_per_run=cost.per_run.tokens,
            usd_per_run=cost.per_run.micros / MICROS_PER_USD if cost.priced else None,
            runs_per_month=cost.runs_per_month,
            tokens_per_month=None if month is None else month.tokens,
            usd_per_month=month.micros / MICROS_PER_USD if month and cost.priced else None,
        )


class TaskPreviewOut(BaseModel):
    model_config = example(
        id=_ID,
        name="watch-ci-main",
        status="proposed",
        prompt="Check whether CI on main is green.",
        schedule_in_words="every 30 minutes",
        zone="Europe/Berlin",
        next_times=[_NOON],
        next_times_in_words=["Mon 16 Nov 2026, 13:00 CET"],
        tools=["run_command"],
        connections=["mail"],
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
    tools: Sequence[str] | None = Field(description="The only tools it may use; null: all.")
    connections: ConnectionNamesOut
    reports_to: Sequence[DestinationOut]
    notify: Notify
    max_runs: int | None
    profile: str
    cost: TaskCostOut | None = Field(description="Null: no similar run has been recorded.")

    @classmethod
    def of(cls, preview: TaskPreview) -> Self:
        task, view = preview.task, _view(preview.task)
        schedule = task.schedule
        return cls(
            id=task.id,
            name=task.title,
            status=view.status,
            prompt=view.prompt,
            schedule_in_words=None if schedule is None else describe(schedule, zone=preview.zone),
            zone=preview.zone,
            next_times=preview.times,
            next_times_in_words=describe_times(preview.times, zone=preview.zone),
            tools=task.tools,
            connections=task.connections,
            reports_to=list_destinations(task),
            notify=task.notify,
            max_runs=task.max_runs,
            profile=preview.profile,
            cost=TaskCostOut.of(preview.cost, preview.profile),
        )


class TaskTestRunOut(BaseModel):
    """A test run of a task; its result is added to the task."""

    model_config = example(conversation_id=_ID, task_id="c_1123456789abcdefghjkmnpqrs")

    conversation_id: str = Field(description="The job that executes it.")
    task_id: str


def _view(conversation: Conversation) -> TaskView:
    view = task_view(conversation)
    if view is None:
        raise NotFound
    return view


def _read_seconds(seconds: float | None) -> timedelta | None:
    return None if seconds is None else timedelta(seconds=seconds)


def _read_tools(tools: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if tools is None else tuple(dict.fromkeys(tools))


def _read_destinations(bodies: Sequence[NewDestinationBody]) -> tuple[Destination, ...]:
    return tuple(Destination(body.channel, body.target) for body in bodies)


def _unchanged(value: Any) -> Any:
    return value


#: Fields of the conversation that are copied unchanged.
_COPIED = (
    *("id", "next_run_at", "last_run_at", "run_count", "max_runs", "notify", "last_result_hash"),
    *(
        "pause_reason",
        "on_repeated_failure",
        "tools",
        "connections",
        "agent",
        "parent_id",
        "created_by",
        "created_at",
    ),
)
#: The field of `Terms` that each changed field becomes, and how its value is read.
_TERMS = {
    "name": "title",
    "prompt": "prompt",
    "description": "description",
    "notify": "notify",
    "max_runs": "max_runs",
    "timeout": "run_timeout",
    "tools": "tools",
    "connections": "connections",
    "reports_to": "reports_to",
    "on_repeated_failure": "on_repeated_failure",
}
#: Fields of a change that can be left out, but not removed.
_NEVER_NULL = ("name", "prompt", "description", "notify", "reports_to", "on_repeated_failure")
_READERS: dict[str, Callable[[Any], Any]] = {
    "timeout": _read_seconds,
    "tools": _read_tools,
    "connections": _read_tools,
    "reports_to": _read_destinations,
}
