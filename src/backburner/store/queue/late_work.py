"""Statements that find whose background work waits for a model, and has waited for long.

Late is what could be claimed if its profile did not rest: due work, items in inboxes, and runs that
were handed back. Every user is looked up in indexes by themselves, so that it does not matter how
much of it there is.
"""

from typing import Any

from sqlalchemy import (
    Integer,
    Select,
    Text,
    and_,
    bindparam,
    case,
    exists,
    false,
    literal_column,
    not_,
    or_,
    select,
    text,
    union_all,
)

from backburner.core.accounts import Role
from backburner.core.run import FailureKind
from backburner.store.queue import claimable, next_profiles
from backburner.store.tables import (
    PAUSED,
    conversations,
    inbox,
    install,
    outage_reports,
    runs,
    users,
)

_before = bindparam("before", type_=conversations.c.next_run_at.type)
_owner = bindparam("owner", type_=Text())


def _sources() -> tuple[Select[Any], ...]:
    uses = next_profiles.uses_given
    of_queued = uses(next_profiles.for_queued, resumes=True)
    # A run that was handed back has waited since it began: each probe hands it back anew.
    queued = claimable.queued(of_queued).with_only_columns(
        runs.c.user_id, runs.c.conversation_id.label("id"), runs.c.started_at.label("since")
    )
    return (
        claimable.due(uses(next_profiles.for_work)).where(conversations.c.next_run_at <= _before),
        claimable.items(uses(next_profiles.for_item)).where(inbox.c.arrived_at <= _before),
        queued.where(runs.c.started_at <= _before),
    )


_waits = and_(
    # Nothing would run anyway while work is paused.
    not_(users.c.paused),
    not_(exists().where(install.c.key == text(f"'{PAUSED}'"))),
    or_(*(claimable.has_row(source) for source in _sources())),
)
#: No EXISTS: PostgreSQL might read the reports to all users.
_told_of = (
    select(outage_reports.c.kind)
    .where(
        outage_reports.c.user_id == users.c.id,
        outage_reports.c.profile == bindparam("of_profile"),
        outage_reports.c.reported_at >= bindparam("told_since"),
    )
    .limit(literal_column("1", Integer))
    .scalar_subquery()
)
_was_told = _told_of.is_not(None)
#: Some users, whether they were told about an outage, and if not, whether work of theirs is late.
#: The limit is on all users, so that it costs the same however many were told.
select_users = (
    select(
        users.c.id,
        _was_told.label("was_told"),
        (_told_of == FailureKind.ACCESS_DENIED.value).label("was_told_of_denial"),
        case((_was_told, false()), else_=_waits).label("waits"),
        (users.c.role != Role.MEMBER.value).label("is_operator"),
    )
    .where(users.c.id > bindparam("after"), users.c.disabled_at.is_(None))
    .order_by(users.c.id)
    .limit(bindparam("limit"))
)


def _longest_waiting() -> Select[Any]:
    oldest = [
        select(
            source.where(claimable.owner_of(source) == _owner)
            .order_by(source.selected_columns.since)
            .limit(bindparam("limit"))
            .subquery()
        )
        for source in _sources()
    ]
    late = union_all(*oldest).subquery("late")
    return select(late.c.id).order_by(late.c.since).limit(bindparam("limit"))


#: The conversation in which late work of a user waits longest.
longest_waiting = _longest_waiting()
