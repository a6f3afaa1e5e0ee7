"""How conversations stand as jobs, as conditions on rows: the same as `core.views` derives."""

from sqlalchemy import ColumnElement, and_, or_, text

from backburner.core.conversation import EndedAs, PauseReason, Status
from backburner.core.work.views import JobStatus
from backburner.store.tables import conversations

# As it stands in the condition of an index, which is not found with a parameter in its place.
is_job = conversations.c.kind == text("'job'")

_status, _ended_as = conversations.c.status, conversations.c.ended_as
_archived = _status == Status.ARCHIVED.value
_at_rest = _status == Status.ACTIVE.value
_at_work = _status.in_([Status.BACKGROUND.value, Status.WAITING_INPUT.value])
_over = or_(_archived, and_(_at_rest, conversations.c.pause_reason.is_(None)))


def _paused(*reasons: PauseReason) -> ColumnElement[bool]:
    are_these = conversations.c.pause_reason.in_([reason.value for reason in reasons])
    return and_(_at_rest, are_these)


def _ended(*ways: EndedAs) -> ColumnElement[bool]:
    return and_(_over, _ended_as.in_([way.value for way in ways]))


STANDS: dict[JobStatus, ColumnElement[bool]] = {
    JobStatus.RUNNING: or_(
        and_(_at_work, ~conversations.c.resuming), _paused(PauseReason.USER, PauseReason.ALLOWANCE)
    ),
    JobStatus.RESUMED: and_(_at_work, conversations.c.resuming),
    JobStatus.COMPLETED: _ended(EndedAs.COMPLETED),
    JobStatus.ERROR: or_(_ended(EndedAs.ERROR), _paused(PauseReason.FAILURES, PauseReason.CRASHES)),
    JobStatus.CANCELLED: or_(
        _ended(EndedAs.CANCELLED, EndedAs.DISMISSED), and_(_archived, _ended_as.is_(None))
    ),
}
