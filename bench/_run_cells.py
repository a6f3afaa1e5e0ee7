"""Whole runs from the claim to the commit, and claims among few and many users."""

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from _cells import Cell, Measured
from _cycle import claim_and_forget
from _databases import LATER, fill, postgres_databases, sqlite_files
from _grounds import Grounds
from _processes import (
    Crew,
    bytes_written,
    cpu_seconds,
    crew,
    family_cpu_seconds,
    machine_seconds,
)

PROGRAM = Path(__file__).parent / "_program.py"
ONE, TWO = (f"run, PostgreSQL, {processes} x 20 seats" for processes in (1, 2))
LONG_ONE, LONG_TWO = (f"run of 50 ms, PostgreSQL, {processes} x 5 seats" for processes in (1, 2))
#: Conversations among which claims are timed, and how many of them are due.
CLAIM_SIZE, CLAIM_DUE = 100_000, 1_000
FEW, MANY = 10, 10_000
FIRST_CLAIMS = 10
#: How often the last jobs of peers are looked at, in seconds.
LOOK_AGAIN = 0.02


def run_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    del opened
    on_postgres = partial(_runs_on_postgres, ground)
    return [
        Cell(ONE, partial(on_postgres, 1), beside="bare asyncpg"),
        Cell(TWO, partial(on_postgres, 2), beside=ONE),
        Cell("run, SQLite, 20 seats", lambda: _runs_on_sqlite(ground), beside="DBOS, SQLite"),
        Cell(LONG_ONE, partial(on_postgres, 1, seats=5, seconds=0.05)),
        Cell(LONG_TWO, partial(on_postgres, 2, seats=5, seconds=0.05), beside=LONG_ONE),
    ]


def program(**options: object) -> list[str]:
    """Give the command of our program with these options; True stands alone."""
    command = [sys.executable, str(PROGRAM)]
    for name, value in options.items():
        command += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return command


def measure_jobs(
    workers: Crew,
    count: int,
    *,
    server: Callable[[], Mapping[str, float]],
    left: Callable[[], int] = lambda: 0,
) -> Measured:
    """Let workers do all there is; the first is where the time begins, for a start is none of it.

    `server` gives what the server has used up so far. `left` counts jobs whose end is not written
    yet: some are done before that, and it is written for many at once.
    """
    workers.wait_until_ready()
    workers.tell("go")
    stamps = [int(line) for line in workers.take(1)]

    def used() -> dict[str, float]:
        return {
            "client CPU us/run": 1e6 * sum(cpu_seconds(pid) for pid in workers.pids),
            "cores busy on the machine": machine_seconds(),
            **server(),
        }

    before = used()
    stamps += [int(line) for line in workers.take(count - 1)]
    while left():
        time.sleep(LOOK_AGAIN)
        stamps.append(time.time_ns())
    difference = {name: value - before[name] for name, value in used().items()}
    seconds = (max(stamps) - min(stamps)) / 1e9
    cores = difference.pop("cores busy on the machine") / seconds
    each = {name: value / (count - 1) for name, value in difference.items()}
    ours = sum(value for name, value in each.items() if "CPU" in name) / 1e6
    measured = {
        "runs/s": (count - 1) / seconds,
        **each,
        "cores used": ours * (count - 1) / seconds,
    }
    return measured | ({"cores busy on the machine": cores} if len(workers.pids) > 1 else {})


@contextmanager
def server_usage(ground: Grounds) -> Iterator[Callable[[], Mapping[str, float]]]:
    """Give what asks how much the PostgreSQL server has worked and logged."""
    with closing(psycopg.connect(ground.server, autocommit=True)) as connection:

        def used() -> Mapping[str, float]:
            ((size,),) = connection.execute(
                "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')"
            ).fetchall()
            return {
                "server CPU us/run": 1e6 * family_cpu_seconds(ground.server_pid),
                "WAL bytes/run": float(size),
            }

        yield used


def _runs_on_postgres(
    ground: Grounds, processes: int, *, seats: int = 20, seconds: float = 0
) -> Measured:
    count = ground.scale.runs
    with ExitStack() as opened:
        url = opened.enter_context(ground.postgres("due"))
        commands = []
        for _ in range(processes):
            data = opened.enter_context(ground.data())
            options = {"data": data, "database_url": url, "concurrency": seats}
            commands.append(program(**options, seconds=seconds, tell="commits"))
        used = opened.enter_context(server_usage(ground))
        with crew(*commands) as workers:
            measured = measure_jobs(workers, count, server=used)
        with psycopg.connect(url) as connection:
            _check(connection, count)
        return measured


def _runs_on_sqlite(ground: Grounds) -> Measured:
    count = ground.scale.runs
    with ExitStack() as opened:
        data = opened.enter_context(ground.data("due"))
        command = program(data=data, concurrency=20, tell="commits")
        workers = opened.enter_context(crew(command))

        def used() -> Mapping[str, float]:
            return {"bytes written/run": bytes_written(workers.pids[0])}

        measured = measure_jobs(workers, count, server=used)
        (file,) = data.glob("*.sqlite3")
        with closing(sqlite3.connect(file)) as connection:
            _check(connection, count)
        return measured


def _check(connection: Any, count: int) -> None:
    """See that what was counted was done."""
    ((messages, notices),) = connection.execute(
        "SELECT (SELECT count(*) FROM messages WHERE role = 'assistant'),"
        " (SELECT count(*) FROM notices)"
    ).fetchall()
    if messages != count or notices != count:
        sys.exit(f"{count} runs were to leave a message and a notice: {messages}, {notices}.")


def claim_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    cells = []
    size = CLAIM_SIZE // 10 if ground.scale.is_quick else CLAIM_SIZE
    for name, databases in {"PostgreSQL": postgres_databases, "SQLite": sqlite_files}.items():
        make = opened.enter_context(databases())
        for people in (FEW, MANY):
            engine = opened.enter_context(make())
            fill(engine, conversations=size, due=CLAIM_DUE, people=people)
            # These do not count: statements are prepared, and pages read.
            claim_and_forget(engine, LATER, FIRST_CLAIMS)
            claims = partial(claim_and_forget, engine, LATER, ground.scale.claims)
            cells.append(
                Cell(
                    f"claim, {name}, {people:,} users",
                    partial(_milliseconds, claims),
                    beside=f"claim, {name}, {FEW:,} users" if people == MANY else "",
                )
            )
    return cells


def _milliseconds(claims: Callable[[], list[float]]) -> Measured:
    return {"ms": [seconds * 1e3 for seconds in claims()]}
