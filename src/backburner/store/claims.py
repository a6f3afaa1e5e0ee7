"""The turn: the exclusive right to act on a conversation, claimed, renewed, committed, given back.

Every write of a holder is guarded by its run and epoch. A turn whose lease has run out is not free:
only `rescue` frees it, settles its run and moves the epoch on, in one transaction.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    select,
    update,
)

from backburner.core import transitions
from backburner.core.conversation import Conversation
from backburner.core.errors import Fenced
from backburner.core.ids import ConversationId, ItemId, RunId, UserId, new_run_id
from backburner.core.run import Run, RunKind, RunStatus
from backburner.core.transitions import Step
from backburner.store import claimable, steps
from backburner.store import conversations as rows_of_conversations
from backburner.store import inbox as rows_of_inbox
from backburner.store import questions as rows_of_questions
from backburner.store import runs as rows_of_runs
from backburner.store.mapping import to_conversation, to_row
from backburner.store.runs import Ending
from backburner.store.tables import (
    conversations,
    runs,
    users,
)
from backburner.store.types import MICROSECOND

#: How often a claim looks again before it leaves the rest to the next one.
MOST_LOOKS = 100


@dataclass(frozen=True, slots=True)
class Turn:
    """What a holder proves itself with."""

    user_id: UserId
    conversation_id: ConversationId
    run_id: RunId
    epoch: int
    kind: RunKind


@dataclass(frozen=True, slots=True)
class Claim:
    turn: Turn
    run: Run
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Flags:
    """What a holder hears when it renews its lease."""

    cancelled: bool
    person_waits: bool


_owner = bindparam("owner", type_=Text())
_this = and_(conversations.c.user_id == _owner, conversations.c.id == bindparam("which"))
_lock_free = select(conversations).where(_this, claimable.is_open).with_for_update(skip_locked=True)
_take = (
    update(conversations)
    .where(_this, claimable.is_free)
    .values(
        epoch=conversations.c.epoch + 1,
        turn_run=bindparam("run"),
        turn_until=bindparam("until"),
        settled_until=bindparam("settled"),
    )
)
_serve_user = update(users).where(users.c.id == _owner).values(served_at=bindparam("now"))
_is_mine = and_(
    conversations.c.turn_run == bindparam("run"), conversations.c.epoch == bindparam("held")
)
_renew = (
    update(conversations)
    .where(_this, _is_mine, conversations.c.turn_until >= bindparam("tick"))
    .values(turn_until=bindparam("until"))
)
_cancel_flag = select(runs.c.cancel_requested_at).where(runs.c.id == bindparam("run"))
_hold = select(conversations).where(_this, _is_mine).with_for_update()
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


def claim_reply(
    connection: Connection,
    *,
    worker: str,
    lease: timedelta,
    now: datetime,
    tick: int,
    only: tuple[UserId, ConversationId] | None = None,
) -> Claim | None:
    """Take the turn of the conversation in which somebody has waited longest for a reply."""
    if only is None:
        row = connection.execute(claimable.person_first).first()
    else:
        row = connection.execute(
            claimable.this_person, {"owner": only[0], "which": only[1]}
        ).first()
    if row is None:
        return None
    held = to_conversation(row, rows_of_questions.open_of(connection, row.user_id, row.id))
    handed_back = rows_of_runs.queued(connection, held.user_id, held.id).get(RunKind.REPLY)
    taker = _Taker(connection, worker, lease, now, tick)
    if handed_back is not None:
        return taker.go_on(held, handed_back[0], epoch=row.epoch + 1)
    return taker.begin(held, RunKind.REPLY, epoch=row.epoch + 1, unattended=False)


def claim_work(
    connection: Connection,
    *,
    worker: str,
    lease: timedelta,
    cap: int,
    now: datetime,
    tick: int,
) -> Claim | None:
    """Take the turn of work that may be done: the least recently served user's, longest waiting.

    The user's row is locked first, so that the cap on their runs is exact however many claim.
    """
    taker = _Taker(connection, worker, lease, now, tick)
    passed_over: list[ConversationId] = []
    # What was found may have gone by the time its lock was there, or be nothing but missed slots.
    for _ in range(MOST_LOOKS):
        looked = {"now": now, "passed_over": passed_over}
        user = connection.execute(claimable.whose_turn, {**looked, "cap": cap}).scalar()
        if user is None:
            return None
        if connection.execute(claimable.count_running, {"owner": user}).scalar_one() >= cap:
            continue
        for found in connection.execute(claimable.candidates, {**looked, "owner": user}).all():
            row = connection.execute(_lock_free, {"owner": user, "which": found.id}).first()
            if row is None:
                passed_over.append(found.id)
                continue
            claim = _claim_row(taker, row)
            if claim is not None:
                connection.execute(_serve_user, {"owner": user, "now": now})
                return claim
    return None


def renew(connection: Connection, turn: Turn, *, lease: timedelta, tick: int) -> Flags:
    """Extend a lease, unless it has run out; hear whether to stop or to make room."""
    values = {**turn_key(turn), "tick": tick, "until": tick + lease // MICROSECOND}
    if connection.execute(_renew, values).rowcount != 1:
        raise Fenced
    waits = rows_of_conversations.person_waits(connection, turn.user_id, turn.conversation_id)
    return Flags(cancelled=is_cancelled(connection, turn.run_id), person_waits=waits)


def hold(connection: Connection, turn: Turn) -> Conversation:
    """Load the conversation as it is now, to apply an outcome to it; only its holder can."""
    row = connection.execute(_hold, turn_key(turn)).one_or_none()
    if row is None:
        raise Fenced
    questions = rows_of_questions.open_of(connection, turn.user_id, turn.conversation_id)
    return to_conversation(row, questions)


def commit(
    connection: Connection,
    turn: Turn,
    step: Step,
    ending: Ending,
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
    if is_cancelled(connection, turn.run_id):
        ending = Ending(status=RunStatus.CANCELLED)
        rows_of_runs.end(connection, turn.user_id, turn.run_id, ending, now=now)
    else:
        rows_of_runs.queue(connection, turn.user_id, turn.run_id, until=until)
    _write_down(connection, turn, step, now=now)


def is_committed(connection: Connection, turn: Turn) -> bool:
    """Find out whether a commit whose answer was lost took place."""
    return rows_of_runs.is_proven(connection, turn.run_id, turn.epoch)


def _claim_row(taker: "_Taker", row: Row[Any]) -> Claim | None:
    connection, now, user, which = taker.connection, taker.now, row.user_id, row.id
    found = to_conversation(row, rows_of_questions.open_of(connection, user, which))
    handed_back = rows_of_runs.queued(connection, user, which)
    epoch = row.epoch + 1
    if RunKind.REPLY not in handed_back and rows_of_inbox.waiting(
        connection, user, which, RunKind.REPLY
    ):
        return taker.begin(found, RunKind.REPLY, epoch=epoch, unattended=True)
    for kind in (RunKind.REPLY, RunKind.BACKGROUND):
        run, wait_until = handed_back.get(kind, (None, None))
        if run is not None and wait_until is not None and wait_until <= now:
            return taker.go_on(found, run, epoch=epoch)
    return taker.begin(found, RunKind.BACKGROUND, epoch=epoch, unattended=True)


@dataclass(frozen=True, slots=True)
class _Taker:
    """Whoever takes a turn, and when."""

    connection: Connection
    worker: str
    lease: timedelta
    now: datetime
    tick: int

    def begin(
        self, found: Conversation, kind: RunKind, *, epoch: int, unattended: bool
    ) -> Claim | None:
        """Begin a new run; None where all that was due turned out to be missed slots."""
        slot_at = None
        if kind is RunKind.BACKGROUND:
            beginning = transitions.begin(found, now=self.now)
            self._note_missed(beginning.step)
            if not beginning.runs:
                return None
            found, slot_at = beginning.step.conversation, beginning.slot_at
        run = Run(
            id=new_run_id(),
            conversation_id=found.id,
            kind=kind,
            status=RunStatus.RUNNING,
            epoch=epoch,
            schedule_revision=found.schedule_revision,
            started_at=self.now,
            slot_at=slot_at,
        )
        rows_of_runs.begin(self.connection, self._row(found.user_id, run, unattended=unattended))
        return self._take(found, run)

    def go_on(self, found: Conversation, run: Run, *, epoch: int) -> Claim:
        """Let a run that was handed back go on; it stays the run of the slot it began with."""
        rows_of_runs.go_on(self.connection, found.user_id, run.id, epoch=epoch, worker=self.worker)
        return self._take(found, replace(run, epoch=epoch, status=RunStatus.RUNNING))

    def _note_missed(self, step: Step) -> None:
        if step.skipped:
            steps.save(self.connection, step, cause="", now=self.now)

    def _take(self, found: Conversation, run: Run) -> Claim:
        values = {
            "owner": found.user_id,
            "which": found.id,
            "run": run.id,
            "until": self.tick + self.lease // MICROSECOND,
            "settled": found.settled_until,
        }
        self.connection.execute(_take, values)
        turn = Turn(found.user_id, found.id, run.id, run.epoch, run.kind)
        return Claim(turn, run, found)

    def _row(self, user: UserId, run: Run, *, unattended: bool) -> dict[str, Any]:
        return {
            "id": run.id,
            "user_id": user,
            "conversation_id": run.conversation_id,
            "kind": run.kind.value,
            "status": run.status.value,
            "unattended": unattended,
            "epoch": run.epoch,
            "schedule_revision": run.schedule_revision,
            "slot_at": run.slot_at,
            "started_at": run.started_at,
            "worker": self.worker,
            "tokens": 0,
        }


def is_cancelled(connection: Connection, run: RunId) -> bool:
    return connection.execute(_cancel_flag, {"run": run}).scalar() is not None


def _give_up(
    connection: Connection, turn: Turn, step: Step, *, served: Iterable[ItemId], now: datetime
) -> None:
    """Save the conversation without its turn, if it still is this holder's, and leave the proof."""
    row = to_row(step.conversation)
    for name in ("user_id", "id", "created_at"):
        del row[name]
    if connection.execute(_commit, {**row, **turn_key(turn), "updated_at": now}).rowcount != 1:
        raise Fenced
    rows_of_runs.prove(connection, turn.run_id, turn.epoch, now=now)
    rows_of_inbox.serve(connection, turn.user_id, served, run_id=turn.run_id, now=now)


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
