"""A week of recurring work: `soak week [DAYS]`, by a clock that is set.

Every day the model's provider is down for 40 minutes, and every night the machine sleeps. Each task
has to run at every slot that it could, nothing may be paused or count as a failure, and each user
is told about each outage once when it begins and once when it is over.
"""

import asyncio
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path

import structlog
from support.doubles.clock import SetClock
from support.doubles.engine import End, Fail, ScriptedEngine
from support.faults.soak import report
from support.stage.make import MATE, NOON, USER
from support.stage.stage import Stage

from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, Status
from backburner.core.errors import ModelUnavailable
from backburner.core.ids import UserId
from backburner.core.retry import MAX_REST
from backburner.core.run import Run, RunStatus
from backburner.core.schedule import Cron, Interval, Schedule, slots
from backburner.ports import TurnRequest
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.lifecycle.schema import bring_up_to_date

DAYS = 7
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
#: Of each day, in minutes after midnight.
DOWN_FROM, DOWN_UNTIL = 14 * 60 + 10, 14 * 60 + 50
AWAKE_FROM, AWAKE_UNTIL = 7 * 60, 23 * 60
START = NOON.replace(hour=7, minute=0)
SCHEDULES: dict[str, Schedule] = {
    "every 15 minutes": Interval(15 * MINUTE, anchor=START),
    "every hour": Interval(60 * MINUTE, anchor=START),
    "every day at 9": Cron("0 9 * * *", zone="UTC"),
    "at 14:30": Cron("30 14 * * *", zone="UTC"),
    "at 3 at night": Cron("0 3 * * *", zone="UTC"),
}


@dataclass
class Provider:
    clock: SetClock

    def __call__(self, _request: TurnRequest) -> list[Fail | End]:
        if is_down(self.clock.now):
            return [Fail(ModelUnavailable("The model is overloaded."))]
        return [End({"complete": True})]


def minute_of(at: datetime) -> int:
    return at.hour * 60 + at.minute


def is_down(at: datetime) -> bool:
    return DOWN_FROM <= minute_of(at) < DOWN_UNTIL


def could_run(slot: datetime) -> bool:
    """Whether a slot has to run: awake, and the provider up for longer than a profile rests."""
    rested = slot - MAX_REST - MINUTE
    is_awake = AWAKE_FROM <= minute_of(slot) < AWAKE_UNTIL
    return is_awake and not is_down(slot) and not is_down(rested)


async def live(stage: Stage, clock: SetClock, days: int) -> None:
    end = START + days * DAY
    while clock.now < end:
        await stage.work()
        await stage.outage_reporter.run_once()
        clock.advance(MINUTE)
        if minute_of(clock.now) == AWAKE_UNTIL:
            clock.sleep(timedelta(minutes=24 * 60 - AWAKE_UNTIL + AWAKE_FROM))
            print(f"\r{(clock.now - START).days} days", end="", flush=True)


def find_violations(
    stage: Stage, tasks: dict[tuple[UserId, str], Conversation], end: datetime
) -> Iterator[str]:
    for (user, name), task in tasks.items():
        now, runs = stage.load(task), all_runs(stage, task)
        if (now.status, now.failures, now.pause_reason) != (Status.BACKGROUND, 0, None):
            yield f"{user} {name}: {now.status.value}, {now.failures} failures, {now.pause_reason}"
        ran = {run.slot_at for run in runs if run.status is RunStatus.SUCCESS}
        for slot in takewhile(lambda at: at < end, slots(SCHEDULES[name], after=START)):
            if could_run(slot) and slot not in ran:
                yield f"{user} {name}: no run for {slot}"
        statuses = Counter(run.status for run in runs)
        odd = set(statuses) - {RunStatus.SUCCESS, RunStatus.SKIPPED, RunStatus.QUEUED}
        if odd:
            yield f"{user} {name}: {statuses}"


def all_runs(stage: Stage, task: Conversation) -> list[Run]:
    return list(
        stage.database.run(lambda tx: tx.runs.history(task.user_id, task.id, limit=100_000))
    )


def count_notices(stage: Stage) -> Counter[tuple[str, bool]]:
    rows = stage.database.run(lambda tx: tx.connection.execute(tables.notices.select()).all())
    return Counter((row.user_id, "available again" in row.text) for row in rows)


async def run(days: int) -> int:
    # Thousands of runs begin and end.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    began, clock = time.monotonic(), SetClock(START)
    with tempfile.TemporaryDirectory() as folder:
        engine = make_engine(f"sqlite:///{Path(folder) / 'week.sqlite3'}")
        bring_up_to_date(engine)
        with closing(Database(engine, clock)) as database:
            stage = Stage(database, LocalBus(), ScriptedEngine(otherwise=Provider(clock)))
            tasks = {
                (user, name): await stage.task(schedule, user=user)
                for user in (USER, MATE)
                for name, schedule in SCHEDULES.items()
            }
            await live(stage, clock, days)
            violations = list(find_violations(stage, tasks, clock.now))
            notices = count_notices(stage)
            for user in (USER, MATE):
                told = (notices[user, False], notices[user, True])
                if told != (days, days):
                    violations.append(f"{user}: told {told[0]} and {told[1]} times")
            runs = Counter(run.status for task in tasks.values() for run in all_runs(stage, task))
    print()
    summary = (
        f"{days} days, {len(tasks)} tasks, {runs[RunStatus.SUCCESS]:,} runs,"
        f" {runs[RunStatus.SKIPPED]:,} skipped rows, {days} outages, each told once to each of 2"
        " users"
    )
    return report(summary, violations, began=began)


if __name__ == "__main__":
    sys.exit(asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else DAYS)))
