"""Takes turns: the exclusive right to act on a conversation, for a reply or for work."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, Text, and_, bindparam, update

from backburner.core import transitions
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.ids import UserId, new_run_id
from backburner.core.run import Run, RunKind, RunStatus, Turn
from backburner.core.transitions import Step
from backburner.core.work.discovery import may_discover
from backburner.ports import Claim, Claimer
from backburner.store import steps
from backburner.store.dialect import Clock, read_by_clock
from backburner.store.queries import discovery as rows_of_discovery
from backburner.store.queue import claimable
from backburner.store.records import conversations as rows_of_conversations
from backburner.store.records import runs as rows_of_runs
from backburner.store.records import waits as rows_of_waits
from backburner.store.records.events import Events
from backburner.store.tables import conversations, users
from backburner.store.types import MICROSECOND

#: How often a claim looks again before it leaves the rest to the next one.
MAX_CLAIM_ROUNDS = 100


_owner = bindparam("owner", type_=Text())
_this = and_(conversations.c.user_id == _owner, conversations.c.id == bindparam("which"))
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
_who_waits = claimable.statements().person_first.with_only_columns(conversations.c.profile)
_serve_user = update(users).where(users.c.id == _owner).values(served_at=bindparam("now"))


def look(connection: Connection, clock: Clock) -> tuple[Row[Any], datetime, int]:
    """See how much there may be to claim, and what time it is."""
    return read_by_clock(connection, clock, claimable.how_much, claimable.how_much_now)


def claim_reply(
    connection: Connection, claimer: Claimer, *, now: datetime, tick: int
) -> Claim | None:
    """Take the turn of the conversation in which somebody has waited longest for a reply."""
    row = connection.execute(claimable.statements(claimer.full).person_first).first()
    if row is None:
        return None
    held = rows_of_conversations.read(connection, row)
    handed_back = rows_of_runs.queued(connection, held.user_id, held.id).get(RunKind.REPLY)
    taker = _Taker(connection, claimer, now, tick)
    if handed_back is not None:
        return taker.go_on(held, handed_back[0], epoch=row.epoch + 1, unattended=False)
    return taker.begin(held, RunKind.REPLY, epoch=row.epoch + 1, unattended=False)


def who_waits(connection: Connection) -> str | None:
    """Find the profile that the longest waiting user needs for a reply; None: nobody waits."""
    row = connection.execute(_who_waits).first()
    return None if row is None else str(row.profile)


def claim_work(
    connection: Connection,
    claimer: Claimer,
    *,
    now: datetime,
    tick: int,
    seen: Row[Any] | None = None,
    a_lot: int = claimable.A_LOT,
    log: Events | None = None,
) -> Claim | None:
    """Take the turn of work that may be done: the least recently served user's, longest waiting.

    The user's row is locked first, so that the cap on their runs is exact however many claim.
    `seen` is what there was a moment ago; what else becomes of slots is noted in `log`.
    """
    taker = _Taker(connection, claimer, now, tick, log)
    statements = claimable.statements(claimer.full)
    values: dict[str, Any] = {"now": now, "cap": claimer.cap}
    passed_over: list[UserId] = []
    # What was found may have gone by the time its lock was there, or be nothing but missed slots.
    for _ in range(MAX_CLAIM_ROUNDS):
        seen = seen or connection.execute(claimable.how_much, {"now": now}).one()
        locked = _lock_user(connection, statements, seen, values, passed_over, a_lot)
        if locked is None:
            return None
        user, has_items = locked.id, bool(seen.people or seen.more)
        seen = None
        row = connection.execute(statements.longest_waiting, {"owner": user, **values}).first()
        if row is None:
            # Somebody has locked all they have.
            passed_over.append(user)
            continue
        claim = _claim_row(taker, row, has_items=has_items)
        if claim is not None:
            connection.execute(_serve_user, {"owner": user, "now": now})
            return replace(claim, zone=locked.zone, remembers=bool(locked.remembers))
    return None


def _lock_user(
    connection: Connection,
    statements: claimable.Statements,
    seen: Row[Any],
    values: dict[str, Any],
    passed_over: list[UserId],
    a_lot: int,
) -> Row[Any] | None:
    """Find whose turn it is and lock their row."""
    if seen.all_paused or not (seen.due or seen.more):
        return None
    # Those whom somebody else serves just now come last.
    for waits in (False, True):
        whose_turn = statements.whose_turn[seen.due >= a_lot, seen.more >= a_lot, waits]
        if passed_over:
            whose_turn = whose_turn.where(users.c.id.not_in(passed_over))
        user = connection.execute(whose_turn, values).first()
        if user is not None:
            return user
    return None


def _claim_row(taker: "_Taker", row: Row[Any], *, has_items: bool) -> Claim | None:
    """Take a turn for the first reason there is, now that nobody else can change it.

    Where a moment ago no inbox had anything, its schedule is the only reason.
    """
    connection, user, which, epoch = taker.connection, row.user_id, row.id, row.epoch + 1
    found = rows_of_conversations.read(connection, row)
    if not has_items:
        return _begin_what_is_due(taker, found, epoch=epoch)
    reasons = connection.execute(claimable.reasons, {"owner": user, "which": which}).one()
    if reasons.person:
        return None
    handed_back = rows_of_runs.queued(connection, user, which) if reasons.queued else {}
    if RunKind.REPLY not in handed_back and reasons.reply:
        return taker.begin(found, RunKind.REPLY, epoch=epoch, unattended=True)
    for kind in (RunKind.REPLY, RunKind.BACKGROUND):
        run, wait_until = handed_back.get(kind, (None, None))
        waits_for_answer = kind is RunKind.BACKGROUND and found.status is Status.WAITING_INPUT
        is_over = wait_until is not None and wait_until <= taker.now
        if run is not None and is_over and not waits_for_answer:
            return taker.go_on(found, run, epoch=epoch, unattended=True)
    wanted = reasons.work if found.status is Status.BACKGROUND else reasons.work_at_once
    if RunKind.BACKGROUND in handed_back or not _has_work(found, wanted=wanted, now=taker.now):
        return None
    if not wanted and _is_passed_over(taker, found):
        return None
    claim = taker.begin(found, RunKind.BACKGROUND, epoch=epoch, unattended=True)
    return claim and replace(claim, has_items=bool(reasons.work))


def _begin_what_is_due(taker: "_Taker", found: Conversation, *, epoch: int) -> Claim | None:
    if not _has_work(found, wanted=False, now=taker.now) or _is_passed_over(taker, found):
        return None
    claim = taker.begin(found, RunKind.BACKGROUND, epoch=epoch, unattended=True)
    return claim and replace(claim, has_items=False)


def _has_work(found: Conversation, *, wanted: bool, now: datetime) -> bool:
    if found.status is Status.ACTIVE:
        return wanted
    is_due = found.next_run_at is not None and found.next_run_at <= now
    return found.status is Status.BACKGROUND and (wanted or is_due)


def _is_passed_over(taker: "_Taker", found: Conversation) -> bool:
    """Let the slot pass in which discovery would look for work, unless its guard lets it."""
    if found.kind is not Kind.DISCOVERY:
        return False
    presence = rows_of_discovery.presence(taker.connection, found.user_id)
    if may_discover(presence, now=taker.now, idle_for=taker.claimer.discovers_after):
        return False
    passed = transitions.skip_discovery_slot(found, now=taker.now)
    rows_of_discovery.pass_over(taker.connection, passed)
    return True


@dataclass(frozen=True, slots=True)
class _Taker:
    """Whoever takes a turn, and when."""

    connection: Connection
    claimer: Claimer
    now: datetime
    tick: int
    log: Events | None = None

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

    def go_on(self, found: Conversation, run: Run, *, epoch: int, unattended: bool) -> Claim:
        """Let a run that was handed back go on; it stays the run of the slot it began with."""
        rows_of_runs.go_on(
            self.connection,
            found.user_id,
            run.id,
            epoch=epoch,
            unattended=unattended,
            worker=self.claimer.worker,
        )
        going = replace(run, epoch=epoch, status=RunStatus.RUNNING)
        awaited = rows_of_waits.take(self.connection, found.user_id, run.id)
        return replace(self._take(found, going), goes_on=True, awaited=awaited)

    def _note_missed(self, step: Step) -> None:
        if step.skipped:
            steps.save(self.connection, step, cause=None, now=self.now)
            if self.log is not None:
                self.log.note_step(step)

    def _take(self, found: Conversation, run: Run) -> Claim:
        values = {
            "owner": found.user_id,
            "which": found.id,
            "run": run.id,
            "until": self.tick + self.claimer.lease // MICROSECOND,
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
            "worker": self.claimer.worker,
            "tokens": 0,
        }
