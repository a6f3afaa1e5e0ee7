"""The queue: claims of turns. A turn is the exclusive right to act on a conversation."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

from sqlalchemy import Row, Text, and_, bindparam, update

from backburner.core import retry, routing, transitions
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.ids import ConversationId, UserId, new_run_id
from backburner.core.routing import NO_EXIT, NO_PROFILES, AfterDemo, ProfileFilter
from backburner.core.run import ItemKind, Run, RunKind, RunStatus, Turn
from backburner.core.transitions import Step
from backburner.core.work.discovery import may_discover
from backburner.core.work.timeouts import is_long
from backburner.ports import (
    Agenda,
    Claim,
    Claimer,
    EventKind,
    Hint,
    HintKind,
    RescuedTurn,
    SeatRequest,
)
from backburner.store.accounts.users import Users
from backburner.store.context import Context, Group
from backburner.store.dialect import has_row_locks, read_by_clock, read_with_clock
from backburner.store.mapping import to_conversation
from backburner.store.queries.discovery import Discovery
from backburner.store.queue import claimable
from backburner.store.queue.agenda import next_times, to_agenda
from backburner.store.queue.clock import correct_times
from backburner.store.queue.outages import Outages
from backburner.store.queue.overdue import find_overdue
from backburner.store.queue.rescue import rescue
from backburner.store.records import steps
from backburner.store.records.conversations import Conversations
from backburner.store.records.runs import Runs
from backburner.store.records.waits import Waits
from backburner.store.tables import conversations, users
from backburner.store.types import MICROSECOND

#: Later than any lease.
_END_OF_TIME = 2**62
#: A claim gives up after this many rounds; the next one continues.
MAX_CLAIM_ROUNDS = 100
#: Replies that wait at once, of those whose profiles are looked at to make room for one.
MAX_WAITING_LOOKED_AT = 20


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
#: The index of folders in use holds, whatever machine was noted before they were shared.
_take_in_shared_folder = _take.values(folder_machine="")
_who_waits = claimable.any_person_first.with_only_columns(*conversations.c).limit(
    MAX_WAITING_LOOKED_AT
)
_serve_user = update(users).where(users.c.id == _owner).values(served_at=bindparam("now"))


class Queue(Group):
    probe_delays: Mapping[str, timedelta] = MappingProxyType({})
    has_waiting_users: bool = False
    unclaimed: int = 0

    def claim(
        self,
        reply: Claimer | None,
        work: Claimer | None,
        *,
        limit: int = 1,
        has_seat: Callable[[Sequence[SeatRequest], SeatRequest], bool] = lambda _taken, _seat: True,
    ) -> Sequence[Claim]:
        seen, claims = self._look(), list[Claim]()
        is_only_due = not (seen.people or seen.more or seen.outage)
        if work is not None and limit > 1 and seen.due > 1 and is_only_due:
            claims = self._claim_due(seen, work, limit=limit, has_seat=has_seat)
        if not claims and (first := self._claim_first(seen, reply, work)) is not None:
            claims = [first]
        self._announce(claims)
        return claims

    def _look(self) -> Row[Any]:
        # One statement reads the time and how much there is to claim.
        seen, now, tick = read_by_clock(
            self.connection, self.tx.clock, claimable.how_much, claimable.how_much_now
        )
        self.tx.set_time(now, tick)
        self.has_waiting_users = bool(seen.people)
        self.unclaimed = seen.people + seen.due + seen.more
        return seen

    def _claim_first(
        self, seen: Row[Any], reply: Claimer | None, work: Claimer | None
    ) -> Claim | None:
        outages = _Outages(self.tx, reply, work) if seen.outage else None
        if outages is not None:
            work = work and outages.avoid(work)
            self.probe_delays = outages.probe_delays
        claim = None
        if reply is not None and seen.people:
            claim = self.claim_reply(reply)
        if claim is None and work is not None:
            claim = self.claim_work(work, seen=seen)
            if claim is not None and outages is not None:
                claim = outages.probe(claim, work)
        elif claim is not None and outages is not None and reply is not None:
            claim = outages.mark(claim, reply)
        return claim

    def _claim_due(
        self,
        seen: Row[Any],
        work: Claimer,
        *,
        limit: int,
        has_seat: Callable[[Sequence[SeatRequest], SeatRequest], bool],
    ) -> list[Claim]:
        """Claim work of several users, which nobody else has locked; one run each."""
        statements, look = claimable.statements_for(work), claimable.Look.of(seen)
        if seen.all_paused:
            return []
        values: dict[str, Any] = {"now": self.tx.now, "cap": work.per_user_limit}
        passed_over = {"passed_over": list(work.passed_over)} if work.passed_over else {}
        whose_turn = statements.whose_turn(
            look, waits=False, passes_over=bool(passed_over), several=True
        )
        zones = {
            user.id: user.zone
            for user in self._execute(whose_turn, {**values, **passed_over, "users": limit})
        }
        claims, seats = list[Claim](), list[SeatRequest]()
        taker = _Taker(self.tx, work, serves_user=True)
        for row in self._longest_waiting(statements, look, list(zones), values):
            conversation = Conversations(self.tx).read(row)
            seat = taker.seat_for(conversation, RunKind.BACKGROUND)
            if not has_seat(seats, seat):
                continue
            claim = _claim_due(taker, conversation, epoch=row.epoch + 1)
            if claim is not None:
                zone, remembers = zones[row.user_id], bool(row.remembers)
                claims.append(replace(claim, zone=zone, has_memories=remembers))
                seats.append(seat)
        return claims

    def _longest_waiting(
        self,
        statements: claimable.Statements,
        look: claimable.Look,
        owners: Sequence[UserId],
        values: Mapping[str, Any],
    ) -> Iterator[Row[Any]]:
        """Lock the longest waiting work of each of these users, in their order."""
        if owners and has_row_locks(self.connection):
            rows = self._execute(
                statements.longest_waiting_of_each(look), {"owners": owners, **values}
            )
            yield from sorted(rows, key=lambda row: owners.index(row.user_id))
            return
        for owner in owners:
            yield from self._execute(statements.longest_waiting(look), {"owner": owner, **values})

    def _announce(self, claims: Sequence[Claim]) -> None:
        """Note the runs that begin, and hint at them and at slots that were skipped."""
        self.unclaimed -= len(claims)
        for claim in claims:
            self.tx.events.note(claim.turn.user_id, claim.turn.conversation_id, EventKind.RUN)
        for user, noted in self.tx.events.noted.items():
            self.tx.mentions |= {Hint(HintKind.CHANGED, user, which): None for which, _ in noted}

    def claim_reply(self, claimer: Claimer) -> Claim | None:
        """Claim the conversation whose user has waited longest for a reply."""
        person_first = claimable.statements_for(claimer).person_first
        if claimer.passed_over:
            person_first = person_first.where(users.c.id.not_in(claimer.passed_over))
        row = self.connection.execute(person_first).first()
        if row is None:
            return None
        conversation = Conversations(self.tx).read(row)
        handed_back = Runs(self.tx).queued(conversation.user_id, conversation.id).get(RunKind.REPLY)
        taker, epoch = _Taker(self.tx, claimer), row.epoch + 1
        claim: Claim | None
        if handed_back is not None:
            claim = taker.resume(conversation, handed_back[0], epoch=epoch, unattended=False)
        else:
            item = ItemKind(row.item)
            claim = taker.begin(
                conversation, RunKind.REPLY, epoch=epoch, unattended=False, item=item
            )
        return claim and replace(
            claim,
            has_children=bool(row.has_children),
            has_connections=bool(row.has_connections),
        )

    def claim_work(
        self,
        claimer: Claimer,
        *,
        seen: Row[Any] | None = None,
        a_lot: int = claimable.A_LOT,
    ) -> Claim | None:
        """Claim the work that has waited longest, of the user who was served least recently.

        The user's row is locked first, so that concurrent claims cannot exceed the limit per user.
        `seen` is the last count of what there is to claim, if one was just read.
        """
        taker = _Taker(self.tx, claimer, serves_user=True)
        statements = claimable.statements_for(claimer)
        values: dict[str, Any] = {"now": self.tx.now, "cap": claimer.per_user_limit}
        passed_over = list(claimer.passed_over)
        # By the time the lock is granted, the work may be gone, or all its slots missed.
        for _ in range(MAX_CLAIM_ROUNDS):
            seen = seen or self.connection.execute(claimable.how_much, {"now": self.tx.now}).one()
            look = claimable.Look.of(seen, a_lot=a_lot)
            if seen.all_paused or not (look.has_due or look.has_more):
                return None
            locked = self._lock_user(statements, look, values, passed_over)
            if locked is None:
                return None
            user, has_items = locked.id, bool(seen.people or seen.more)
            seen = None
            row = self.connection.execute(
                statements.longest_waiting(look), {"owner": user, **values}
            ).first()
            if row is None:
                # Others have locked all conversations of this user.
                passed_over.append(user)
                continue
            claim = _claim_row(taker, row, has_items=has_items)
            if claim is not None:
                return replace(claim, zone=locked.zone, has_memories=bool(row.remembers))
        return None

    def waiting_profiles(self, after_demo: AfterDemo = NO_EXIT) -> Sequence[str]:
        """Return the profiles of replies that users wait for, the longest waiting first."""
        waiting = (to_conversation(row, ()) for row in self.connection.execute(_who_waits))
        profiles = (routing.next_profile(one, RunKind.REPLY, after_demo) for one in waiting)
        return list(dict.fromkeys(profiles))

    def overdue(
        self, reply: Claimer | None, work: Claimer | None, *, by: timedelta
    ) -> ConversationId | None:
        return find_overdue(self.tx, reply, work, by=by)

    def rescue(self, *, all_of_them: bool = False) -> RescuedTurn | None:
        return rescue(self.tx, tick=_END_OF_TIME if all_of_them else self.tx.tick)

    def correct_times(self, *, lease: timedelta, delivery_lease: timedelta, jumped: bool) -> int:
        return correct_times(self.tx, leases=(lease, delivery_lease), jumped=jumped)

    def agenda(self, *, without: ProfileFilter = NO_PROFILES) -> Agenda:
        row, now, tick = read_with_clock(self.connection, self.tx.clock, next_times(without))
        return to_agenda(row, now=now, tick=tick)

    def _lock_user(
        self,
        statements: claimable.Statements,
        look: claimable.Look,
        values: dict[str, Any],
        passed_over: list[UserId],
    ) -> Row[Any] | None:
        """Choose the next user and lock their row."""
        # Users whose row is locked come last.
        tries = (False, True) if has_row_locks(self.connection) else (False,)
        for is_waiting in tries:
            whose_turn = statements.whose_turn(
                look, waits=is_waiting, passes_over=bool(passed_over)
            )
            given = {**values, "passed_over": passed_over} if passed_over else values
            user = self.connection.execute(whose_turn, given).first()
            if user is not None and is_waiting:
                self.connection.execute(claimable.wait_longer)
            if user is not None:
                return user
        return None


def _claim_row(taker: "_Taker", row: Row[Any], *, has_items: bool) -> Claim | None:
    """Claim a locked conversation for the most urgent reason; None: there is none any more.

    Without `has_items`, a look at all inboxes has just found nothing: only a slot can be due. It
    was found before its row was locked: where there is no seat any more, nothing is claimed.
    """
    tx, epoch = taker.tx, row.epoch + 1
    conversation = Conversations(tx).read(row)
    user, conversation_id = conversation.user_id, conversation.id
    if not has_items:
        return _claim_due(taker, conversation, epoch=epoch)
    values = {"owner": user, "which": conversation_id}
    reasons = tx.connection.execute(claimable.reasons, values).one()
    if reasons.person:
        return None
    handed_back = Runs(tx).queued(user, conversation_id) if reasons.queued else {}
    has_reply = RunKind.REPLY not in handed_back and reasons.reply
    if has_reply and taker.has_seat(conversation, RunKind.REPLY):
        item = ItemKind(reasons.reply)
        return taker.begin(conversation, RunKind.REPLY, epoch=epoch, unattended=True, item=item)
    for kind in (RunKind.REPLY, RunKind.BACKGROUND):
        run, wait_until = handed_back.get(kind, (None, None))
        is_asking = kind is RunKind.BACKGROUND and conversation.status is Status.WAITING_INPUT
        is_over = wait_until is not None and wait_until <= tx.now
        has_seat = taker.has_seat(conversation, kind, resumed=True)
        if run is not None and is_over and not is_asking and has_seat:
            if run.own_trouble_since is not None:
                profile = taker.seat_for(conversation, kind, resumed=True).profile
                outage = Outages(tx).find(profile or taker.claimer.default_profile)
                run = retry.resume(run, outage, due_at=wait_until, now=tx.now)
            return taker.resume(conversation, run, epoch=epoch, unattended=True)
    if RunKind.BACKGROUND in handed_back:
        return None
    works = conversation.status is Status.BACKGROUND
    requested = bool(reasons.work if works else reasons.work_at_once)
    item = reasons.work and ItemKind(reasons.work)
    return _claim_background(taker, conversation, epoch=epoch, requested=requested, item=item)


def _claim_due(taker: "_Taker", conversation: Conversation, *, epoch: int) -> Claim | None:
    """Claim the due slot of a conversation whose inbox is empty."""
    return _claim_background(taker, conversation, epoch=epoch, requested=False)


def _claim_background(
    taker: "_Taker",
    conversation: Conversation,
    *,
    epoch: int,
    requested: bool,
    item: ItemKind | None = None,
) -> Claim | None:
    """Claim background work; `item`: the kind of the first item in the inbox, if there is one."""
    now = taker.tx.now
    if not taker.has_seat(conversation, RunKind.BACKGROUND):
        return None
    if not transitions.has_background_work(conversation, has_items=requested, now=now):
        return None
    if not requested and _skips_discovery(taker, conversation):
        return None
    claim = taker.begin(conversation, RunKind.BACKGROUND, epoch=epoch, unattended=True, item=item)
    return claim and replace(claim, has_items=item is not None)


def _skips_discovery(taker: "_Taker", conversation: Conversation) -> bool:
    """Skip the due slot of discovery while the user is busy or away."""
    if conversation.kind is not Kind.DISCOVERY:
        return False
    presence = Discovery(taker.tx).presence(conversation.user_id)
    if may_discover(presence, now=taker.tx.now, idle_for=taker.claimer.discovery_quiet_period):
        return False
    skipped = transitions.skip_discovery_slot(conversation, now=taker.tx.now)
    Discovery(taker.tx).pass_over(skipped)
    return True


class _Outages:
    """The outages of profiles, while a claim is made."""

    def __init__(self, tx: Context, reply: Claimer | None, work: Claimer | None) -> None:
        self._group = Outages(tx)
        outages = {outage.profile: outage for outage in self._group.all()}
        # Without a seat for it, a probe is left to others.
        probed = self._group.lock_due_probes() if work else frozenset()
        self._profiles = frozenset(outages)
        self.probe_delays = {
            name: max(outage.until - tx.now, retry.FIRST_REST if work else timedelta())
            for name, outage in outages.items()
            if name not in probed
        }
        for claimer in filter(None, (reply, work)):
            if claimer.default_profile in self.probe_delays:
                self.probe_delays[""] = self.probe_delays[claimer.default_profile]

    def avoid(self, claimer: Claimer) -> Claimer:
        """Claim no background work of a profile in an outage, unless it may be probed."""
        names = {*claimer.full_profiles, *self.probe_delays}
        return replace(claimer, full_profiles=tuple(sorted(names)))

    def mark(self, claim: Claim, claimer: Claimer) -> Claim:
        """Mark a reply, which tries its model whether there is an outage or not."""
        profile = claim.profile or claimer.default_profile
        if profile not in self._profiles:
            return claim
        return replace(claim, in_outage=True)

    def probe(self, claim: Claim, claimer: Claimer) -> Claim:
        """Make a claim the probe of its profile, if there is an outage."""
        profile = claim.profile or claimer.default_profile
        if profile not in self._profiles:
            return claim
        self._group.begin_probe(profile)
        return replace(claim, in_outage=True, is_probe=True)


@dataclass(frozen=True, slots=True)
class _Taker:
    """Saves the turn of one claim."""

    tx: Context
    claimer: Claimer
    #: Whether its user is the most recently served one then.
    serves_user: bool = False

    def seat_for(
        self, conversation: Conversation, kind: RunKind, *, resumed: bool = False
    ) -> SeatRequest:
        """Return the seat that the next run of a kind needs."""
        after_demo = self.claimer.after_demo
        profile = routing.next_profile(conversation, kind, after_demo, resumed=resumed)
        return SeatRequest(profile, is_long(conversation.run_timeout))

    def has_seat(self, conversation: Conversation, kind: RunKind, *, resumed: bool = False) -> bool:
        return self.claimer.has_seat(self.seat_for(conversation, kind, resumed=resumed))

    def begin(
        self,
        conversation: Conversation,
        kind: RunKind,
        *,
        epoch: int,
        unattended: bool,
        item: ItemKind | None,
    ) -> Claim | None:
        """Start a new run; None: every due slot was missed, and none is caught up."""
        slot_at = None
        if kind is RunKind.BACKGROUND:
            beginning = transitions.begin(conversation, now=self.tx.now)
            self._save_missed(beginning.step)
            if not beginning.runs:
                return None
            conversation, slot_at = beginning.step.conversation, beginning.slot_at
        run = Run(
            id=new_run_id(),
            conversation_id=conversation.id,
            kind=kind,
            status=RunStatus.RUNNING,
            epoch=epoch,
            schedule_revision=conversation.schedule_revision,
            started_at=self.tx.now,
            slot_at=slot_at,
            started_by=transitions.find_start(conversation, slot_at=slot_at, item=item),
        )
        Runs(self.tx).begin(self._row(conversation.user_id, run, unattended=unattended))
        return self._take(conversation, run)

    def resume(
        self, conversation: Conversation, run: Run, *, epoch: int, unattended: bool
    ) -> Claim:
        """Resume a run that was handed back; it keeps the slot it started with."""
        Runs(self.tx).resume(
            conversation.user_id,
            run.id,
            epoch=epoch,
            unattended=unattended,
            worker=self.claimer.worker,
        )
        resumed = replace(
            run,
            epoch=epoch,
            status=RunStatus.RUNNING,
            waits_for_user=False,
            resumed_at=self.tx.now,
        )
        awaited = Waits(self.tx).take(conversation.user_id, run.id)
        return replace(self._take(conversation, resumed, resumed=True), awaited_jobs=awaited)

    def _save_missed(self, step: Step) -> None:
        if step.skipped:
            resumed_at = Users(self.tx).load(step.conversation.user_id).resumed_at
            step = transitions.blame_pause(step, resumed_at=resumed_at)
            Conversations(self.tx).update(step.conversation)
            steps.write(self.tx, step, cause=None)
            self.tx.write_now()
            self.tx.events.note_step(step)

    def _take(self, conversation: Conversation, run: Run, *, resumed: bool = False) -> Claim:
        values = {
            "owner": conversation.user_id,
            "which": conversation.id,
            "run": run.id,
            "until": self.tx.tick + self.claimer.lease // MICROSECOND,
            "settled": conversation.settled_until,
        }
        folder = conversation.folder
        if folder is not None and self.claimer.shares_folders:
            conversation = replace(conversation, folder=replace(folder, machine=""))
            self.tx.write(_take_in_shared_folder, values)
        else:
            self.tx.write(_take, values)
        if self.serves_user:
            self.tx.write(_serve_user, {"owner": conversation.user_id, "now": self.tx.now})
        turn = Turn(
            conversation.user_id,
            conversation.id,
            run.id,
            run.epoch,
            run.kind,
            began_at=self.tx.now,
        )
        seat = self.seat_for(conversation, run.kind, resumed=resumed)
        return Claim(turn, run, conversation, profile=seat.profile, resumed=resumed)

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
            "started_by": run.started_by and run.started_by.value,
            "started_at": run.started_at,
            "worker": self.claimer.worker,
            "tokens": 0,
        }
