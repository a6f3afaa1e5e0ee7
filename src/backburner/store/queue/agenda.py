"""The agenda: the next time of each duty, in one statement that reads the start of indexes."""

from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import Integer, Row, Select, and_, exists, literal_column, not_, or_, select

from backburner.core.routing import NO_PROFILES, ProfileFilter
from backburner.ports import Agenda
from backburner.store.queue import next_profiles
from backburner.store.tables import (
    conversations,
    deliveries,
    inbox,
    is_open,
    is_queued,
    is_scheduled,
    is_unsent,
    is_unserved,
    questions,
    runs,
    users,
)
from backburner.store.types import MICROSECOND


def _first(column: Any, *conditions: Any) -> Any:
    times = select(column).where(column.is_not(None), *conditions)
    return times.order_by(column).limit(literal_column("1", Integer)).scalar_subquery()


#: Work that is due waits for a queued background run to resume.
_none_is_queued = not_(
    exists().where(
        runs.c.user_id == conversations.c.user_id,
        runs.c.conversation_id == conversations.c.id,
        is_queued,
        runs.c.kind == "background",
    )
)
_is_conversation_of_run = and_(
    conversations.c.user_id == runs.c.user_id, conversations.c.id == runs.c.conversation_id
)
#: A queued run of the same kind serves the item when it resumes.
_one_is_queued = exists().where(
    runs.c.user_id == inbox.c.user_id,
    runs.c.conversation_id == inbox.c.conversation_id,
    is_queued,
    runs.c.kind == inbox.c.run_kind,
)


#: As `Toolbox.has_others` counts accounts: with those that are disabled.
_one_account = (
    select(users.c.id)
    .order_by(users.c.id)
    .limit(literal_column("1", Integer))
    .offset(literal_column("1", Integer))
    .scalar_subquery()
    .is_(None)
)


@cache
def next_times(without: ProfileFilter = NO_PROFILES) -> Select[Any]:
    """Select the next times, without background work of these profiles."""
    works, works_for_item, resumes = list[Any](), list[Any](), list[Any]()
    if without.profiles:
        works = [not_(next_profiles.uses(without, next_profiles.for_work))]
        works_for_item = [not_(next_profiles.uses(without, next_profiles.for_item))]
        is_left_out = next_profiles.uses(without, next_profiles.for_queued, resumes=True)
        resumes = [exists().where(_is_conversation_of_run, not_(is_left_out))]
    # An item waits where nobody holds the turn, so it can be claimed, except for caps and pauses.
    has_items = exists().where(
        is_unserved,
        conversations.c.user_id == inbox.c.user_id,
        conversations.c.id == inbox.c.conversation_id,
        conversations.c.turn_run.is_(None),
        or_(
            inbox.c.from_person,
            and_(
                not_(_one_is_queued),
                or_(
                    inbox.c.run_kind == "reply",
                    conversations.c.status == "background",
                    and_(conversations.c.status == "active", inbox.c.at_once),
                ),
                *works_for_item,
            ),
        ),
    )
    has_turn = conversations.c.turn_run.is_not(None)
    return select(
        has_items.label("has_items"),
        _first(conversations.c.next_run_at, is_scheduled, _none_is_queued, *works).label("due_at"),
        _first(runs.c.wait_until, is_queued, *resumes).label("resume_at"),
        _first(conversations.c.turn_until, has_turn).label("turn_until"),
        _first(deliveries.c.not_before, is_unsent).label("delivery_at"),
        _first(questions.c.remind_at, is_open).label("remind_at"),
        _first(questions.c.expires_at, is_open).label("expires_at"),
        _one_account.label("one_account"),
    )


def to_agenda(row: Row[Any], *, now: datetime, tick: int) -> Agenda:
    """Convert a row of times to the time left until each of them."""
    lease = None if row.turn_until is None else (row.turn_until - tick) * MICROSECOND
    return Agenda(
        now=now,
        work=timedelta() if row.has_items else _until(now, row.due_at, row.resume_at),
        rescue=lease if lease is None else max(lease, timedelta()),
        delivery=_until(now, row.delivery_at),
        question=_until(now, row.remind_at, row.expires_at),
        has_items=bool(row.has_items),
        one_account=bool(row.one_account),
    )


def _until(now: datetime, *times: datetime | None) -> timedelta | None:
    next_at = min((time for time in times if time is not None), default=None)
    return None if next_at is None else max(next_at - now, timedelta())
