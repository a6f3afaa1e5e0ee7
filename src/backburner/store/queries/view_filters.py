"""The status of conversations as jobs and tasks, in SQL: the same as `core.work.views` derives."""

from sqlalchemy import ColumnElement, and_, not_, or_, select, text

from backburner.core.conversation import EndedAs, Kind, PauseReason, Status
from backburner.core.question import Purpose
from backburner.core.work.views import JobStatus, TaskStatus
from backburner.store.tables import conversations, is_open, questions

# Written as in the condition of an index, which is not used with a parameter in its place.
is_job = conversations.c.kind == text("'job'")

_status, _ended_as = conversations.c.status, conversations.c.ended_as
_pause_reason = conversations.c.pause_reason
_archived = _status == Status.ARCHIVED.value
_at_rest = _status == Status.ACTIVE.value
_waits = _status == Status.WAITING_INPUT.value
_at_work = _status.in_([Status.BACKGROUND.value, Status.WAITING_INPUT.value])
_unpaused = and_(_at_rest, _pause_reason.is_(None))
was_proposed = (
    select(questions.c.id)
    .where(
        questions.c.user_id == conversations.c.user_id,
        questions.c.conversation_id == conversations.c.id,
        questions.c.purpose == Purpose.PROPOSAL.value,
    )
    .correlate(conversations)
)
is_proposed = was_proposed.where(is_open).exists()
is_task = and_(
    or_(
        conversations.c.kind == Kind.TASK.value,
        and_(conversations.c.kind == Kind.CHAT.value, conversations.c.schedule.is_not(None)),
    ),
    or_(_ended_as.is_(None), _ended_as != EndedAs.DISMISSED.value),
    # A proposal that was dismissed and opened again is a conversation like any other.
    not_(and_(_unpaused, _ended_as.is_(None))),
)


def _paused(*reasons: PauseReason) -> ColumnElement[bool]:
    return and_(_at_rest, _pause_reason.in_([reason.value for reason in reasons]))


def _ended(*endings: EndedAs) -> ColumnElement[bool]:
    return _ended_as.in_([ending.value for ending in endings])


_over = or_(_archived, _unpaused)
_JOBS: dict[JobStatus, ColumnElement[bool]] = {
    JobStatus.RUNNING: or_(
        and_(_at_work, ~conversations.c.resuming), _paused(PauseReason.USER, PauseReason.ALLOWANCE)
    ),
    JobStatus.RESUMED: and_(_at_work, conversations.c.resuming),
    JobStatus.COMPLETED: and_(_over, _ended(EndedAs.COMPLETED)),
    JobStatus.ERROR: or_(
        and_(_over, _ended(EndedAs.ERROR)), _paused(PauseReason.FAILURES, PauseReason.CRASHES)
    ),
    JobStatus.CANCELLED: or_(
        and_(_over, _ended(EndedAs.CANCELLED, EndedAs.DISMISSED)),
        and_(_archived, _ended_as.is_(None)),
    ),
}
_TASKS: dict[TaskStatus, ColumnElement[bool]] = {
    TaskStatus.PROPOSED: and_(_waits, is_proposed),
    TaskStatus.ACTIVE: or_(_status == Status.BACKGROUND.value, and_(_waits, not_(is_proposed))),
    TaskStatus.PAUSED: _paused(PauseReason.USER, PauseReason.ALLOWANCE),
    TaskStatus.DONE: or_(_archived, and_(_unpaused, _ended(EndedAs.COMPLETED, EndedAs.CANCELLED))),
    TaskStatus.FAILED: or_(
        _paused(PauseReason.FAILURES, PauseReason.CRASHES), and_(_unpaused, _ended(EndedAs.ERROR))
    ),
}


def has_job_status(status: JobStatus) -> ColumnElement[bool]:
    return _JOBS[status]


def has_task_status(status: TaskStatus) -> ColumnElement[bool]:
    return and_(is_task, _TASKS[status])
