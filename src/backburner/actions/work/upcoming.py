"""The calendar of a user: everything that will run in a period."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from backburner.actions.deps import Deps
from backburner.core import schedule as schedules
from backburner.core.conversation import Conversation, Kind, Status
from backburner.core.errors import BadRequest
from backburner.core.ids import UserId
from backburner.core.schedule import MAX_SCHEDULE_AHEAD, TICK, After, Event, Schedule
from backburner.core.schedule.calendar import PlannedTimes, plan
from backburner.ports import PlannedWork, Tx

MAX_PERIOD = timedelta(days=31)
MAX_WORK = 200
MAX_ENTRIES = 1_000


class PlanState(StrEnum):
    SCHEDULED = "scheduled"
    NEEDS_YOU = "needs_you"  #: Its times are skipped until you answer.
    PAUSED = "paused"  #: Its times are those if it were resumed now.


@dataclass(frozen=True, slots=True)
class UpcomingWork:
    conversation: Conversation
    schedule: Schedule
    state: PlanState


@dataclass(frozen=True, slots=True)
class UpcomingEntry:
    work: UpcomingWork
    times: PlannedTimes
    #: Its time has come, and it waits to be taken up.
    is_due: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    start: datetime
    end: datetime
    zone: str
    #: All background work is paused, of this user or of everyone.
    all_paused: bool
    #: By the first of their times.
    entries: Sequence[UpcomingEntry]
    #: Work that runs after other work, or whenever there is an event.
    untimed: Sequence[UpcomingWork]
    #: There is more than was listed.
    is_cut: bool


async def upcoming(
    deps: Deps,
    user: UserId,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    days: int = 7,
    with_paused: bool = False,
) -> Upcoming:
    """List what will run from `start` to before `end`; by default in the next days."""

    def work(tx: Tx) -> Upcoming:
        begins = start or tx.now
        _check_near(begins, now=tx.now)
        ends = end or begins + timedelta(days=days)
        _check_period(begins, ends)
        profile = tx.browse.profile(user)
        found = tx.tasks.planned(user, limit=MAX_WORK + 1)
        planned = list(_planned(found[:MAX_WORK], with_paused=with_paused))
        period: dict[str, Any] = {"start": begins, "end": ends, "zone": profile.zone}
        entries = [
            entry for one, row in planned for entry in _entries(one, row, now=tx.now, **period)
        ]
        entries.sort(key=lambda entry: (entry.times.first_at, entry.work.conversation.id))
        return Upcoming(
            **period,
            all_paused=profile.paused or profile.all_paused,
            entries=entries[:MAX_ENTRIES],
            untimed=[one for one, _ in planned if isinstance(one.schedule, After | Event)],
            is_cut=len(found) > MAX_WORK or len(entries) > MAX_ENTRIES,
        )

    return await deps.store.read(work)


def _check_near(start: datetime, *, now: datetime) -> None:
    if abs(start - now) > MAX_SCHEDULE_AHEAD:
        raise BadRequest("`from` is more than ten years away.", hint="Check the year.")


def _check_period(start: datetime, end: datetime) -> None:
    if not timedelta() < end - start <= MAX_PERIOD:
        raise BadRequest(
            f"`to` must be after `from`, and at most {MAX_PERIOD.days} days later.",
            hint="Ask for a week or a month.",
        )


def _planned(
    found: Sequence[PlannedWork], *, with_paused: bool
) -> Iterator[tuple[UpcomingWork, PlannedWork]]:
    for row in found:
        conversation = row.conversation
        if conversation.schedule is None:
            continue
        state = {
            Status.BACKGROUND: PlanState.SCHEDULED,
            Status.WAITING_INPUT: PlanState.NEEDS_YOU,
            Status.ACTIVE: PlanState.PAUSED,
        }.get(conversation.status)
        if state is not None and (with_paused or state is not PlanState.PAUSED):
            yield UpcomingWork(conversation, conversation.schedule, state), row


def _entries(
    one: UpcomingWork, row: PlannedWork, *, now: datetime, start: datetime, end: datetime, zone: str
) -> Iterator[UpcomingEntry]:
    conversation, schedule = one.conversation, one.schedule
    first_at = conversation.next_run_at or schedules.first_run_at(schedule, now=now)
    if first_at is None:
        return
    is_due = first_at <= now
    # What is under way, and jobs that are about to begin, are no part of a plan.
    if is_due and (row.is_running or conversation.kind is Kind.JOB):
        first_at = schedules.next_run_at(schedule, after=now)
        is_due = False
    if first_at is None:
        return
    left = None
    if conversation.max_runs is not None:
        left = max(0, conversation.max_runs - conversation.run_count)
    times = plan(
        schedule,
        first_at=max(first_at, now),
        start=max(start, now),
        end=end,
        zone=zone,
        left=left,
    )
    for number, planned in enumerate(times):
        yield UpcomingEntry(one, planned, is_due=is_due and number == 0 and start - TICK < now)
