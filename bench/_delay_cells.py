"""How soon work begins that comes at random moments: due now, or set for a moment.

For what is due now the clock starts just before the call that sets it up, so that this call is a
part of it. Beside it a bare listener that is notified, or sleeps until the time that it was told.
Workers and those who set work up are different processes.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
from _cells import Cell, Measured
from _databases import clock
from _environments import PEERS
from _grounds import USERS, Grounds
from _peers import fill_peer, peer
from _processes import Crew, crew
from _run_cells import program
from support.stage.work import start_work

from backburner.actions.deps import Deps
from backburner.app.machines import NoTools
from backburner.bus.postgres import PostgresBus
from backburner.core.ids import UserId
from backburner.core.schedule import Immediate, Scheduled
from backburner.core.transitions import Brief
from backburner.store.db import Database
from backburner.store.dialect import make_engine

#: Of pieces of work in a second, and how far ahead that with a time is set up.
RATE, AHEAD = 10, timedelta(seconds=1)
#: Work that does not count: connections are opened, statements prepared, and pages read.
FIRST = 10

#: Sets work up for a moment, or for now, and gives its id.
SetUp = Callable[[datetime | None], Awaitable[str]]
Opened = AbstractAsyncContextManager[SetUp]


def delay_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    del opened
    PEERS.make()
    cells = []
    for what, ahead in {"due now": None, "scheduled": AHEAD}.items():
        bare = f"bare listener, {what}"
        cells += [
            Cell(bare, partial(_bare, ground, ahead), ours=False),
            Cell(f"start, {what}", partial(_ours, ground, ahead), beside=bare),
        ]
    return cells


def _ours(ground: Grounds, ahead: timedelta | None) -> Measured:
    with ExitStack() as opened:
        url = opened.enter_context(ground.postgres("quiet"))
        data = opened.enter_context(ground.data())
        command = program(data=data, database_url=url, tell="starts")
        workers = opened.enter_context(crew(command))
        return _measure(ground, workers, partial(_setting_up, url), ahead)


def _bare(ground: Grounds, ahead: timedelta | None) -> Measured:
    with ground.postgres() as url:
        fill_peer("bare", url, 0)
        with crew(peer("listen", "bare", url)) as workers:
            return _measure(ground, workers, partial(_setting_up_bare, url), ahead)


def _measure(
    ground: Grounds, workers: Crew, setting_up: Callable[[], Opened], ahead: timedelta | None
) -> Measured:
    workers.wait_until_ready()
    workers.tell("go")
    due = asyncio.run(_set_up_all(setting_up, ground.scale.samples, ahead))
    began = dict(line.split() for line in workers.take(len(due) + FIRST))
    return {"ms": [(int(began[name]) / 1e9 - due_at) * 1e3 for name, due_at in due.items()]}


async def _set_up_all(
    setting_up: Callable[[], Opened], count: int, ahead: timedelta | None
) -> dict[str, float]:
    """Set work up at random moments; give when each was due."""
    due: dict[str, float] = {}
    moments = sorted(random.uniform(0, count / RATE) for _ in range(count))  # noqa: S311

    async def add(moment: float) -> None:
        await asyncio.sleep(moment)
        now = time.time_ns() / 1e9
        due_at = None if ahead is None else datetime.fromtimestamp(now, UTC) + ahead
        due[await set_up(due_at)] = now if due_at is None else due_at.timestamp()

    async with setting_up() as set_up:
        for _ in range(FIRST):
            await set_up(None)
            await asyncio.sleep(1 / RATE)
        await asyncio.gather(*(add(moment) for moment in moments))
        # It is due before the connections are closed.
        await asyncio.sleep(0 if ahead is None else ahead.total_seconds())
    return due


@asynccontextmanager
async def _setting_up(url: str) -> AsyncIterator[SetUp]:
    numbers = iter(range(10**6))
    async with PostgresBus(url) as bus:
        with closing(Database(make_engine(url), clock)) as database:
            database.bus = bus
            deps = Deps(store=database, engines={}, default_profile="", toolbox=NoTools())

            async def set_up(due_at: datetime | None) -> str:
                schedule = Immediate() if due_at is None else Scheduled(due_at)
                brief = Brief(title="Work", prompt="Do it.", schedule=schedule)
                # Each user may have only so much at a time.
                user = UserId(f"u_{next(numbers) % USERS}")
                return (await start_work(deps, user, brief)).id

            yield set_up


@asynccontextmanager
async def _setting_up_bare(url: str) -> AsyncIterator[SetUp]:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def set_up(due_at: datetime | None) -> str:
            moment = due_at or datetime.fromtimestamp(time.time_ns() / 1e9, UTC)
            cursor = await connection.execute(
                "WITH new AS (INSERT INTO bare (due_at) VALUES (%s) RETURNING id)"
                " SELECT id, pg_notify('bare', %s) FROM new",
                (moment, moment.isoformat()),
            )
            ((number, _),) = await cursor.fetchall()
            return str(number)

        yield set_up
