"""Gauges: counts over all users, each from a partial index with few rows.

Ended runs are counted for the last hour only, because a full count would scan years.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import and_, bindparam, exists, func, not_, or_, select

from backburner.core.run import RunStatus
from backburner.ports import Gauges
from backburner.store.context import Group
from backburner.store.tables import (
    PAUSED,
    conversations,
    deliveries,
    inbox,
    install,
    is_open,
    is_queued,
    is_running,
    is_scheduled,
    is_unsent,
    is_unserved,
    questions,
    runs,
    users,
)

ENDED_WINDOW = timedelta(hours=1)
ENDINGS = (RunStatus.SUCCESS, RunStatus.FAILURE, RunStatus.SKIPPED, RunStatus.CANCELLED)

_now = bindparam("now", type_=runs.c.started_at.type)
_count_ended = (
    select(runs.c.status, func.count().label("count"))
    .where(runs.c.ended_at >= bindparam("since"))
    .group_by(runs.c.status)
)
_is_unpaused = not_(users.c.paused)
#: Runs that could be claimed now, each with the time since when.
due = (
    select(conversations.c.next_run_at.label("at"))
    .join(users, users.c.id == conversations.c.user_id)
    .where(is_scheduled, conversations.c.next_run_at <= _now, _is_unpaused)
)
resumable = (
    select(runs.c.wait_until.label("at"))
    .join(users, users.c.id == runs.c.user_id)
    .where(is_queued, runs.c.wait_until <= _now, _is_unpaused)
)
#: One run serves all items of a conversation.
waiting = (
    select(func.min(inbox.c.arrived_at).label("at"))
    .join(users, users.c.id == inbox.c.user_id)
    .join(
        conversations,
        and_(
            conversations.c.user_id == inbox.c.user_id,
            conversations.c.id == inbox.c.conversation_id,
        ),
    )
    .where(
        is_unserved,
        conversations.c.turn_run.is_(None),
        or_(
            inbox.c.from_person,
            and_(
                _is_unpaused,
                or_(
                    inbox.c.run_kind == "reply",
                    conversations.c.status == "background",
                    and_(conversations.c.status == "active", inbox.c.at_once),
                ),
            ),
        ),
    )
    .group_by(inbox.c.user_id, inbox.c.conversation_id)
)
_count_claimable = [
    select(func.count(), func.min(rows.c.at))
    for rows in (each.subquery() for each in (due, resumable, waiting))
]


def _count(table: Any, *conditions: Any) -> Any:
    return select(func.count()).select_from(table).where(*conditions).scalar_subquery()


_select_counts = select(
    _count(runs, is_running).label("running"),
    _count(runs, is_queued).label("queued"),
    _count(inbox, is_unserved, inbox.c.from_person).label("people"),
    _count(questions, is_open).label("questions"),
    _count(deliveries, is_unsent).label("deliveries"),
    _count(users).label("users"),
    exists().where(install.c.key == PAUSED).label("paused"),
)


class GaugeQueries(Group):
    def gauges(self, *, now: datetime) -> Gauges:
        row = self._execute(_select_counts).one()
        ended: dict[str, int] = dict.fromkeys((status.value for status in ENDINGS), 0)
        by_status = self._execute(_count_ended, {"since": now - ENDED_WINDOW})
        ended |= {row.status: row.count for row in by_status}
        claimable = [self._execute(statement, {"now": now}).one() for statement in _count_claimable]
        oldest_at = min((since for _, since in claimable if since is not None), default=now)
        return Gauges(
            runs={"running": row.running, "queued": row.queued},
            ended_last_hour=ended,
            claimable=sum(count for count, _ in claimable),
            oldest_wait=max(now - oldest_at, timedelta()),
            users_waiting=row.people,
            questions=row.questions,
            deliveries=row.deliveries,
            users=row.users,
            paused=bool(row.paused),
        )
