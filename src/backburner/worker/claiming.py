"""Claims runs while seats are free, replies before background work, and performs them."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import structlog

from backburner.actions.deps import Deps
from backburner.actions.models import changes
from backburner.core.errors import StoreBusy, StoreFailed
from backburner.core.ids import ConversationId, UserId
from backburner.core.routing import AfterDemo
from backburner.core.run import RunKind, RunStatus, Turn
from backburner.ports import URGENT_DEADLINE, Claim, Claimer, SeatRequest, Tx
from backburner.runs import perform, prepare
from backburner.runs.stopping import StopReason
from backburner.worker.active_runs import ActiveRun, ActiveRuns
from backburner.worker.known_outages import KnownOutages
from backburner.worker.seats import Seats

#: The timer wakes a claim this long before work is due; see `_wait_until_due`.
EARLY_WAKE = timedelta(milliseconds=5)
#: Iterations of the event loop until the agent of a new run has started; see `_let_it_start`.
LOOP_STEPS_TO_START = 5
#: How long the work of a user is left alone whose rows were locked.
PASS_OVER_SECONDS = 5.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _ClaimResult:
    """The result of a transaction that claims; of one that failed, as much as is known."""

    #: The first turn, and whether there may be others with it.
    first: Turn | None = None
    is_several: bool = False
    #: Users wait for replies.
    has_waiting_users: bool = True
    #: How much more there may be to claim.
    unclaimed: int = 1
    #: By profile, how long an outage lasts until the next attempt.
    probe_delays: Mapping[str, timedelta] = field(default_factory=dict)
    #: How much of the batch it uses up; None: there is nothing else to claim.
    count: int | None = None


@dataclass(slots=True)
class Claiming:
    deps: Deps
    claimer: Claimer
    seats: Seats
    #: Max claims of one call of `run_once`.
    batch: int
    underway: ActiveRuns
    spawn: Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
    #: Set to stop claiming.
    closed: bool = False
    #: Finished runs by outcome.
    finished: Counter[str] = field(default_factory=Counter)
    #: Others have locked the users whose work is left: it is to be claimed again soon.
    is_blocked: bool = False
    #: Users may wait for replies.
    may_have_replies: bool = True
    #: There may be more than was claimed last, or than seats were free for.
    may_have_more: bool = True
    #: The timer has woken this chore early.
    woken_early: bool = False
    outages: KnownOutages = field(default_factory=KnownOutages)
    #: The time of the event loop until when only one run is claimed in a transaction.
    _one_by_one_until: float = 0.0
    #: Users whose rows were locked, and the time of the event loop until when they are left out.
    _passed_over: dict[UserId, float] = field(default_factory=dict)
    #: Preparation of this turn failed: claimed again without it, and given up. With another epoch
    #: or kind it is another turn, which may well be prepared.
    _unprepared: dict[ConversationId, tuple[int, RunKind]] = field(default_factory=dict)

    @property
    def has_background_seat(self) -> bool:
        return self.seats.free(RunKind.BACKGROUND, self.underway.profiles) > 0

    async def run_once(self) -> bool:
        """Claim work for all free seats; return whether there may be more."""
        if not self.has_background_seat and not self.may_have_replies:
            # Work is claimed when a run has ended.
            self.may_have_more = True
            return False
        count, self.is_blocked = 0, False
        while not self.closed and count < self.batch:
            result = await self._take(self.batch - count)
            if result.count is not None:
                count += result.count
                await _let_it_start()
            # Whatever comes later has a hint or a time of its own.
            is_all = result.count is None or not result.unclaimed
            has_seat = result.has_waiting_users or self.has_background_seat
            if count < self.batch and (is_all or not has_seat):
                if result.has_waiting_users and not self.closed:
                    await self._make_room()
                return False
        return not self.closed

    async def find_overdue(self, by: timedelta) -> ConversationId | None:
        """Find work that has a free seat here, and that nobody has claimed for so long."""
        if self.closed or self.is_blocked:
            return None
        after_demo = self.deps.after_demo
        claimers = [self._claimer(kind, after_demo) for kind in (RunKind.REPLY, RunKind.BACKGROUND)]
        return await self.deps.store.transact(
            lambda tx: tx.queue.overdue(*claimers, by=by), within=self._deadline
        )

    @property
    def _deadline(self) -> timedelta:
        return min(URGENT_DEADLINE, self.claimer.lease)

    async def _take(self, limit: int) -> _ClaimResult:
        """Claim up to so many runs in one transaction, and start them."""
        asked_at = asyncio.get_running_loop().time()
        for user, until in list(self._passed_over.items()):
            if until <= asked_at:
                del self._passed_over[user]
        limit = 1 if asked_at < self._one_by_one_until else limit
        result = _ClaimResult()
        # A hint that comes meanwhile sets them again.
        self.may_have_replies = self.may_have_more = False
        try:
            runs = await self.deps.store.transact(
                lambda tx: self._claim_and_prepare(tx, limit, result), within=URGENT_DEADLINE
            )
        except Exception as error:  # noqa: BLE001 (what cannot be helped is raised again)
            self.may_have_replies = self.may_have_more = True
            result.unclaimed, result.count = 1, self._recover(error, result, asked_at)
            return result
        result.count = len(runs) or None
        self.may_have_replies |= result.has_waiting_users
        self.may_have_more |= result.unclaimed > 0
        self.outages.update(result.probe_delays)
        lease = self.claimer.lease.total_seconds()
        for claim, prepared in runs:
            # Counted from before it was asked for: nobody can have the turn sooner than that.
            taken = ActiveRun(claim, prepared, lease_until=asked_at + lease)
            self.underway.add(taken)
            taken.task = self.spawn(self._perform(taken))
        return result

    def _recover(self, error: Exception, result: _ClaimResult, asked_at: float) -> int | None:
        """Leave out what could not be claimed, which counts as one; None: there is nothing else."""
        is_busy, first = isinstance(error, StoreBusy), result.first
        if isinstance(error, StoreFailed) and not is_busy:
            raise error
        if result.is_several:
            # Any of them may have been the one: tried one by one, it is found.
            self._one_by_one_until = asked_at + PASS_OVER_SECONDS
            if not is_busy:
                _log.warning("claim.failed", exc_info=error)
            return 0
        if first is None and not is_busy:
            raise error
        if first is None:
            # Only work of users whose row is locked is left.
            self.is_blocked = True
            return None
        if is_busy:
            # Somebody has locked rows of this user; others need not wait for them.
            self._passed_over[first.user_id] = asked_at + PASS_OVER_SECONDS
        else:
            # Left as it was it would be the first to be claimed again, for ever.
            _log.error("run.prepare_failed", conversation=first.conversation_id, exc_info=error)
            self._unprepared[first.conversation_id] = _identify(first)
        return 1

    def _claim_and_prepare(
        self, tx: Tx, limit: int, result: _ClaimResult
    ) -> list[tuple[Claim, prepare.PreparedRun | None]]:
        """Claim a reply, or background work of several conversations."""
        # Until it is known; a transaction may be tried again.
        result.first, result.is_several, result.has_waiting_users = None, limit > 1, True
        if self.woken_early:
            self.woken_early = False
            _wait_until_due(tx)
        seats = self.seats.free(RunKind.BACKGROUND, self.underway.profiles)
        # Read once: the models may be changed meanwhile.
        after_demo = self.deps.after_demo
        claims = tx.queue.claim(
            self._claimer(RunKind.REPLY, after_demo),
            self._claimer(RunKind.BACKGROUND, after_demo),
            limit=min(limit, seats),
            has_seat=self._has_seat,
        )
        claims = [changes.leave_demo(tx, claim, after_demo) for claim in claims]
        result.probe_delays = tx.queue.probe_delays
        result.has_waiting_users = tx.queue.has_waiting_users
        result.unclaimed = tx.queue.unclaimed
        result.first, result.is_several = claims[0].turn if claims else None, len(claims) > 1
        ready = [claim for claim in claims if not self._is_unprepared(claim.turn)]
        turns = [claim.turn for claim in ready]
        prepared = dict(zip(turns, prepare.prepare(self.deps, tx, ready), strict=True))
        return [(claim, prepared.get(claim.turn)) for claim in claims]

    def _is_unprepared(self, turn: Turn) -> bool:
        return self._unprepared.get(turn.conversation_id) == _identify(turn)

    def _claimer(self, kind: RunKind, after_demo: AfterDemo) -> Claimer | None:
        """Make the claimer of a kind of run; None: no seat is free."""
        taken = self.underway.profiles
        if not self.seats.free(kind, taken):
            return None
        full = self.seats.full_profiles(kind, taken)
        claimer = replace(
            self.claimer,
            full_profiles=full,
            after_demo=after_demo,
            passed_over=tuple(self._passed_over),
        )
        if kind is RunKind.REPLY:
            return claimer
        long = self.underway.long_profiles
        return replace(
            claimer,
            full_profiles=self.outages.added_to(full),
            short_profiles=self.seats.short_profiles(long),
            short_only=self.seats.is_short_only(long),
        )

    def _has_seat(self, besides: Sequence[SeatRequest], wanted: SeatRequest) -> bool:
        """Whether a background run has a seat, besides others that are claimed with it."""
        taken = [*self.underway.profiles, *(seat.profile for seat in besides)]
        if wanted.profile in self.seats.full_profiles(RunKind.BACKGROUND, taken):
            return False
        if not wanted.is_long:
            return True
        long = [*self.underway.long_profiles, *(seat.profile for seat in besides if seat.is_long)]
        is_for_short = self.seats.is_short_only(long)
        return not is_for_short and wanted.profile not in self.seats.short_profiles(long)

    async def _perform(self, taken: ActiveRun) -> None:
        try:
            if taken.prepared is None:
                await perform.give_up(self.deps, taken.claim, taken.stop)
                self._unprepared.pop(taken.claim.turn.conversation_id, None)
                self.finished["failure"] += 1
            else:
                run = perform.perform(self.deps, taken.claim, taken.prepared, taken.stop)
                outcome = await run
                self.finished[outcome] += 1
                # A run that was handed back goes on, and one that failed may begin again.
                self.may_have_more |= outcome != RunStatus.SUCCESS.value
        except Exception:  # noqa: BLE001 (whatever it was, the worker goes on)
            self.finished["crashed"] += 1
            self.may_have_more = True
            # Its lease runs out, and it is given again.
            _log.exception("run.crashed", run=taken.claim.run.id)
        finally:
            self.underway.remove(taken)

    async def _make_room(self) -> None:
        """Stop a background run if a reply waits, and has no seat or no folder to write in."""
        await self._free_folders()
        if not len(self.underway) or not self._lacks_seat():
            return
        after_demo = self.deps.after_demo
        waiting = await self.deps.store.read(
            lambda tx: tx.queue.waiting_profiles(after_demo), within=self._deadline, single=True
        )
        for profile in waiting:
            in_the_way = self._find_in_the_way(self.seats.profile(profile))
            if in_the_way:
                if not any(other.is_stopping for other in in_the_way):
                    in_the_way[-1].stop.request(StopReason.USER_WAITING)
                return

    def _find_in_the_way(self, wanted: str) -> Sequence[ActiveRun]:
        """Return the background runs of which one has to end for a reply under a profile."""
        # Counted again: a run may have ended meanwhile.
        if not self._lacks_seat(wanted):
            return ()
        no_seat_at_all = not self.seats.free(RunKind.REPLY, self.underway.profiles)
        return [
            other
            for other in self.underway
            if other.claim.turn.kind is RunKind.BACKGROUND
            and (no_seat_at_all or self.seats.profile(other.profile) == wanted)
        ]

    async def _free_folders(self) -> None:
        """Stop background runs that write in folders in which replies have to write."""
        in_folders = {
            (other.claim.turn.user_id, folder.path, folder.machine): other
            for other in self.underway
            if other.claim.turn.kind is RunKind.BACKGROUND
            and (folder := other.claim.conversation.folder) is not None
            and not folder.read_only
        }
        if not in_folders:
            return
        after_demo = self.deps.after_demo
        wanted = await self.deps.store.read(
            lambda tx: tx.folders.wanted_for_replies(after_demo), within=self._deadline, single=True
        )
        # Without a seat, the reply could not use the folder either.
        full = self.seats.full_profiles(RunKind.REPLY, self.underway.profiles)
        for (user, path, machine), profiles in wanted.items():
            key = user, path, self.deps.folders.bound_to(machine)
            if key in in_folders and any(profile not in full for profile in profiles):
                in_folders[key].stop.request(StopReason.USER_WAITING)

    def _lacks_seat(self, profile: str | None = None) -> bool:
        """Whether a reply of this profile has no seat; None: of any profile."""
        taken = self.underway.profiles
        full = self.seats.full_profiles(RunKind.REPLY, taken)
        is_full = bool(full) if profile is None else profile in full
        return is_full or not self.seats.free(RunKind.REPLY, taken)


def _identify(turn: Turn) -> tuple[int, RunKind]:
    """Tell the turns of a conversation apart; the id of a new run is lost with its transaction."""
    return turn.epoch, turn.kind


async def _let_it_start() -> None:
    """Yield until a claimed run has started: the next claim competes for the interpreter.

    Runs that share an allowance then reserve from it in the order of their claims.
    """
    for _ in range(LOOP_STEPS_TO_START):
        await asyncio.sleep(0)


def _wait_until_due(tx: Tx) -> None:
    """Wait for work that is due in a moment, inside the transaction that will claim it.

    A timer fires late, and a claim then needs a thread, a connection and a transaction. All of
    that takes milliseconds, and is done before the work is due instead of after.
    """
    left = tx.queue.agenda().work
    if left is not None and left <= 2 * EARLY_WAKE:
        time.sleep(left.total_seconds())
