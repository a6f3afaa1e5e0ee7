"""The worker service: starts the chores, wakes each when it is due, and drains.

One timer reads the agenda at every hint, when a chore is due, and periodically, because hints may
be lost.
"""

import asyncio
import os
import secrets
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any, Protocol

import structlog

from backburner.actions.deps import Deps
from backburner.core.errors import MachineFailed, StoreFailed
from backburner.core.ids import ConversationId
from backburner.ports import URGENT_DEADLINE, Agenda, Bus, Claimer, Hint, HintKind, Listener
from backburner.runs.stopping import StopReason
from backburner.worker.active_runs import ActiveRuns
from backburner.worker.claiming import EARLY_WAKE, Claiming
from backburner.worker.clock_watch import ClockWatch
from backburner.worker.interruption_reporter import InterruptionReporter
from backburner.worker.lease import Leases
from backburner.worker.notice_deliverer import Deliverer
from backburner.worker.outage_attempts import OutageAttempts
from backburner.worker.outage_reporter import OutageReporter
from backburner.worker.presence import REPORT_EVERY, WorkerPresence
from backburner.worker.pruner import Pruner
from backburner.worker.question_reminder import Reminder
from backburner.worker.remover import Remover
from backburner.worker.rescuer import Rescuer
from backburner.worker.seats import Seats

#: Delay after an error.
CHORE_RETRY_SECONDS = 1.0
#: The agenda is not read more often, however much happens.
AGENDA_INTERVAL_SECONDS = 0.025
PRUNE_EVERY = timedelta(hours=1)
REMOVE_EVERY = timedelta(seconds=10)
REPORT_OUTAGES_EVERY = timedelta(seconds=30)
#: Grace period for runs that have not reached a safe point.
HAND_BACK_GRACE = timedelta(seconds=4)
#: Grace period for a claim that is being made when the worker stops.
CLAIM_GRACE = timedelta(seconds=3)
#: How long a worker that stops waits for notices that are just being sent.
SEND_GRACE = timedelta(seconds=3)
#: Concurrent background runs of a user who shares the seats with others.
SHARED_LIMIT = 3
#: Of a user who shares them with nobody: only seats limit them, in each process.
NO_LIMIT = 2**31 - 1
#: A worker whose timer or claims have not succeeded for so long is not ready.
STALL_TIMEOUT = timedelta(seconds=30)

_log = structlog.get_logger(__name__)


class Chore(Protocol):
    async def run_once(self) -> bool:
        """Do some of it; say whether there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals, limits and timeouts of a worker."""

    poll: timedelta = timedelta(seconds=5)
    batch: int = 5
    #: None: no limit for the only account, else `SHARED_LIMIT`.
    per_user: int | None = None
    lease: timedelta = timedelta(seconds=30)
    heartbeat: timedelta = timedelta(seconds=10)
    keep_runs: timedelta = timedelta(days=30)
    delivery_lease: timedelta = timedelta(minutes=1)
    #: How long runs may take to reach a safe point when the worker stops.
    drain: timedelta = timedelta(seconds=20)


@dataclass(slots=True)
class _Kept:
    """A chore and the event that wakes it."""

    chore: Chore
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    #: Set while the chore is idle.
    is_idle: asyncio.Event = field(default_factory=asyncio.Event)
    #: The time of the event loop since when it has neither succeeded nor had nothing to do.
    due_since: float | None = None

    async def wait_until_done(self) -> None:
        """Wait until it has been done, if it was woken."""
        while self.wake.is_set() or not self.is_idle.is_set():
            await self.is_idle.wait()
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class _NextDue:
    """Seconds until the next chores are due, and their names."""

    pause: float
    names: tuple[str, ...] = ()


class Worker:
    def __init__(self, deps: Deps, bus: Bus, *, seats: Seats, pace: Pace) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
        self._deps = deps
        self._bus = bus
        self._pace = pace
        self._tasks = set[asyncio.Task[None]]()
        self.underway = ActiveRuns()
        #: The time of the event loop when the agenda was last read; None: it has not started.
        self.looked_at: float | None = None
        #: Work that should have been claimed, and the time of the event loop when it was found.
        self._unclaimed: tuple[ConversationId, float] | None = None
        claimer = Claimer(
            worker=self.name,
            lease=pace.lease,
            per_user_limit=pace.per_user or SHARED_LIMIT,
            discovery_quiet_period=deps.discovery.required_idle,
            default_profile=deps.default_profile,
            machine=deps.folders.machine,
            shares_folders=deps.folders.is_shared,
        )
        self._claiming = Claiming(
            deps, claimer, seats, pace.batch, self.underway, spawn=self._spawn
        )
        self._leases = Leases(deps, pace.lease, self.underway)
        self.rescuer = Rescuer(deps)
        self._clock = ClockWatch(deps, pace.lease, pace.delivery_lease)
        self._deliverer = Deliverer(deps, pace.delivery_lease)
        self._presence = WorkerPresence(deps, self.name, self._count_seats)
        self._kept = {
            "work": _Kept(self._claiming),
            "lease": _Kept(self._leases),
            "rescue": _Kept(self.rescuer),
            "delivery": _Kept(self._deliverer),
            "question": _Kept(Reminder(deps)),
            "outage": _Kept(OutageReporter(deps)),
            "attempts": _Kept(OutageAttempts(deps, self.underway)),
            "interruptions": _Kept(InterruptionReporter(deps)),
            "presence": _Kept(self._presence),
            "pruning": _Kept(Pruner(deps, pace.keep_runs)),
            "removal": _Kept(Remover(deps)),
            "clock": _Kept(self._clock),
        }

    def _count_seats(self) -> tuple[int, int]:
        return len(self.underway), self._claiming.seats.total

    def use_seats(self, seats: Seats, default_profile: str) -> None:
        """Use other seats from the next claim on: the profiles have changed."""
        claimer = replace(self._claiming.claimer, default_profile=default_profile)
        self._claiming.seats, self._claiming.claimer = seats, claimer

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until told to stop, then let what is under way come to a good place."""
        repeated = {
            "interruptions": self._pace.poll,
            "outage": REPORT_OUTAGES_EVERY,
            "attempts": self._pace.heartbeat,
            "presence": REPORT_EVERY,
            "pruning": PRUNE_EVERY,
            "removal": REMOVE_EVERY,
        }
        loops: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            **{name: partial(self._keep, kept) for name, kept in self._kept.items()},
            **{f"{each[0]} timer": partial(self._repeat, *each) for each in repeated.items()},
            "leases": self._keep_leases,
            "timer": self._keep_time,
        }
        watched = {asyncio.create_task(self._watch(name, work)) for name, work in loops.items()}
        told = asyncio.create_task(stopping.wait())
        self.looked_at = asyncio.get_running_loop().time()
        try:
            ended, _ = await asyncio.wait({told, *watched}, return_when=asyncio.FIRST_COMPLETED)
            self._claiming.closed = True
            await self._drain()
            if told not in ended:
                raise MachineFailed("A part of the worker was ended from outside.")
        finally:
            for task in (told, *watched, *self._tasks):
                task.cancel()
            await asyncio.gather(told, *watched, *self._tasks, return_exceptions=True)
            # Nothing writes the row any more.
            with suppress(StoreFailed):
                await self._presence.end()

    def check(self, *, stalled_after: timedelta = STALL_TIMEOUT) -> None:
        """Raise if the timer or an urgent chore has stood still for too long."""
        if self.looked_at is None:
            return
        since = {name: self._kept[name].due_since for name in ("work", "lease", "rescue")}
        since["timer"] = self.looked_at
        now = asyncio.get_running_loop().time()
        for name, at in since.items():
            if at is not None and now - at > stalled_after.total_seconds():
                raise MachineFailed(f"The worker's {name} has stood still for {now - at:.0f} s.")

    async def check_queue(self, *, overdue_by: timedelta = STALL_TIMEOUT) -> None:
        """Raise if there is work that this worker has a seat for and does not claim.

        It was due that long ago when a check first found it, and has been found since then.
        """
        if self.looked_at is None:
            return
        try:
            overdue = await self._find_unclaimed(overdue_by)
        except StoreFailed:
            # The check of the database says so.
            overdue = None
        now = asyncio.get_running_loop().time()
        if overdue is None or self._unclaimed is None or self._unclaimed[0] != overdue:
            self._unclaimed = None if overdue is None else (overdue, now)
        elif now - self._unclaimed[1] >= overdue_by.total_seconds():
            raise MachineFailed(f"The worker does not claim {overdue}, whose work is due.")

    async def _find_unclaimed(self, overdue_by: timedelta) -> ConversationId | None:
        overdue = await self._claiming.find_overdue(overdue_by)
        if overdue is None:
            return None
        # A pause or a limit may have ended just now.
        await self._claim_now()
        return overdue if await self._claiming.find_overdue(overdue_by) == overdue else None

    async def _claim_now(self) -> None:
        self._claiming.may_have_replies = True
        self._kept["work"].wake.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLAIM_GRACE.total_seconds()):
                await self._kept["work"].wait_until_done()

    @property
    def finished(self) -> Counter[str]:
        """Count the runs that this process has finished, by outcome."""
        return self._claiming.finished

    async def _watch(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a part of the worker again if it fails, whatever it was."""
        while True:
            try:
                await work()
            except Exception:  # noqa: BLE001 (a worker without one of its parts looks healthy)
                _log.exception("worker.part_failed", part=name)
            await asyncio.sleep(CHORE_RETRY_SECONDS)

    async def _drain(self) -> None:
        """Ask runs to hand back at the next safe point, and after the grace period at once."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.underway.stop_all(StopReason.DRAINING)
        self._presence.is_draining = True
        self._kept["presence"].wake.set()
        # What is just being claimed is a run to hand back, too.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLAIM_GRACE.total_seconds()):
                await self._kept["work"].wait_until_done()
        left = self._pace.drain - timedelta(seconds=loop.time() - began)
        for reason, limit in (
            (StopReason.DRAINING, left),
            (StopReason.SHUTDOWN, HAND_BACK_GRACE),
        ):
            self.underway.stop_all(reason)
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=max(0, limit.total_seconds()))
        # A part that was sent and not recorded would be sent again.
        self._deliverer.closed = True
        with suppress(TimeoutError):
            async with asyncio.timeout(SEND_GRACE.total_seconds()):
                await self._kept["delivery"].wait_until_done()

    async def _keep(self, kept: _Kept) -> None:
        """Do a chore whenever it is woken, until there is no more of it."""
        while True:
            kept.is_idle.set()
            await kept.wake.wait()
            kept.is_idle.clear()
            kept.wake.clear()
            clock = asyncio.get_running_loop().time
            try:
                goes_on = True
                while goes_on:
                    kept.due_since = kept.due_since or clock()
                    goes_on = await kept.chore.run_once()
                    kept.due_since = None
            except StoreFailed as error:
                _log.warning("store.unavailable", error=str(error))
                await self._try_again(kept)
            except Exception:  # noqa: BLE001 (whatever it was, the others go on)
                _log.exception("chore.failed", chore=type(kept.chore).__name__)
                await self._try_again(kept)

    async def _try_again(self, kept: _Kept) -> None:
        await asyncio.sleep(CHORE_RETRY_SECONDS)
        kept.wake.set()

    async def _keep_time(self) -> None:
        """Wake each chore when it is due, as far as the agenda tells, and whenever a hint comes.

        A hint may be about the agenda, too. While many come, it is read once in a while.
        """
        clock = asyncio.get_running_loop().time
        with self._bus.listen(HintKind.WORK, HintKind.USER_WAITING, HintKind.CANCEL) as hints:
            while True:
                next_due = await self._look()
                read_again_at = clock() + AGENDA_INTERVAL_SECONDS
                due_at = clock() + next_due.pause
                while await self._wait(hints, next_due) and clock() < read_again_at:
                    next_due = (
                        replace(next_due, pause=max(0, due_at - clock()))
                        if due_at < read_again_at
                        else _NextDue(read_again_at - clock())
                    )

    async def _wait(self, hints: Listener, next_due: "_NextDue") -> bool:
        """Wait until chores are due and wake them; True: a hint or the end of a run came first."""
        took = asyncio.create_task(hints.take())
        ended = asyncio.create_task(self.underway.changed.wait())
        await asyncio.wait(
            {took, ended}, timeout=next_due.pause, return_when=asyncio.FIRST_COMPLETED
        )
        if took.done():
            self._hear(took.result())
        if ended.done():
            self.underway.changed.clear()
            if self._claiming.may_have_more:
                self._kept["work"].wake.set()
        came_first = took.done() or ended.done()
        if not came_first:
            self._claiming.woken_early = "work" in next_due.names
            for name in next_due.names:
                self._kept[name].wake.set()
        for task in (took, ended):
            task.cancel()
        # What is due is begun before anything else is looked at, unless claims fail.
        with suppress(TimeoutError):
            async with asyncio.timeout(CHORE_RETRY_SECONDS):
                await self._kept["work"].wait_until_done()
        return came_first

    async def _look(self) -> "_NextDue":
        """Wake what is due, and find out what is next."""
        loop = asyncio.get_running_loop()
        in_outage = self._deps.after_demo.match(self._claiming.outages.names)
        asked_at = loop.time()
        try:
            agenda, read_at = await self._deps.store.read(
                lambda tx: (tx.queue.agenda(without=in_outage), loop.time()),
                within=min(URGENT_DEADLINE, self._pace.lease),
                single=True,
            )
        except StoreFailed as error:
            _log.warning("store.unavailable", error=str(error))
            return _NextDue(CHORE_RETRY_SECONDS)
        except Exception:  # noqa: BLE001 (whatever it was, it costs one look)
            _log.exception("agenda.failed")
            return _NextDue(CHORE_RETRY_SECONDS)
        self.looked_at = loop.time()
        if self._clock.sees_jump(agenda.now, asked_at=asked_at, read_at=read_at):
            self._kept["clock"].wake.set()
        self._claiming.may_have_replies |= agenda.has_items
        self._share_seats(one_account=agenda.one_account)
        # Often enough to see every lease before it runs out.
        found = _NextDue(min(self._pace.poll, self._pace.lease).total_seconds())
        for name, left in _of(agenda).items():
            if left is not None and left <= timedelta():
                self._kept[name].wake.set()
            elif left is not None and left.total_seconds() < found.pause:
                found = _NextDue(left.total_seconds(), (name,))
        if self._claiming.is_blocked and found.pause > CHORE_RETRY_SECONDS:
            found = _NextDue(CHORE_RETRY_SECONDS)
        pause = read_at + found.pause - loop.time()
        if "work" in found.names:
            # The rest is waited for where it is claimed, with the database at hand.
            pause -= EARLY_WAKE.total_seconds()
        return replace(found, pause=max(0, pause))

    def _share_seats(self, *, one_account: bool) -> None:
        """Give the only user every seat; accounts may be added while the worker runs.

        Runs of all processes count, so that the seats of this one are no limit.
        """
        limit = self._pace.per_user or (NO_LIMIT if one_account else SHARED_LIMIT)
        claimer = self._claiming.claimer
        if claimer.per_user_limit != limit:
            self._claiming.claimer = replace(claimer, per_user_limit=limit)
            # Work that was over the limit may start now.
            self._claiming.may_have_more = True

    def _hear(self, hints: tuple[Hint, ...]) -> None:
        if all(map(self._is_of_own_run, hints)):
            return
        for hint in hints:
            if hint.kind is HintKind.USER_WAITING and hint.conversation is not None:
                for run in self.underway.background_in(hint.conversation):
                    run.stop.request(StopReason.USER_WAITING)
            if hint.kind in (HintKind.CANCEL, HintKind.EVERYTHING) and len(self.underway):
                self._kept["lease"].wake.set()
        self._claiming.may_have_more = True
        if any(hint.kind is not HintKind.WORK for hint in hints):
            self._claiming.may_have_replies = True
        self._kept["work"].wake.set()

    def _is_of_own_run(self, hint: Hint) -> bool:
        """See whether a hint says that a run of this process has ended.

        That is noticed anyway, when the run has left its seat.
        """
        is_of_ended_run = hint.kind is HintKind.WORK and hint.conversation is not None
        return is_of_ended_run and self.underway.had_run_in(hint.conversation)

    async def _keep_leases(self) -> None:
        """Renew every lease in time, and stop whatever may be about to lose it."""
        beat = self._pace.heartbeat.total_seconds()
        while True:
            left = self._leases.stop_expiring()
            await asyncio.sleep(beat if left is None else min(beat, left))
            if len(self.underway):
                self._kept["lease"].wake.set()

    async def _repeat(self, name: str, interval: timedelta) -> None:
        while True:
            self._kept[name].wake.set()
            await asyncio.sleep(interval.total_seconds())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _of(agenda: Agenda) -> dict[str, timedelta | None]:
    return {
        "work": agenda.work,
        "rescue": agenda.rescue,
        "delivery": agenda.delivery,
        "question": agenda.question,
    }
