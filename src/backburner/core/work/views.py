"""Conversations as tasks and as jobs. Views are derived from stored facts, never stored."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.core.conversation import (
    HARMLESS_PAUSES,
    PASSING_PAUSES,
    Conversation,
    EndedAs,
    Kind,
    OnRepeatedFailure,
    PauseReason,
    Status,
    may_contain_outside_text,
)
from backburner.core.ids import ConversationId, MessageId, RunId
from backburner.core.question import Purpose
from backburner.core.run import Progress
from backburner.core.schedule import Event, Schedule, is_recurring
from backburner.core.work.activity import RunActivity


class TaskStatus(StrEnum):
    PROPOSED = "proposed"
    ACTIVE = "active"
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"


class TaskKind(StrEnum):
    SCHEDULED = "scheduled"
    EVENT = "event"
    ONESHOT = "oneshot"


class JobStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    RESUMED = "resumed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """The facts of a task that are not fields of its conversation."""

    description: str
    prompt: str
    kind: TaskKind
    status: TaskStatus
    needs_you: bool
    event_source: str | None
    event_config: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSummary:
    """A summary of the runs of a job."""

    #: Of the last run that ended.
    message: str | None = None
    result: str | None = None
    result_json: str | None = None
    failure: str | None = None
    #: The number of tool calls, and the last few tools, newest first.
    calls: int = 0
    recent_tools: tuple[str, ...] = ()
    #: What its run in progress is doing, if it has said so.
    progress: Progress | None = None
    #: The last sign of activity.
    updated_at: datetime | None = None
    #: The run in progress.
    running: RunActivity | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    id: ConversationId
    description: str
    prompt: str
    agent: str | None
    #: Where it works; None: in the private workspace.
    folder: str | None
    #: The names of the connections that it may use.
    connections: tuple[str, ...] | None
    #: Of each run.
    timeout: timedelta | None
    status: JobStatus
    needs_you: bool
    paused: bool
    #: The open question to the user.
    question: str | None
    parent_id: ConversationId | None
    parent_run_id: RunId | None
    parent_message_id: MessageId | None
    batch: str | None
    resume_count: int
    created_at: datetime
    completed_at: datetime | None
    retrieved_at: datetime | None
    #: Completed jobs only: the final message, and the result as JSON.
    result: str | None
    data: Any
    #: Failed jobs only.
    error: str | None
    calls: int
    recent_tools: tuple[str, ...]
    progress: Progress | None
    updated_at: datetime
    #: Its run in progress.
    running: RunActivity | None
    #: Its texts may contain outside text.
    outside: bool = False
    #: The connection that its user has to reconnect first, in words.
    waits_for: str | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it has ended, is paused, or waits for its user."""
        is_open = self.status in (JobStatus.RUNNING, JobStatus.RESUMED)
        return not is_open or self.needs_you or self.paused


#: The result of work that completed without a message.
DEFAULT_RESULT = "It is done."
UNKNOWN_ERROR = "It failed; the details are no longer available."


def task_status(conversation: Conversation) -> TaskStatus | None:
    """Return the status as a task; None if it is not a task, or was dismissed."""
    if conversation.status is Status.ARCHIVED:
        return None if conversation.ended_as is EndedAs.DISMISSED else TaskStatus.DONE
    if any(question.purpose is Purpose.PROPOSAL for question in conversation.questions):
        return TaskStatus.PROPOSED
    if conversation.questions or conversation.status is Status.BACKGROUND:
        return TaskStatus.ACTIVE
    if conversation.pause_reason is not None:
        return TaskStatus.PAUSED
    match conversation.ended_as:
        case EndedAs.COMPLETED | EndedAs.CANCELLED:
            return TaskStatus.DONE
        case EndedAs.ERROR:
            return TaskStatus.FAILED
    return None


def continues_after_failures(work: Conversation) -> bool:
    """Return whether repeated failures neither pause nor end the work."""
    repeats = work.schedule is not None and is_recurring(work.schedule)
    return repeats and work.on_repeated_failure is OnRepeatedFailure.NOTIFY


def job_status(conversation: Conversation) -> JobStatus | None:
    """Return the status as a job; None if it is not a job."""
    if conversation.kind is not Kind.JOB:
        return None
    ended = {
        EndedAs.COMPLETED: JobStatus.COMPLETED,
        EndedAs.ERROR: JobStatus.ERROR,
        EndedAs.CANCELLED: JobStatus.CANCELLED,
        EndedAs.DISMISSED: JobStatus.CANCELLED,
    }
    if conversation.status is Status.ARCHIVED:
        return ended.get(conversation.ended_as, JobStatus.CANCELLED)  # type: ignore[arg-type]
    if conversation.questions or conversation.status is Status.BACKGROUND:
        return JobStatus.RESUMED if conversation.resuming else JobStatus.RUNNING
    if conversation.pause_reason in (PauseReason.FAILURES, PauseReason.CRASHES):
        return JobStatus.ERROR
    if conversation.pause_reason is not None:
        return JobStatus.RUNNING
    return None if conversation.ended_as is None else ended[conversation.ended_as]


def is_listed_as_task(conversation: Conversation) -> bool:
    """Return whether the task list shows it: tasks, and chats that have a schedule."""
    is_scheduled_chat = conversation.kind is Kind.CHAT and conversation.schedule is not None
    is_task = conversation.kind is Kind.TASK or is_scheduled_chat
    return is_task and task_status(conversation) is not None


def counts_as_active(conversation: Conversation) -> bool:
    """Return whether it counts towards the limit on active tasks.

    Work that is paused and resumes by itself does; a proposal does not.
    """
    is_task = conversation.kind in (Kind.TASK, Kind.CHAT) and conversation.schedule is not None
    continues = conversation.pause_reason in (None, *PASSING_PAUSES)
    return is_task and continues and task_status(conversation) is not TaskStatus.PROPOSED


def task_view(conversation: Conversation) -> TaskView | None:
    status = task_status(conversation)
    if status is None:
        return None
    context, schedule = conversation.state.context, conversation.schedule
    event = schedule if isinstance(schedule, Event) else None
    return TaskView(
        description=str(context.get("description", "")),
        prompt=str(context.get("prompt", "")),
        kind=task_kind(schedule),
        status=status,
        needs_you=bool(conversation.questions),
        event_source=event.source if event else None,
        event_config=event.config if event else None,
    )


def job_view(conversation: Conversation, work: WorkSummary | None = None) -> JobView | None:
    status = job_status(conversation)
    if status is None:
        return None
    context, question = conversation.state.context, conversation.pending_question
    is_done = work is not None and status is JobStatus.COMPLETED
    has_failed = work is not None and status is JobStatus.ERROR
    work = work or WorkSummary()
    return JobView(
        id=conversation.id,
        description=conversation.title,
        prompt=str(context.get("prompt", "")),
        agent=conversation.agent or conversation.requested_profile,
        folder=conversation.folder_path,
        connections=conversation.connections,
        timeout=conversation.run_timeout,
        status=status,
        needs_you=bool(conversation.questions),
        paused=conversation.pause_reason in HARMLESS_PAUSES,
        question=None if question is None else question.prompt,
        parent_id=conversation.parent_id,
        parent_run_id=conversation.parent_run_id,
        parent_message_id=conversation.parent_message_id,
        batch=conversation.batch,
        resume_count=conversation.resume_count,
        created_at=conversation.created_at,
        completed_at=conversation.ended_at,
        retrieved_at=conversation.retrieved_at,
        result=(work.message or work.result or DEFAULT_RESULT) if is_done else None,
        data=json.loads(work.result_json) if is_done and work.result_json is not None else None,
        error=(work.failure or UNKNOWN_ERROR) if has_failed else None,
        calls=work.calls,
        recent_tools=work.recent_tools,
        progress=work.progress,
        updated_at=work.updated_at or conversation.ended_at or conversation.created_at,
        running=work.running,
        outside=may_contain_outside_text(conversation),
    )


def task_kind(schedule: Schedule | None) -> TaskKind:
    """Return the kind of a task with this schedule."""
    if isinstance(schedule, Event):
        return TaskKind.EVENT
    return TaskKind.SCHEDULED if schedule and is_recurring(schedule) else TaskKind.ONESHOT
