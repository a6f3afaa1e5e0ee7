"""Corrects the times that were written while the clock ran ahead: nothing waits until then."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Text,
    bindparam,
    case,
    delete,
    exists,
    not_,
    or_,
    select,
    update,
)

from backburner.core import transitions
from backburner.ports import EventKind, Hint, HintKind
from backburner.store.context import Context
from backburner.store.records.conversations import Conversations
from backburner.store.tables import (
    attempts,
    conversations,
    deliveries,
    inbox,
    is_open,
    is_queued,
    is_unsent,
    outages,
    questions,
    runs,
    users,
    waits,
)
from backburner.store.types import MICROSECOND

#: Retries and pauses of this length are usual; a longer time may have been written by that clock.
USUAL_WAIT = timedelta(hours=1)
#: Others write while this reads.
_MARGIN = timedelta(seconds=5)

_now = bindparam("now", type_=conversations.c.updated_at.type)
_ahead = bindparam("ahead", type_=conversations.c.updated_at.type)
_later = bindparam("later", type_=conversations.c.updated_at.type)
_lease_end: BindParameter[int] = bindparam("lease_end", BigInteger)
_is_ahead = or_(conversations.c.settled_until > _ahead, conversations.c.updated_at > _ahead)
_any_ahead = select(
    or_(
        exists().where(_is_ahead),
        exists().where(users.c.served_at > _ahead),
        exists().where(attempts.c.since > _ahead),
    )
)


def _at_most_now(time: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((time > _now, _now), else_=time)


_serve_users = update(users).where(users.c.served_at > _ahead).values(served_at=_now)
_try_models = (
    update(outages)
    .where(
        or_(
            outages.c.since > _now,
            outages.c.until > _now,
            outages.c.tried_until > _now,
            outages.c.answered_at > _now,
        )
    )
    .values(
        until=_now,
        since=_at_most_now(outages.c.since),
        tried_until=_at_most_now(outages.c.tried_until),
        answered_at=_at_most_now(outages.c.answered_at),
    )
)
_resume_users = update(users).where(users.c.resumed_at > _now).values(resumed_at=_now)
_wait_for_models = (
    update(runs)
    .where(is_queued, or_(runs.c.waits_since > _now, runs.c.own_trouble_since > _now))
    .values(
        waits_since=_at_most_now(runs.c.waits_since),
        own_trouble_since=_at_most_now(runs.c.own_trouble_since),
    )
)
_end_runs = update(runs).where(runs.c.ended_at > _now).values(ended_at=_now)
_receive = update(inbox).where(inbox.c.arrived_at > _now).values(arrived_at=_now)
_forget_attempts = delete(attempts).where(attempts.c.since > _ahead)
_select_ahead = (
    select(conversations)
    .where(_is_ahead, conversations.c.schedule.is_not(None))
    .order_by(conversations.c.user_id, conversations.c.id)
    .with_for_update(key_share=True)
)
_set_times = (
    update(conversations)
    .where(
        conversations.c.user_id == bindparam("owner", type_=Text()),
        conversations.c.id == bindparam("which"),
    )
    .values(
        next_run_at=bindparam("new_next_run_at"),
        settled_until=bindparam("new_settled_until"),
    )
)
_set_changes = (
    update(conversations).where(conversations.c.updated_at > _ahead).values(updated_at=_now)
)
#: A run that waits for jobs goes on when they have settled.
_waits_for_jobs = exists().where(waits.c.user_id == runs.c.user_id, waits.c.run_id == runs.c.id)
#: The times that other runs wait for were set by a clock that was right.
_was_queued_ahead = exists().where(
    conversations.c.user_id == runs.c.user_id,
    conversations.c.id == runs.c.conversation_id,
    conversations.c.updated_at > _ahead,
)
_resume = (
    update(runs)
    .where(is_queued, runs.c.wait_until > _later, not_(_waits_for_jobs), _was_queued_ahead)
    .values(wait_until=_now)
)
_deliver = (
    update(deliveries).where(is_unsent, deliveries.c.not_before > _later).values(not_before=_now)
)
_select_asked_ahead = select(questions).where(is_open, questions.c.asked_at > _ahead)
_set_question = (
    update(questions)
    .where(
        questions.c.user_id == bindparam("owner", type_=Text()),
        questions.c.id == bindparam("which"),
    )
    .values(
        asked_at=_now, remind_at=bindparam("new_remind_at"), expires_at=bindparam("new_expires_at")
    )
)
#: On PostgreSQL leases are measured by the same clock.
_shorten_leases = (
    update(conversations)
    .where(conversations.c.turn_run.is_not(None), conversations.c.turn_until > _lease_end)
    .values(turn_until=_lease_end),
    update(deliveries)
    .where(is_unsent, deliveries.c.leased_until > _lease_end)
    .values(leased_until=_lease_end),
)


def correct_times(tx: Context, *, leases: tuple[timedelta, timedelta], jumped: bool) -> int:
    """Return the number of conversations with new times.

    Unless the clock has just `jumped` back, this only looks for a sign that it ran ahead.
    """
    ahead = {"ahead": tx.now + _MARGIN}
    if not jumped and not tx.connection.execute(_any_ahead, ahead).scalar_one():
        return 0
    tx.connection.execute(_serve_users, {**ahead, "now": tx.now})
    changed = _set_conversations(tx, ahead)
    _set_questions(tx, ahead)
    times = {**ahead, "now": tx.now, "later": tx.now + USUAL_WAIT}
    for statement in (_resume, _set_changes, _forget_attempts, _deliver):
        tx.connection.execute(statement, times)
    for statement in (_try_models, _resume_users, _wait_for_models, _end_runs, _receive):
        tx.connection.execute(statement, {"now": tx.now})
    for statement, lease in zip(_shorten_leases, leases, strict=True):
        tx.connection.execute(statement, {"lease_end": tx.tick + lease // MICROSECOND})
    return changed


def _set_conversations(tx: Context, ahead: Mapping[str, datetime]) -> int:
    changed = 0
    for row in tx.connection.execute(_select_ahead, ahead).all():
        before = Conversations(tx).read(row)
        after = transitions.set_clock_back(before, changed_at=row.updated_at, now=tx.now)
        if after == before:
            continue
        values = {
            "owner": after.user_id,
            "which": after.id,
            "new_next_run_at": after.next_run_at,
            "new_settled_until": after.settled_until,
        }
        tx.connection.execute(_set_times, values)
        tx.changed(after.user_id, after.id, EventKind.CONVERSATION)
        tx.hint(Hint(HintKind.WORK, after.user_id))
        changed += 1
    return changed


def _set_questions(tx: Context, ahead: Mapping[str, datetime]) -> None:
    for row in tx.connection.execute(_select_asked_ahead, ahead).all():
        by = row.asked_at - tx.now
        values = {
            "owner": row.user_id,
            "which": row.id,
            "now": tx.now,
            "new_remind_at": row.remind_at and row.remind_at - by,
            "new_expires_at": row.expires_at and row.expires_at - by,
        }
        tx.connection.execute(_set_question, values)
