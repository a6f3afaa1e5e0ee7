"""A clock that ran ahead and was corrected, and a machine that was started anew."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, update
from support.doubles.engine import ScriptedEngine
from support.stage.stage import PLACE, Stage
from support.stage.until import until
from support.stage.whole_worker import working

from backburner.bus.local import LocalBus
from backburner.core.conversation import Conversation, Destination, Notify
from backburner.core.schedule import Interval
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.worker.clock_watch import ClockWatch
from backburner.worker.rescuer import Rescuer
from backburner.worker.service import Pace, Worker

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
OFTEN = Pace(poll=timedelta(milliseconds=20))


class WrongClock:
    """The clock of the machine, and how wrong it is."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    @property
    def now(self) -> datetime:
        return datetime.now(UTC) + self.ahead

    def read(self) -> tuple[datetime, int]:
        return self.now, time.monotonic_ns() // 1000


@pytest.fixture
def clock() -> WrongClock:
    return WrongClock()


@pytest.fixture
def stage(migrated_sqlite_url: str, clock: WrongClock) -> Iterator[Stage]:
    with closing(Database(make_engine(migrated_sqlite_url), clock.read)) as database:
        yield Stage(database, LocalBus(), ScriptedEngine())


async def run_ahead(stage: Stage, clock: WrongClock, worker: Worker, task: Conversation) -> None:
    """Let recurring work run while the clock is a day ahead, until the worker has seen that."""
    clock.ahead = DAY
    await until(lambda: (stage.load(task).next_run_at or clock.now) > clock.now)
    ran_at = asyncio.get_running_loop().time()
    await until(lambda: (worker.looked_at or 0) > ran_at)


async def test_recurring_work_goes_on_when_a_clock_that_ran_ahead_is_corrected(
    stage: Stage, clock: WrongClock
) -> None:
    async with working(stage, pace=OFTEN) as worker:
        task = await stage.task(Interval(HOUR, anchor=clock.now - timedelta(minutes=1)))
        await run_ahead(stage, clock, worker, task)
        clock.ahead = timedelta()
        await until(lambda: (stage.load(task).next_run_at or clock.now) < clock.now + HOUR)


async def test_recurring_work_goes_on_when_the_clock_was_corrected_while_nothing_ran(
    stage: Stage, clock: WrongClock
) -> None:
    async with working(stage, pace=OFTEN) as worker:
        task = await stage.task(Interval(HOUR, anchor=clock.now - timedelta(minutes=1)))
        await run_ahead(stage, clock, worker, task)
    clock.ahead = timedelta()
    async with working(stage, pace=OFTEN):
        await until(lambda: (stage.load(task).next_run_at or clock.now) < clock.now + HOUR)


def test_an_answer_that_took_long_says_nothing_about_the_clock(
    stage: Stage, clock: WrongClock
) -> None:
    watch = ClockWatch(stage.deps, HOUR, HOUR)
    now = clock.now
    assert watch.sees_jump(now, asked_at=100, read_at=100.1)

    # The time was read at the beginning of these ten seconds.
    assert not watch.sees_jump(now, asked_at=100.1, read_at=110)
    assert not watch.sees_jump(now + timedelta(seconds=10), asked_at=110, read_at=110.1)
    assert watch.sees_jump(now, asked_at=111, read_at=111.1)


async def test_a_delivery_under_way_at_a_reboot_goes_on(stage: Stage) -> None:
    await stage.task(reports_to=(Destination(PLACE, "ann"),), notify=Notify.ALWAYS)
    await stage.work()
    stage.database.run(lambda tx: tx.deliveries.lease(lease=timedelta(minutes=1)))
    # The machine had been up for long: its clock of leases was far ahead of today's.
    uptime = 100 * DAY // timedelta.resolution
    stage.database.run(
        lambda tx: tx.connection.execute(
            update(tables.deliveries).values(leased_until=tx.tick + uptime, not_before=tx.now)
        )
    )
    await Rescuer(stage.deps).rescue_all()
    async with working(stage, pace=OFTEN):
        states = select(tables.deliveries.c.state)
        await until(
            lambda: stage.database.run(
                lambda tx: tx.connection.execute(states).scalars().all() == ["sent"]
            )
        )
