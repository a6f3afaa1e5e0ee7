"""How conversations stand as tasks, as conditions on rows: the same as `core.views` derives."""

from collections.abc import Iterable

from sqlalchemy import ColumnElement, and_, not_, or_, select

from backburner.core.conversation import EndedAs, Kind, PauseReason, Status
from backburner.core.question import Purpose
from backburner.core.work.views import TaskStatus
from backburner.store.tables import conversations, is_open, questions

_status, _ended_as = conversations.c.status, conversations.c.ended_as
_pause_reason = conversations.c.pause_reason
_at_rest = _status == Status.ACTIVE.value
_waits = _status == Status.WAITING_INPUT.value
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
is_listed = and_(
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


def _ended(*ways: EndedAs) -> ColumnElement[bool]:
    return and_(_unpaused, _ended_as.in_([way.value for way in ways]))


_STANDS: dict[TaskStatus, ColumnElement[bool]] = {
    TaskStatus.PROPOSED: and_(_waits, is_proposed),
    TaskStatus.ACTIVE: or_(_status == Status.BACKGROUND.value, and_(_waits, not_(is_proposed))),
    TaskStatus.PAUSED: _paused(PauseReason.USER, PauseReason.ALLOWANCE),
    TaskStatus.DONE: or_(
        _status == Status.ARCHIVED.value, _ended(EndedAs.COMPLETED, EndedAs.CANCELLED)
    ),
    TaskStatus.FAILED: or_(
        _paused(PauseReason.FAILURES, PauseReason.CRASHES), _ended(EndedAs.ERROR)
    ),
}


def stands(status: TaskStatus) -> Iterable[ColumnElement[bool]]:
    yield is_listed
    yield _STANDS[status]
