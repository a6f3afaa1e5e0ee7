"""Other queues, and a bare worker, in an environment of their own; each does a job of its own kind.

They do less in a job than a run does: no message, notice, outcome or events; the bare worker writes
a run and a message.
"""

import sqlite3
import subprocess
import sys
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from _cells import Cell, Measured
from _environments import PEERS
from _grounds import Grounds
from _processes import crew
from _run_cells import measure_jobs, server_usage

PROGRAM = Path(__file__).with_name("_peer_program.py")
BARE = "bare asyncpg"
#: Jobs whose end is not written yet.
LEFT = {
    "bare": "bare WHERE state <> 'done'",
    "pgqueuer": "pgqueuer",
    "procrastinate": "procrastinate_jobs WHERE status <> 'succeeded'",
    "dbos": "dbos.workflow_status WHERE status <> 'SUCCESS'",
    "dbos on SQLite": "workflow_status WHERE status <> 'SUCCESS'",
}


def peer_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    del opened
    PEERS.make()
    few, many = ground.scale.runs, ground.scale.jobs

    def cell(name: str, kind: str, count: int) -> Cell:
        beside = "" if kind == "bare" else BARE
        return Cell(name, partial(_on_postgres, ground, kind, count), beside=beside, ours=False)

    return [
        cell(BARE, "bare", many),
        cell("pgqueuer", "pgqueuer", many),
        cell("procrastinate", "procrastinate", few),
        cell("DBOS, PostgreSQL", "dbos", few),
        Cell("DBOS, SQLite", partial(_on_sqlite, ground, "dbos", few), ours=False),
    ]


def peer(verb: str, kind: str, url: str, *more: object) -> list[str]:
    return [str(PEERS.python), str(PROGRAM), verb, kind, url, *(str(one) for one in more)]


def fill_peer(kind: str, url: str, count: int) -> None:
    done = subprocess.run(
        peer("fill", kind, url, count), check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"Jobs for {kind} could not be put in:\n{done.stderr[-2000:]}")


def _on_postgres(ground: Grounds, kind: str, count: int) -> Measured:
    with ExitStack() as opened:
        url = opened.enter_context(ground.postgres())
        used = opened.enter_context(server_usage(ground))
        fill_peer(kind, url, count)
        connection = opened.enter_context(psycopg.connect(url, autocommit=True))
        workers = opened.enter_context(crew(peer("work", kind, url)))
        return measure_jobs(workers, count, server=used, left=partial(_count, connection, kind))


def _on_sqlite(ground: Grounds, kind: str, count: int) -> Measured:
    with ExitStack() as opened:
        file = opened.enter_context(ground.data()) / "peer.sqlite"
        fill_peer(kind, f"sqlite:///{file}", count)
        connection = opened.enter_context(closing(sqlite3.connect(file)))
        workers = opened.enter_context(crew(peer("work", kind, f"sqlite:///{file}")))
        left = partial(_count, connection, f"{kind} on SQLite")
        return measure_jobs(workers, count, server=dict, left=left)


def _count(connection: Any, kind: str) -> int:
    ((left,),) = connection.execute(f"SELECT count(*) FROM {LEFT[kind]}").fetchall()  # noqa: S608
    return int(left)
