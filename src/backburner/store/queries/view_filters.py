"""The status of jobs and tasks as SQL conditions, equal to what `core.work.views` derives."""

from sqlalchemy import ColumnElement, and_, not_, or_, select

from backburner.core.conversation import HARMLESS_PAUSES, EndedAs, Kind, PauseReason, Status
from backburner.core.question import Purpose
from backburner.core.work.list_states import FAILURE_PAUSES, ListState
from backburner.core.work.views import JobStatus, TaskStatus
from backburner.store.tables import conversations, is_open, questions

_status, _ended_as = conversations.c.status, conversations.c.ended_as
_pause_reason = conversations.c.pause_reason
_archived = _status == Status.ARCHIVED.value
_idle = _status == Status.ACTIVE.value
_waits = _status == Status.WAITING_INPUT.value
_busy = _status.in_([Status.BACKGROUND.value, Status.WAITING_INPUT.value])
_unpaused = and_(_idle, _pause_reason.is_(None))
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
    # A proposal that was dismissed and reopened is an ordinary conversation.
    not_(and_(_unpaused, _ended_as.is_(None))),
)


def _paused(*reasons: PauseReason) -> ColumnElement[bool]:
    return and_(_idle, _pause_reason.in_([reason.value for reason in reasons]))


def _ended(*endings: EndedAs) -> ColumnElement[bool]:
    return _ended_as.in_([ending.value for ending in endings])


_over = or_(_archived, _unpaused)
_JOB_CONDITIONS: dict[JobStatus, ColumnElement[bool]] = {
    JobStatus.RUNNING: or_(
        and_(_busy, ~conversations.c.resuming), _paused(*sorted(HARMLESS_PAUSES))
    ),
    JobStatus.RESUMED: and_(_busy, conversations.c.resuming),
    JobStatus.COMPLETED: and_(_over, _ended(EndedAs.COMPLETED)),
    JobStatus.ERROR: or_(
        and_(_over, _ended(EndedAs.ERROR)), _paused(PauseReason.FAILURES, PauseReason.CRASHES)
    ),
    JobStatus.CANCELLED: or_(
        and_(_over, _ended(EndedAs.CANCELLED, EndedAs.DISMISSED)),
        and_(_archived, _ended_as.is_(None)),
    ),
}
_TASK_CONDITIONS: dict[TaskStatus, ColumnElement[bool]] = {
    TaskStatus.PROPOSED: and_(_waits, is_proposed),
    TaskStatus.ACTIVE: or_(_status == Status.BACKGROUND.value, and_(_waits, not_(is_proposed))),
    TaskStatus.PAUSED: _paused(*PauseReason),
    TaskStatus.DONE: or_(_archived, and_(_unpaused, _ended(EndedAs.COMPLETED, EndedAs.CANCELLED))),
    TaskStatus.FAILED: and_(_unpaused, _ended(EndedAs.ERROR)),
}


_LIST_CONDITIONS: dict[ListState, ColumnElement[bool]] = {
    ListState.NEEDS_YOU: or_(_waits, _paused(PauseReason.SIGNED_OUT)),
    ListState.WORKING: and_(conversations.c.turn_run.is_not(None), not_(_archived)),
    ListState.SCHEDULED: _status == Status.BACKGROUND.value,
    ListState.PAUSED: and_(_idle, _pause_reason.is_not(None)),
    ListState.FAILED: and_(
        not_(_archived),
        or_(
            _ended(EndedAs.ERROR),
            _paused(*FAILURE_PAUSES),
            and_(_ended_as.is_(None), conversations.c.failures > 0),
        ),
    ),
    ListState.ARCHIVED: _archived,
}


def has_list_state(state: ListState) -> ColumnElement[bool]:
    return _LIST_CONDITIONS[state]


def has_job_status(status: JobStatus) -> ColumnElement[bool]:
    return _JOB_CONDITIONS[status]


def has_task_status(status: TaskStatus) -> ColumnElement[bool]:
    return and_(is_task, _TASK_CONDITIONS[status])
