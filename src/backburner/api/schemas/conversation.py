"""Conversations, with their schedule, state, open questions and both views (task and job)."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from backburner.actions.browse import DisplayContext
from backburner.actions.deps import Deps
from backburner.actions.models.changes import ModelChoice
from backburner.actions.schedules import Timing
from backburner.actions.spending import effective_allowances
from backburner.actions.work.tasks import NewTask
from backburner.api.schemas.base import RequestBody, example
from backburner.api.schemas.question import QuestionOut
from backburner.api.schemas.run import RunningField, RunningOut
from backburner.api.schemas.spending import AllowanceStatusOut, AmountOut
from backburner.api.schemas.work.connection import ConnectionNames, ConnectionNamesOut
from backburner.api.schemas.work.file import Attachments
from backburner.api.schemas.work.folder import FolderName
from backburner.core import schedule as schedules
from backburner.core.allowance import AllowanceScope, AllowanceState
from backburner.core.conversation import (
    MAX_TITLE_CHARS,
    Author,
    Conversation,
    EndedAs,
    Kind,
    MessageRole,
    Notify,
    OnRepeatedFailure,
    PauseReason,
    Status,
    Use,
    make_title,
)
from backburner.core.errors import BadRequest
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json
from backburner.core.work.list_states import ListState, list_states
from backburner.core.work.summary import Summary
from backburner.core.work.timeouts import MAX_TIMEOUT, MIN_TIMEOUT
from backburner.core.work.views import JobStatus, TaskKind, TaskStatus, job_view, task_view
from backburner.ports import Children, ConversationRow, Hit, SpendingState

PROFILE_CHANGE = "The profile to use from the next run on; null: the default profile."
MAX_DESCRIPTION_CHARS = 2_000

MaxRuns = Annotated[int, Field(ge=1, le=1_000_000)]
RunTimeout = Annotated[float, Field(ge=MIN_TIMEOUT.total_seconds(), le=MAX_TIMEOUT.total_seconds())]
ToolNames = Annotated[list[str], Field(max_length=200)]

_EXAMPLE: dict[str, Any] = {
    "id": "c_0123456789abcdefghjkmnpqrs",
    "user_id": "u_0123456789abcdefghjkmnpqrs",
    "kind": "task",
    "status": "background",
    "title": "Watch CI",
    "created_by": "user",
    "created_at": "2026-11-16T12:00:00Z",
    "updated_at": "2026-11-16T12:00:00Z",
    "parent_id": None,
    "batch": None,
    "schedule": {
        "type": "cron",
        "cron_expression": "0 9 * * 1-5",
        "timezone": "Europe/Berlin",
        "catch_up": "once",
    },
    "schedule_in_words": "at 09:00 on every day-of-week from Monday through Friday (Europe/Berlin)",
    "next_run_at": "2026-11-17T08:00:00Z",
    "next_times": ["2026-11-17T08:00:00Z", "2026-11-18T08:00:00Z", "2026-11-19T08:00:00Z"],
    "pause_reason": None,
    "ended_as": None,
    "ended_at": None,
    "questions": [],
    "profile": "claude",
    "folder": "/srv/ada/app",
    "connections": ["mail"],
    "warnings": [],
    "waits_for": None,
    "session": None,
    "claude_session_id": None,
    "notify": "on_change",
    "run_count": 0,
    "max_runs": None,
    "last_run_at": None,
    "failures": 0,
    "crashes": 0,
    "resume_count": 0,
    "task": {"status": "active", "kind": "scheduled", "needs_you": False},
    "job": None,
    "running": None,
    "children": {"count": 0, "open": []},
    "unread": True,
    "unread_count": 1,
    "pinned_at": None,
    "hits": [],
    "spent": {"micros": 12_000, "tokens": 1834},
    "allowance": {
        "scope": "conversation",
        "micros": 2_000_000,
        "tokens": None,
        "spent": {"micros": 12_000, "tokens": 1834},
        "is_used_up": False,
    },
    "states": ["scheduled"],
    "last_message": {
        "id": "m_0123456789abcdefghjkmnpqrs",
        "role": "assistant",
        "excerpt": "All is green.",
        "created_at": "2026-11-16T12:00:00Z",
    },
}


FailurePolicy = Annotated[
    OnRepeatedFailure,
    Field(description="`pause` after two failures in a row, or `notify` once after three."),
]
WaitsFor = Annotated[
    str | None,
    Field(
        description="Why work does not run: its folder is in use, or on a machine that no worker"
        " runs on; or which connection its user has to reconnect."
    ),
]
UsesOut = Annotated[
    Sequence[Use] | None,
    Field(description="What of yours it may use, if a token handed it out; null: everything."),
]


class NewConversationBody(RequestBody):
    """A chat; or, with `what` and a time, a task."""

    model_config = example(what="Check whether CI on main is green.", when="every weekday at 9")

    message: str | None = Field(default=None, description="The first message of a chat.")
    attachments: Attachments = Field(default_factory=list)
    title: str = Field(default="", max_length=MAX_TITLE_CHARS)
    profile: str | None = Field(default=None, description="Null: the default profile.")
    what: str | None = Field(default=None, description="The prompt of each run.")
    when: str | None = Field(default=None, description="The schedule as a phrase.")
    schedule: dict[str, Any] | None = Field(default=None, description="The schedule in full.")
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    notify: Notify = Notify.ON_CHANGE
    max_runs: MaxRuns | None = None
    run_timeout: RunTimeout | None = Field(default=None, description="In seconds.")
    folder: FolderName = None
    connections: ConnectionNames = None
    tools: ToolNames | None = Field(
        default=None, description="The only tools it may use; null: all."
    )
    on_repeated_failure: FailurePolicy | None = Field(
        default=None, description="Null: `pause` for a task, `notify` for a chat."
    )

    @model_validator(mode="after")
    def _check_choice(self) -> Self:
        if (self.what is None) != (self.when is None and self.schedule is None):
            raise BadRequest(
                "A task needs a prompt and a time.",
                hint="Send `what`, and `when` or `schedule`; for a chat send neither.",
            )
        if self.what is not None and self.message is not None:
            raise BadRequest("A task starts with `what`, a chat with `message`.")
        if self.attachments and self.message is None:
            raise BadRequest("Files belong to a message.", hint="Send `message`; it may be empty.")
        if self.when is not None and self.schedule is not None:
            raise BadRequest("`when` and `schedule` exclude each other.", hint="Send one of them.")
        return self

    def task(self) -> NewTask:
        prompt = self.what or ""
        return NewTask(
            name=self.title or make_title(prompt),
            prompt=prompt,
            timing=Timing(self.when, self.schedule),
            description=self.description,
            notify=self.notify,
            max_runs=self.max_runs,
            run_timeout=None if self.run_timeout is None else timedelta(seconds=self.run_timeout),
            folder=self.folder,
            connections=self.connections,
            tools=self.tools,
            profile=self.profile,
            on_repeated_failure=self.on_repeated_failure or OnRepeatedFailure.PAUSE,
        )


class ConversationChangesBody(RequestBody):
    """Fields that are left out stay unchanged."""

    model_config = example(title="Watch CI", notify="always")

    title: str | None = Field(default=None, max_length=MAX_TITLE_CHARS)
    notify: Notify | None = None
    on_repeated_failure: FailurePolicy | None = None
    profile: str | None = Field(default=None, description=PROFILE_CHANGE)
    pinned: bool | None = Field(default=None, description="Whether it stands above the others.")

    @property
    def model(self) -> ModelChoice | None:
        return ModelChoice(self.profile) if "profile" in self.model_fields_set else None


class SeenConversationBody(RequestBody):
    model_config = example(up_to="m_0123456789abcdefghjkmnpqrs")

    up_to: str | None = Field(
        default=None, description="The last message that was seen; null: everything was."
    )


class ChosenConnectionsBody(RequestBody):
    model_config = example(names=["mail"])

    names: ConnectionNames


class AgentSessionOut(BaseModel):
    engine: str = Field(description="The profile that the session belongs to.")
    id: str


class CopiedMessageOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    text: str


class SessionSummaryOut(BaseModel):
    model_config = example(
        text="Goal: Watch CI on main.\nNext step: Look at the last build.",
        messages=[{"id": "m_0123456789abcdefghjkmnpqrs", "text": "Never restart a build."}],
        outside=False,
        created_at="2026-11-16T12:00:00Z",
    )

    text: str = Field(description="The summary, as the agent wrote it.")
    messages: Sequence[CopiedMessageOut] = Field(
        description="Messages of yours that still bind, word by word."
    )
    outside: bool = Field(description="The text may contain outside text.")
    created_at: datetime

    @classmethod
    def of(cls, summary: Summary) -> Self:
        return cls.model_validate(summary, from_attributes=True)


class TaskViewOut(BaseModel):
    """The conversation as a task."""

    status: TaskStatus
    kind: TaskKind
    needs_you: bool
    description: str = ""
    prompt: str = ""
    event_source: str | None = None
    event_config: Mapping[str, Any] | None = None


class JobViewOut(BaseModel):
    """The conversation as a job of its parent."""

    status: JobStatus
    needs_you: bool
    paused: bool
    completed_at: datetime | None
    retrieved_at: datetime | None


class ChildOut(BaseModel):
    """A job or task of a conversation."""

    id: str
    kind: Kind
    status: Status
    title: str
    pause_reason: PauseReason | None
    next_run_at: datetime | None
    running: RunningField

    @classmethod
    def of(cls, row: ConversationRow) -> Self:
        child = row.conversation
        return cls(
            id=child.id,
            kind=child.kind,
            status=child.status,
            title=child.title,
            pause_reason=child.pause_reason,
            next_run_at=child.next_run_at,
            running=RunningOut.of(row.running),
        )


class ChildrenOut(BaseModel):
    """The jobs and tasks of a conversation. `parent_id` as a filter lists all of them."""

    count: int = Field(description="How many there are; archived ones are not counted.")
    open: Sequence[ChildOut] = Field(description="The newest of those with work to do.")

    @classmethod
    def of(cls, children: Children) -> Self:
        return cls(count=children.count, open=[ChildOut.of(row) for row in children.open])


class LastMessageOut(BaseModel):
    """The last message of a conversation, shortened."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    role: MessageRole
    excerpt: str = Field(description="Its beginning as plain text, in one line.")
    created_at: datetime


class HitPartOut(BaseModel):
    text: str
    is_hit: bool = Field(description="It is one of the words.")


class HitOut(BaseModel):
    """Where a search found its words, with an excerpt in parts."""

    found_in: Literal["title", "message"]
    message_id: str | None
    role: MessageRole | None
    created_at: datetime | None
    parts: Sequence[HitPartOut]

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls(
            found_in="title" if hit.message_id is None else "message",
            message_id=hit.message_id,
            role=hit.role,
            created_at=hit.created_at,
            parts=[HitPartOut(text=part.text, is_hit=part.is_hit) for part in hit.parts],
        )


class DestinationOut(BaseModel):
    channel: str
    target: str


class ConversationSummaryOut(BaseModel):
    """A conversation in a list, without its state and details of its work."""

    model_config = example(**_EXAMPLE)

    id: str
    user_id: str
    kind: Kind
    status: Status
    title: str
    created_by: Author
    created_at: datetime
    updated_at: datetime
    parent_id: str | None
    batch: str | None
    schedule: Mapping[str, Any] | None
    schedule_in_words: str | None
    next_run_at: datetime | None
    next_times: Sequence[datetime] = Field(description="The next three times.")
    pause_reason: PauseReason | None
    ended_as: EndedAs | None
    ended_at: datetime | None
    questions: Sequence[QuestionOut] = Field(description="Open questions, oldest first.")
    profile: str = Field(description="The profile that its runs use.")
    folder: str | None = Field(description="Where it works; null: the private workspace.")
    connections: ConnectionNamesOut
    warnings: Sequence[str] = Field(
        description="What becomes of it because it names connections that it cannot use now."
    )
    waits_for: WaitsFor
    session: AgentSessionOut | None = Field(description="The agent's session.")
    claude_session_id: str | None = Field(description="The id of the session, if it is Claude's.")
    notify: Notify
    run_count: int
    max_runs: int | None
    last_run_at: datetime | None
    failures: int = Field(description="Consecutive failures.")
    crashes: int = Field(description="Consecutive crashes.")
    resume_count: int
    task: TaskViewOut | None
    job: JobViewOut | None
    running: RunningField
    children: ChildrenOut
    unread: bool = Field(description="There is something in it that you have not seen.")
    unread_count: int = Field(
        description="How many messages you have not seen, up to a hundred; or else how many open"
        " questions."
    )
    last_message: LastMessageOut | None
    pinned_at: datetime | None = Field(description="Null: it is not pinned.")
    spent: AmountOut | None = Field(
        description="With all jobs and tasks below it; null for those, which count to their root."
    )
    allowance: AllowanceStatusOut | None = Field(
        description="What may be spent in it; null: there is no limit, or that of its root counts."
    )
    states: Sequence[ListState] = Field(
        description="Its states as a person thinks of them; lists filter by `state`."
    )
    hits: Sequence[HitOut] = Field(
        description="Of a search: the title, if it has any of the words, and the newest three"
        " messages that were found."
    )

    @classmethod
    def of(cls, row: ConversationRow, display: DisplayContext, deps: Deps) -> Self:
        return cls(**_common_fields(row, display, deps))


class ConversationStateOut(BaseModel):
    """The state of its work."""

    context: Mapping[str, Any]
    step: str
    data: Mapping[str, Any]
    pending_question: QuestionOut | None = Field(description="The oldest open question.")


class ConversationOut(ConversationSummaryOut):
    model_config = example(
        **_EXAMPLE,
        next_times_in_words=["Tue 17 Nov 2026, 09:00 CET"],
        state={
            "context": {"prompt": "Check whether CI on main is green."},
            "step": "At the beginning.",
            "data": {},
            "pending_question": None,
        },
        tools=None,
        uses=None,
        agent=None,
        reports_to=[],
        last_result_hash=None,
        run_timeout=None,
        on_repeated_failure="notify",
    )

    next_times_in_words: Sequence[str]
    state: ConversationStateOut
    tools: Sequence[str] | None = Field(description="The only tools it may use; null: all.")
    uses: UsesOut
    agent: str | None = Field(description="The agent that was asked for, if any.")
    reports_to: Sequence[DestinationOut]
    last_result_hash: str | None
    run_timeout: float | None = Field(description="In seconds; null: the default.")
    on_repeated_failure: FailurePolicy

    @classmethod
    def of(cls, row: ConversationRow, display: DisplayContext, deps: Deps) -> Self:
        conversation = row.conversation
        common = _common_fields(row, display, deps)
        timeout = conversation.run_timeout
        return cls(
            **common,
            next_times_in_words=describe_times(common["next_times"], zone=display.zone),
            state=ConversationStateOut(
                context=conversation.state.context,
                step=conversation.state.step,
                data=conversation.state.data,
                pending_question=common["questions"][0] if common["questions"] else None,
            ),
            tools=conversation.tools,
            uses=list_uses(conversation),
            agent=conversation.agent,
            reports_to=list_destinations(conversation),
            last_result_hash=conversation.last_result_hash,
            run_timeout=timeout.total_seconds() if timeout else None,
            on_repeated_failure=conversation.on_repeated_failure,
        )


def list_uses(conversation: Conversation) -> list[Use] | None:
    return None if conversation.uses is None else sorted(conversation.uses)


def list_destinations(conversation: Conversation) -> list[DestinationOut]:
    return [
        DestinationOut(channel=place.channel, target=place.target)
        for place in conversation.reports_to
    ]


def list_next_times(conversation: Conversation, count: int = 3) -> tuple[datetime, ...]:
    """List the next times, starting with `next_run_at`, which may be a retry off the schedule.

    Work that waits for an answer has none: they are computed from the time of the answer.
    """
    waits = conversation.status is Status.WAITING_INPUT
    if conversation.schedule is None or conversation.next_run_at is None or waits:
        return ()
    later = schedules.slots(conversation.schedule, after=conversation.next_run_at)
    return (conversation.next_run_at, *islice(later, count - 1))


def _common_fields(row: ConversationRow, display: DisplayContext, deps: Deps) -> dict[str, Any]:
    conversation = row.conversation
    session, schedule = conversation.session, conversation.schedule
    task, job = task_view(conversation), job_view(conversation)
    is_claude = session is not None and session.profile in deps.claude
    last = row.facts.last_message
    return {
        **{name: getattr(conversation, name) for name in _COPIED},
        "schedule": schedule and to_json(schedule),
        "schedule_in_words": schedule and describe(schedule, zone=display.zone),
        "next_times": list_next_times(conversation),
        "questions": [
            QuestionOut.of(question, conversation.id) for question in conversation.questions
        ],
        "profile": conversation.profile or deps.default_profile,
        "folder": conversation.folder_path,
        "warnings": display.warnings.get(conversation.id, ()),
        "waits_for": display.waits.get(conversation.id),
        "session": session and AgentSessionOut(engine=session.profile, id=session.id),
        "claude_session_id": session.id if session is not None and is_claude else None,
        "task": task and TaskViewOut.model_validate(task, from_attributes=True),
        "job": job and JobViewOut.model_validate(job, from_attributes=True),
        "updated_at": row.updated_at,
        "running": RunningOut.of(row.running),
        "children": ChildrenOut.of(row.children),
        "unread": row.unseen > 0,
        "unread_count": row.unseen,
        "pinned_at": row.facts.pinned_at,
        "hits": [HitOut.of(hit) for hit in row.hits],
        **_spending_fields(row, display, deps),
        "states": sorted(list_states(conversation, is_running=row.running is not None)),
        "last_message": last and LastMessageOut.model_validate(last),
    }


def _spending_fields(row: ConversationRow, display: DisplayContext, deps: Deps) -> dict[str, Any]:
    if row.conversation.parent_id is not None:
        return {"spent": None, "allowance": None}
    facts = row.facts
    own = () if facts.own_allowance is None else (facts.own_allowance,)
    account = SpendingState({}, (), own, display.ceilings)
    shown = [
        AllowanceStatusOut.of(
            AllowanceState(limit, facts.spent), counted=True, own=own, ceilings=display.ceilings
        )
        for limit in effective_allowances(deps, account)
        if limit.scope is AllowanceScope.CONVERSATION
        and (limit.micros, limit.tokens) != (None, None)
    ]
    return {"spent": AmountOut.of(facts.spent), "allowance": shown[0] if shown else None}


#: Fields that are copied unchanged.
_COPIED = (
    *("id", "user_id", "kind", "status", "title", "created_by", "created_at", "parent_id", "batch"),
    *("next_run_at", "pause_reason", "ended_as", "ended_at", "notify", "run_count", "max_runs"),
    *("last_run_at", "failures", "crashes", "resume_count", "connections"),
)
