"""Finds what a worker should have claimed long ago, with the statements that claim."""

from dataclasses import replace
from datetime import datetime, timedelta

from backburner.core.ids import ConversationId
from backburner.ports import Claimer
from backburner.store.context import Context
from backburner.store.queue import claimable
from backburner.store.queue.outages import Outages
from backburner.store.tables import inbox, users


def find_overdue(
    tx: Context, reply: Claimer | None, work: Claimer | None, *, by: timedelta
) -> ConversationId | None:
    """Find a conversation that has been claimable for so long; locked rows are left out."""
    before = tx.now - by
    found = None if reply is None else _find_reply(tx, reply, before)
    if found is None and work is not None:
        found = _find_work(tx, _avoid_outages(tx, work), before)
    return found


def _find_reply(tx: Context, claimer: Claimer, before: datetime) -> ConversationId | None:
    person_first = claimable.statements_for(claimer).person_first
    person_first = person_first.where(
        inbox.c.arrived_at <= before, users.c.id.not_in(claimer.passed_over)
    )
    row = tx.connection.execute(person_first).first()
    return None if row is None else ConversationId(row.id)


def _find_work(tx: Context, claimer: Claimer, before: datetime) -> ConversationId | None:
    seen = tx.connection.execute(claimable.how_much, {"now": before}).one()
    look = claimable.Look.of(seen)
    if seen.all_paused or not (look.has_due or look.has_more):
        return None
    statements = claimable.statements_for(claimer)
    whose_turn = statements.whose_turn(look, waits=False)
    whose_turn = whose_turn.where(users.c.id.not_in(claimer.passed_over))
    values = {"now": before, "cap": claimer.per_user_limit}
    user = tx.connection.execute(whose_turn, values).first()
    if user is None:
        return None
    values["owner"] = user.id
    row = tx.connection.execute(statements.longest_waiting(look), values).first()
    return None if row is None else ConversationId(row.id)


def _avoid_outages(tx: Context, work: Claimer) -> Claimer:
    # One of them may be probed, but nothing else of it is claimed.
    names = {outage.profile for outage in Outages(tx).all()}
    if work.default_profile in names:
        names.add("")
    return replace(work, full_profiles=tuple(sorted({*work.full_profiles, *names})))
