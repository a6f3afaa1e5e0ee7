"""A conversation as it is shown: with schedule and times, state, questions and both views."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, Self

from pydantic import BaseModel, Field

from backburner.actions.browse import DisplayContext
from backburner.actions.deps import Deps
from backburner.api.schemas.base import example
from backburner.api.schemas.shown import QuestionOut
from backburner.core import schedule as schedules
from backburner.core.conversation import (
    Author,
    Conversation,
    EndedAs,
    Kind,
    Notify,
    PauseReason,
    Status,
)
from backburner.core.schedule.describe import describe, describe_times
from backburner.core.schedule.serialize import to_json
from backburner.core.work.views import JobStatus, TaskKind, TaskStatus, job_view, task_view
from backburner.ports import ConversationRow

_WHICH = "c_0123456789abcdefghjkmnpqrs"
_EXAMPLE: dict[str, Any] = {
    "id": _WHICH,
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
}


class SessionOut(BaseModel):
    engine: str = Field(description="The profile that it means something to.")
    id: str


class TaskOut(BaseModel):
    """The conversation seen as standing work."""

    status: TaskStatus
    kind: TaskKind
    needs_you: bool
    description: str = ""
    prompt: str = ""
    event_source: str | None = None
    event_config: Mapping[str, Any] | None = None


class JobOut(BaseModel):
    """The conversation seen as work that another one handed out."""

    status: JobStatus
    needs_you: bool
    paused: bool
    completed_at: datetime | None
    retrieved_at: datetime | None


class PlaceOut(BaseModel):
    channel: str
    target: str


class ConversationItem(BaseModel):
    """A conversation in a list: everything but what its work knows."""

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
    next_times: Sequence[datetime] = Field(description="The next three times, if nothing happens.")
    pause_reason: PauseReason | None
    ended_as: EndedAs | None
    ended_at: datetime | None
    questions: Sequence[QuestionOut] = Field(description="Open ones, the oldest first.")
    profile: str = Field(description="The profile that it works under.")
    session: SessionOut | None = Field(description="The agent's own memory of it.")
    claude_session_id: str | None = Field(description="The session's id where it is Claude's.")
    notify: Notify
    run_count: int
    max_runs: int | None
    last_run_at: datetime | None
    failures: int = Field(description="In a row.")
    crashes: int = Field(description="In a row.")
    resume_count: int
    task: TaskOut | None
    job: JobOut | None

    @classmethod
    def of(cls, seen: ConversationRow, here: DisplayContext, deps: Deps) -> Self:
        return cls(**_facts(seen.conversation, here, deps), updated_at=seen.updated_at)


class StateOut(BaseModel):
    """What the work is about and how far it has come."""

    context: Mapping[str, Any]
    step: str
    data: Mapping[str, Any]
    pending_question: QuestionOut | None = Field(description="The question that is shown.")


class ConversationOut(ConversationItem):
    model_config = example(
        **_EXAMPLE,
        next_times_in_words=["Tue 17 Nov 2026, 09:00 CET"],
        state={
            "context": {"prompt": "Look whether CI on main is green."},
            "step": "At the beginning.",
            "data": {},
            "pending_question": None,
        },
        tools=None,
        reports_to=[],
        last_result_hash=None,
        run_timeout=None,
    )

    next_times_in_words: Sequence[str]
    state: StateOut
    tools: Sequence[str] | None = Field(description="What it is restricted to; null: nothing.")
    reports_to: Sequence[PlaceOut]
    last_result_hash: str | None
    run_timeout: float | None = Field(description="In seconds; null: the usual.")

    @classmethod
    def of(cls, seen: ConversationRow, here: DisplayContext, deps: Deps) -> Self:
        found = seen.conversation
        facts = _facts(found, here, deps)
        return cls(
            **facts,
            updated_at=seen.updated_at,
            next_times_in_words=describe_times(facts["next_times"], zone=here.zone),
            state=StateOut(
                context=found.state.context,
                step=found.state.step,
                data=found.state.data,
                pending_question=facts["questions"][0] if facts["questions"] else None,
            ),
            tools=found.tools,
            reports_to=[
                PlaceOut(channel=place.channel, target=place.target) for place in found.reports_to
            ],
            last_result_hash=found.last_result_hash,
            run_timeout=found.run_timeout.total_seconds() if found.run_timeout else None,
        )


def _facts(found: Conversation, here: DisplayContext, deps: Deps) -> dict[str, Any]:
    session, schedule = found.session, found.schedule
    is_claude = session is not None and session.profile in deps.claude
    return {
        **{name: getattr(found, name) for name in _PLAIN},
        "schedule": schedule and to_json(schedule),
        "schedule_in_words": schedule and describe(schedule, zone=here.zone),
        "next_times": next_times(found),
        "questions": [QuestionOut.of(asked, found.id) for asked in found.questions],
        "profile": found.profile or deps.default_profile,
        "session": session and SessionOut(engine=session.profile, id=session.id),
        "claude_session_id": session.id if session is not None and is_claude else None,
        "task": _task(found),
        "job": _job(found),
    }


def next_times(found: Conversation, count: int = 3) -> tuple[datetime, ...]:
    """List when it would run next, beginning with what is settled: that may be a retry."""
    if found.schedule is None or found.next_run_at is None:
        return ()
    later = schedules.slots(found.schedule, after=found.next_run_at)
    return (found.next_run_at, *islice(later, count - 1))


def _task(found: Conversation) -> TaskOut | None:
    view = task_view(found)
    return None if view is None else TaskOut.model_validate(view, from_attributes=True)


def _job(found: Conversation) -> JobOut | None:
    view = job_view(found)
    return None if view is None else JobOut.model_validate(view, from_attributes=True)


#: Fields that are shown under the name and with the value that they have.
_PLAIN = (
    *("id", "user_id", "kind", "status", "title", "created_by", "created_at", "parent_id", "batch"),
    *("next_run_at", "pause_reason", "ended_as", "ended_at", "notify", "run_count", "max_runs"),
    *("last_run_at", "failures", "crashes", "resume_count"),
)
