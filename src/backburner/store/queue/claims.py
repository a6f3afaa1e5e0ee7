"""The queue: claims turns, the exclusive right to act on a conversation, for replies and work."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Text, and_, bindparam, update

from backburner.core import transitions
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.ids import UserId, new_run_id
from backburner.core.run import Run, RunKind, RunStatus, Turn
from backburner.core.transitions import Step
from backburner.core.work.discovery import may_discover
from backburner.ports import Agenda, Claim, Claimer, EventKind, Hint, HintKind, RescuedTurn
from backburner.store.context import Context, Group
from backburner.store.dialect import read_by_clock, read_with_clock
from backburner.store.queries.discovery import Discovery
from backburner.store.queue import claimable
from backburner.store.queue.agenda import next_times, to_agenda
from backburner.store.queue.rescue import rescue
from backburner.store.records import steps
from backburner.store.records.conversations import Conversations
from backburner.store.records.runs import Runs
from backburner.store.records.waits import Waits
from backburner.store.tables import conversations, users
from backburner.store.types import MICROSECOND

#: Later than any lease.
_END_OF_TIME = 2**62
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


class Queue(Group):
    def claim(self, reply: Claimer | None, work: Claimer | None) -> Claim | None:
        # One statement reads how much there may be to claim, and the time.
        seen, now, tick = read_by_clock(
            self.connection, self.tx.clock, claimable.how_much, claimable.how_much_now
        )
        self.tx.set_time(now, tick)
        claim = None
        if reply is not None and seen.people:
            claim = self.claim_reply(reply)
        if claim is None and work is not None:
            claim = self.claim_work(work, seen=seen)
        if claim is not None:
            self.tx.events.note(claim.turn.user_id, claim.turn.conversation_id, EventKind.RUN)
        for user, noted in self.tx.events.noted.items():
            self.tx.mentions |= {Hint(HintKind.CHANGED, user, which): None for which, _ in noted}
        return claim

    def claim_reply(self, claimer: Claimer) -> Claim | None:
        """Take the turn of the conversation in which somebody has waited longest for a reply."""
        row = self.connection.execute(
            claimable.statements(claimer.full_profiles).person_first
        ).first()
        if row is None:
            return None
        held = Conversations(self.tx).read(row)
        handed_back = Runs(self.tx).queued(held.user_id, held.id).get(RunKind.REPLY)
        taker = _Taker(self.tx, claimer)
        if handed_back is not None:
            return taker.go_on(held, handed_back[0], epoch=row.epoch + 1, unattended=False)
        return taker.begin(held, RunKind.REPLY, epoch=row.epoch + 1, unattended=False)

    def claim_work(
        self,
        claimer: Claimer,
        *,
        seen: Row[Any] | None = None,
        a_lot: int = claimable.A_LOT,
    ) -> Claim | None:
        """Take the turn of the longest waiting work of the least recently served user.

        The user's row is locked first, so that the cap on their runs is exact however many claim.
        `seen` is what the last look found, if there was one.
        """
        taker = _Taker(self.tx, claimer)
        statements = claimable.statements(claimer.full_profiles)
        values: dict[str, Any] = {"now": self.tx.now, "cap": claimer.per_user_limit}
        passed_over: list[UserId] = []
        # Work may be gone by the time its lock is granted, or be nothing but missed slots.
        for _ in range(MAX_CLAIM_ROUNDS):
            seen = seen or self.connection.execute(claimable.how_much, {"now": self.tx.now}).one()
            locked = self._lock_user(statements, seen, values, passed_over, a_lot)
            if locked is None:
                return None
            user, has_items = locked.id, bool(seen.people or seen.more)
            seen = None
            row = self.connection.execute(
                statements.longest_waiting, {"owner": user, **values}
            ).first()
            if row is None:
                # Somebody has locked all they have.
                passed_over.append(user)
                continue
            claim = _claim_row(taker, row, has_items=has_items)
            if claim is not None:
                self.connection.execute(_serve_user, {"owner": user, "now": self.tx.now})
                return replace(claim, zone=locked.zone, has_memories=bool(locked.remembers))
        return None

    def waiting_profile(self) -> str | None:
        """Find the profile that the longest waiting user needs for a reply; None: nobody waits."""
        row = self.connection.execute(_who_waits).first()
        return None if row is None else str(row.profile)

    def rescue(self, *, all_of_them: bool = False) -> RescuedTurn | None:
        return rescue(self.tx, tick=_END_OF_TIME if all_of_them else self.tx.tick)

    def agenda(self) -> Agenda:
        row, now, tick = read_with_clock(self.connection, self.tx.clock, next_times)
        return to_agenda(row, now=now, tick=tick)

    def _lock_user(
        self,
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
            user = self.connection.execute(whose_turn, values).first()
            if user is not None:
                return user
        return None


def _claim_row(taker: "_Taker", row: Row[Any], *, has_items: bool) -> Claim | None:
    """Take a turn for the first reason there is, now that nobody else can change it.

    Where a moment ago no inbox had anything, its schedule is the only reason.
    """
    tx, user, which, epoch = taker.tx, row.user_id, row.id, row.epoch + 1
    found = Conversations(tx).read(row)
    if not has_items:
        return _begin_what_is_due(taker, found, epoch=epoch)
    reasons = tx.connection.execute(claimable.reasons, {"owner": user, "which": which}).one()
    if reasons.person:
        return None
    handed_back = Runs(tx).queued(user, which) if reasons.queued else {}
    if RunKind.REPLY not in handed_back and reasons.reply:
        return taker.begin(found, RunKind.REPLY, epoch=epoch, unattended=True)
    for kind in (RunKind.REPLY, RunKind.BACKGROUND):
        run, wait_until = handed_back.get(kind, (None, None))
        waits_for_answer = kind is RunKind.BACKGROUND and found.status is Status.WAITING_INPUT
        is_over = wait_until is not None and wait_until <= taker.tx.now
        if run is not None and is_over and not waits_for_answer:
            return taker.go_on(found, run, epoch=epoch, unattended=True)
    wanted = reasons.work if found.status is Status.BACKGROUND else reasons.work_at_once
    if RunKind.BACKGROUND in handed_back or not _has_work(found, wanted=wanted, now=taker.tx.now):
        return None
    if not wanted and _is_passed_over(taker, found):
        return None
    claim = taker.begin(found, RunKind.BACKGROUND, epoch=epoch, unattended=True)
    return claim and replace(claim, has_items=bool(reasons.work))


def _begin_what_is_due(taker: "_Taker", found: Conversation, *, epoch: int) -> Claim | None:
    if not _has_work(found, wanted=False, now=taker.tx.now) or _is_passed_over(taker, found):
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
    presence = Discovery(taker.tx).presence(found.user_id)
    if may_discover(presence, now=taker.tx.now, idle_for=taker.claimer.discovery_quiet_period):
        return False
    passed = transitions.skip_discovery_slot(found, now=taker.tx.now)
    Discovery(taker.tx).pass_over(passed)
    return True


@dataclass(frozen=True, slots=True)
class _Taker:
    """Takes a turn for a claimer."""

    tx: Context
    claimer: Claimer

    def begin(
        self, found: Conversation, kind: RunKind, *, epoch: int, unattended: bool
    ) -> Claim | None:
        """Begin a new run; None where all that was due turned out to be missed slots."""
        slot_at = None
        if kind is RunKind.BACKGROUND:
            beginning = transitions.begin(found, now=self.tx.now)
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
            started_at=self.tx.now,
            slot_at=slot_at,
        )
        Runs(self.tx).begin(self._row(found.user_id, run, unattended=unattended))
        return self._take(found, run)

    def go_on(self, found: Conversation, run: Run, *, epoch: int, unattended: bool) -> Claim:
        """Let a run that was handed back go on; it stays the run of the slot it began with."""
        Runs(self.tx).resume(
            found.user_id, run.id, epoch=epoch, unattended=unattended, worker=self.claimer.worker
        )
        going = replace(run, epoch=epoch, status=RunStatus.RUNNING)
        awaited = Waits(self.tx).take(found.user_id, run.id)
        return replace(self._take(found, going), resumed=True, awaited_jobs=awaited)

    def _note_missed(self, step: Step) -> None:
        if step.skipped:
            Conversations(self.tx).update(step.conversation)
            steps.write(self.tx, step, cause=None)
            self.tx.events.note_step(step)

    def _take(self, found: Conversation, run: Run) -> Claim:
        values = {
            "owner": found.user_id,
            "which": found.id,
            "run": run.id,
            "until": self.tx.tick + self.claimer.lease // MICROSECOND,
            "settled": found.settled_until,
        }
        self.tx.connection.execute(_take, values)
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
