"""What the holder of a turn may do: renew its lease, commit what came of its run, hand it back.

Every write of a holder is guarded by its run and epoch. A turn whose lease has run out is not free:
only `rescue` frees it, settles its run and moves the epoch on, in one transaction.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Text, and_, bindparam, select, true, update

from backburner.core.conversation import Conversation
from backburner.core.errors import Fenced
from backburner.core.ids import ItemId, RunId, UserId
from backburner.core.run import RunEnding, RunStatus, Turn
from backburner.core.transitions import Step
from backburner.ports import TurnFlags
from backburner.store import steps
from backburner.store.mapping import to_row
from backburner.store.records import conversations as rows_of_conversations
from backburner.store.records import inbox
from backburner.store.records import runs as rows_of_runs
from backburner.store.tables import conversations, runs
from backburner.store.types import MICROSECOND

_this = and_(
    conversations.c.user_id == bindparam("owner", type_=Text()),
    conversations.c.id == bindparam("which"),
)
_is_mine = and_(
    conversations.c.turn_run == bindparam("run"), conversations.c.epoch == bindparam("held")
)
_renew = (
    update(conversations)
    .where(_this, _is_mine, conversations.c.turn_until >= bindparam("tick"))
    .values(turn_until=bindparam("until"))
)
_cancel_flag = select(runs.c.cancel_requested_at).where(
    runs.c.user_id == bindparam("owner"), runs.c.id == bindparam("run")
)
_hold = select(conversations).where(_this, _is_mine).with_for_update(key_share=True)
_note_outside = update(conversations).where(_this, _is_mine).values(outside_read=true())
_commit = (
    update(conversations)
    .where(_this, _is_mine)
    .values(turn_run=None, turn_until=None)
    .values(
        {
            column.name: bindparam(column.name)
            for column in conversations.columns
            if column.name not in ("user_id", "id", "created_at", "turn_run", "turn_until", "epoch")
        }
    )
)


def renew(connection: Connection, turn: Turn, *, lease: timedelta, tick: int) -> TurnFlags:
    """Extend a lease, unless it has run out; hear whether to stop or to make room."""
    values = {**turn_key(turn), "tick": tick, "until": tick + lease // MICROSECOND}
    if connection.execute(_renew, values).rowcount != 1:
        raise Fenced
    waits = rows_of_conversations.person_waits(connection, turn.user_id, turn.conversation_id)
    return TurnFlags(
        cancelled=is_cancelled(connection, turn.user_id, turn.run_id), person_waits=waits
    )


def hold(connection: Connection, turn: Turn) -> Conversation:
    """Load the conversation as it is now, to apply an outcome to it; only its holder can."""
    row = connection.execute(_hold, turn_key(turn)).one_or_none()
    if row is None:
        raise Fenced
    return rows_of_conversations.read(connection, row)


def note_outside(connection: Connection, turn: Turn) -> None:
    """Note that words of others are read in a conversation; once they were, they always were."""
    if connection.execute(_note_outside, turn_key(turn)).rowcount != 1:
        raise Fenced


def commit(
    connection: Connection,
    turn: Turn,
    step: Step,
    ending: RunEnding,
    *,
    served: Iterable[ItemId] = (),
    now: datetime,
) -> None:
    """Write a run's outcome and give up its turn: all of it together, or nothing."""
    _give_up(connection, turn, step, served=served, now=now)
    rows_of_runs.end(connection, turn.user_id, turn.run_id, ending, now=now)
    _write_down(connection, turn, step, now=now)


def hand_back(
    connection: Connection,
    turn: Turn,
    step: Step,
    *,
    until: datetime | None,
    served: Iterable[ItemId] = (),
    now: datetime,
) -> None:
    """Give up the turn; the same run goes on from `until`, or when something lets it.

    One that was to be cancelled anyway has ended.
    """
    _give_up(connection, turn, step, served=served, now=now)
    if is_cancelled(connection, turn.user_id, turn.run_id):
        ending = RunEnding(status=RunStatus.CANCELLED)
        rows_of_runs.end(connection, turn.user_id, turn.run_id, ending, now=now)
    else:
        rows_of_runs.queue(connection, turn.user_id, turn.run_id, until=until)
    _write_down(connection, turn, step, now=now)


def is_committed(connection: Connection, turn: Turn) -> bool:
    """Find out whether a commit whose answer was lost took place."""
    return rows_of_runs.is_proven(connection, turn.user_id, turn.run_id, turn.epoch)


def is_cancelled(connection: Connection, user: UserId, run: RunId) -> bool:
    """See whether somebody has asked a run to stop."""
    return connection.execute(_cancel_flag, {"owner": user, "run": run}).scalar() is not None


def _give_up(
    connection: Connection, turn: Turn, step: Step, *, served: Iterable[ItemId], now: datetime
) -> None:
    """Save the conversation without its turn, if it still is this holder's, and leave the proof."""
    row = to_row(step.conversation)
    for name in ("user_id", "id", "created_at"):
        del row[name]
    if connection.execute(_commit, {**row, **turn_key(turn), "updated_at": now}).rowcount != 1:
        raise Fenced
    rows_of_runs.prove(connection, turn.user_id, turn.run_id, turn.epoch, now=now)
    inbox.serve(connection, turn.user_id, served, run_id=turn.run_id, now=now)


def _write_down(connection: Connection, turn: Turn, step: Step, *, now: datetime) -> None:
    # With the epoch: a run that was handed back may ask again when it goes on.
    cause = f"{turn.run_id}:{turn.epoch}"
    steps.write_down(connection, step, cause=cause, run_id=turn.run_id, now=now)


def turn_key(turn: Turn) -> dict[str, Any]:
    return {
        "owner": turn.user_id,
        "which": turn.conversation_id,
        "run": turn.run_id,
        "held": turn.epoch,
    }
