"""How soon work begins that is due, now and at a set time; and what a worker costs that has none.

Beside it the least that could be done with the bare driver on the same server: a listener that is
notified in the transaction that makes a row due, or sleeps until it is, and claims it with one
statement. Both are timed from the moment at which the work is due to the one at which it begins.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psycopg
from _databases import clock, postgres_databases, vacuum
from _report import Cell, report
from sqlalchemy import Engine
from support.people.users import add_user
from support.stage.work import start_work

from backburner.actions.deps import Deps
from backburner.app.machines import NoTools
from backburner.bus.postgres import PostgresBus
from backburner.core.ids import ConversationId, UserId
from backburner.core.schedule import Immediate, Scheduled
from backburner.core.transitions import Brief
from backburner.ports import Gate, TurnEnded, TurnRequest
from backburner.store.db import Database
from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker

IS_QUICK = "--quick" in sys.argv[1:]
#: Of each kind, and how long an idle worker is watched, in seconds.
SAMPLES, IDLE = (50, 10) if IS_QUICK else (500, 30)
AHEAD = timedelta(milliseconds=100)
#: After so many, what they left behind is cleared away: an idle server has time for that.
TIDY_AFTER = 50
USER = UserId("u_bench")

Sample = Callable[[bool], Awaitable[float]]


def main() -> None:
    with postgres_databases() as make, make() as engine:
        asyncio.run(measure(engine))


async def measure(engine: Engine) -> None:
    async with bare(engine) as raw, backburner(engine) as ours:
        samples: dict[tuple[str, bool], list[float]] = {}
        for number in range(SAMPLES + 5):
            if number % TIDY_AFTER == 0:
                await asyncio.to_thread(vacuum, engine)
            for name, sample in (("bare", raw), ("backburner", ours)):
                for later in (False, True):
                    taken = await sample(later)
                    if number >= 5:
                        samples.setdefault((name, later), []).append(taken)
    queries, busy = await idle(engine)
    rows = [_row(samples, later=later) for later in (False, True)]
    report("latency", rows, samples=SAMPLES, idle_queries_a_second=queries, idle_cpu_percent=busy)


def _row(samples: dict[tuple[str, bool], list[float]], *, later: bool) -> dict[str, Cell]:
    raw, ours = samples["bare", later], samples["backburner", later]
    return {
        "due": "at a set time" if later else "now",
        "bare p50 ms": median(raw) * 1e3,
        "p50 ms": median(ours) * 1e3,
        "ratio": median(ours) / median(raw),
        "goal": "<= 3",
        "bare p99 ms": quantiles(raw, n=100)[-1] * 1e3,
        "p99 ms": quantiles(ours, n=100)[-1] * 1e3,
        "p99 ratio": quantiles(ours, n=100)[-1] / quantiles(raw, n=100)[-1],
        "p99 goal": "<= 5",
    }


@asynccontextmanager
async def backburner(engine: Engine) -> AsyncIterator[Sample]:
    """Give what sets up work in one process's place, and waits until a worker's agent begins."""
    began: dict[ConversationId, asyncio.Future[float]] = {}
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with PostgresBus(url) as there, PostgresBus(url) as here:
        with (
            closing(Database(engine, clock)) as database,
            closing(Database(engine, clock)) as workers,
        ):
            database.bus, workers.bus = here, there
            database.run(lambda tx: add_user(tx, USER))
            deps, working = _deps(database, began), _deps(workers, began)
            worker = Worker(working, there, seats=Seats(total=5), pace=Pace())
            stopping = asyncio.Event()
            task = asyncio.create_task(worker.run(stopping))

            async def sample(later: bool) -> float:  # noqa: FBT001 (one of two kinds)
                due = datetime.fromtimestamp(_now(), UTC) + AHEAD
                schedule = Scheduled(due) if later else Immediate()
                brief = Brief(title="Work", prompt="Do it.", schedule=schedule)
                born = await start_work(deps, USER, brief)
                wall = _now()
                due_at = due.timestamp() if later else wall
                started = began.setdefault(born.id, asyncio.get_running_loop().create_future())
                return await started - due_at

            try:
                yield sample
            finally:
                stopping.set()
                await task


def _deps(database: Database, began: dict[ConversationId, "asyncio.Future[float]"]) -> Deps:
    class Noting:
        async def run(self, request: TurnRequest, gate: Gate) -> Any:
            del gate
            loop = asyncio.get_running_loop()
            future = began.setdefault(request.conversation.id, loop.create_future())
            future.set_result(_now())
            yield TurnEnded("", {"complete": True})

    return Deps(store=database, engines={"": Noting()}, default_profile="", toolbox=NoTools())


@asynccontextmanager
async def bare(engine: Engine) -> AsyncIterator[Sample]:
    """Give the same with nothing but the driver: a table, a notification, a timer."""
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    began: dict[int, asyncio.Future[float]] = {}
    async with (
        await psycopg.AsyncConnection.connect(url, autocommit=True) as listening,
        await psycopg.AsyncConnection.connect(url) as claiming,
        await psycopg.AsyncConnection.connect(url) as telling,
    ):
        await telling.execute(
            "CREATE TABLE bare"
            " (id bigserial PRIMARY KEY, due_at timestamptz, claimed_at timestamptz)"
        )
        await telling.execute("CREATE INDEX ON bare (due_at) WHERE claimed_at IS NULL")
        await telling.commit()
        await listening.execute("LISTEN bare")
        task = asyncio.create_task(_claim_bare(listening, claiming, began))

        async def sample(later: bool) -> float:  # noqa: FBT001 (one of two kinds)
            due = datetime.fromtimestamp(_now(), UTC)
            due += AHEAD if later else timedelta()
            cursor = await telling.execute(
                "INSERT INTO bare (due_at) VALUES (%s) RETURNING id", (due,)
            )
            ((number,),) = await cursor.fetchall()
            await telling.execute("SELECT pg_notify('bare', %s)", (due.isoformat(),))
            await telling.commit()
            due_at = due.timestamp() if later else _now()
            started = began.setdefault(number, asyncio.get_running_loop().create_future())
            return await started - due_at

        try:
            yield sample
        finally:
            task.cancel()


async def _claim_bare(
    listening: Any, claiming: Any, began: dict[int, "asyncio.Future[float]"]
) -> None:
    loop = asyncio.get_running_loop()
    wake = asyncio.Event()

    async def hear() -> None:
        async for note in listening.notifies():
            late = datetime.fromisoformat(note.payload).timestamp() - _now()
            loop.call_later(max(late, 0), wake.set)

    hearing = asyncio.create_task(hear())
    try:
        while True:
            await wake.wait()
            wake.clear()
            cursor = await claiming.execute(
                "UPDATE bare SET claimed_at = clock_timestamp() WHERE id IN (SELECT id FROM bare"
                " WHERE claimed_at IS NULL AND due_at <= clock_timestamp() ORDER BY due_at"
                " FOR UPDATE SKIP LOCKED LIMIT 5) RETURNING id"
            )
            found = await cursor.fetchall()
            await claiming.commit()
            for (number,) in found:
                began.setdefault(number, loop.create_future()).set_result(_now())
    finally:
        hearing.cancel()


async def idle(engine: Engine) -> tuple[float, float]:
    """Watch a worker that has nothing to do: statements a second, and its share of a core."""
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with PostgresBus(url) as bus:
        with closing(Database(engine, clock)) as database:
            database.bus = bus
            worker = Worker(_deps(database, {}), bus, seats=Seats(total=5), pace=Pace())
            stopping = asyncio.Event()
            task = asyncio.create_task(worker.run(stopping))
            await asyncio.sleep(6)
            log = _log_statements(url)
            before, cpu = _statements(log), _cpu()
            await asyncio.sleep(IDLE)
            busy, after = _cpu() - cpu, _statements(log)
            stopping.set()
            await task
    return (after - before) / IDLE, 100 * busy / IDLE


def _log_statements(url: str) -> Path:
    """Let the server write down every statement, and tell where."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET log_statement = 'all'")
        connection.execute("SELECT pg_reload_conf()")
        ((folder,),) = connection.execute("SHOW data_directory").fetchall()
    time.sleep(0.5)
    return Path(folder).parent / "log"


def _statements(log: Path) -> int:
    lines = log.read_text().splitlines()
    return sum(1 for line in lines if "LOG:  statement:" in line or "LOG:  execute" in line)


def _now() -> float:
    return time.time_ns() / 1e9


def _cpu() -> float:
    used = os.times()
    return used.user + used.system


if __name__ == "__main__":
    main()
