"""Other queues with a job that does nothing, and the least that a worker could be: a bare one.

It runs with the Python of `.venv-bench`, which has their packages. `fill` puts jobs in; `work` does
them, and `listen` waits for them: it writes `ready`, waits for `go`, and writes a line for each.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from datetime import datetime
from typing import Any

#: Where lines go, whatever the libraries print.
OUT = os.dup(1)
NAME = "noop"
#: So many are put in at once.
FILL_BATCH = 1000

BARE_TABLES = """
CREATE TABLE bare (
    id bigserial PRIMARY KEY, due_at timestamptz NOT NULL, state text NOT NULL DEFAULT 'due'
);
CREATE INDEX ON bare (due_at) WHERE state = 'due';
CREATE TABLE bare_runs (id bigserial PRIMARY KEY, bare_id bigint NOT NULL, ended_at timestamptz);
CREATE TABLE bare_messages (id bigserial PRIMARY KEY, bare_id bigint NOT NULL, content text);
"""
BARE_CLAIM = """
UPDATE bare SET state = 'running' WHERE id IN (
    SELECT id FROM bare WHERE state = 'due' AND due_at <= clock_timestamp()
    ORDER BY due_at FOR UPDATE SKIP LOCKED LIMIT 5
) RETURNING id
"""
BARE_COMPLETE = """
WITH done AS (UPDATE bare SET state = 'done' WHERE id = $1 AND state = 'running' RETURNING id),
     run AS (INSERT INTO bare_runs (bare_id, ended_at) SELECT id, clock_timestamp() FROM done)
INSERT INTO bare_messages (bare_id, content)
SELECT id, 'Three mails: two can wait, one is from your landlord.' FROM done
"""


def say(line: object) -> None:
    os.write(OUT, f"{line}\n".encode())


def do_nothing() -> None:
    say(time.time_ns())


def wait_for_go() -> None:
    say("ready")
    sys.stdin.readline()
    threading.Thread(target=end_with_starter, daemon=True).start()


def end_with_starter() -> None:
    sys.stdin.read()
    os._exit(1)


async def fill_bare(url: str, count: int) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    await connection.execute(BARE_TABLES)
    await connection.execute(
        "INSERT INTO bare (due_at) SELECT clock_timestamp() FROM generate_series(1, $1::int)", count
    )
    await connection.execute("VACUUM ANALYZE bare")
    await connection.close()


async def work_bare(url: str) -> None:
    import asyncpg

    connection = await asyncpg.connect(url)
    wait_for_go()
    while rows := await connection.fetch(BARE_CLAIM):
        for row in rows:
            await connection.execute(BARE_COMPLETE, row["id"])
            do_nothing()


async def listen_bare(url: str) -> None:
    """Claim what is due when notified, or at the time that a notification tells."""
    import asyncpg

    listening, claiming = await asyncpg.connect(url), await asyncpg.connect(url)
    loop, wake = asyncio.get_running_loop(), asyncio.Event()

    def hear(*notified: Any) -> None:
        left = datetime.fromisoformat(notified[-1]).timestamp() - time.time_ns() / 1e9
        loop.call_later(max(left, 0), wake.set)

    await listening.add_listener("bare", hear)
    wait_for_go()
    while True:
        await wake.wait()
        wake.clear()
        while rows := await claiming.fetch(BARE_CLAIM):
            for row in rows:
                say(f"{row['id']} {time.time_ns()}")


async def fill_pgqueuer(url: str, count: int) -> None:
    import asyncpg
    from pgqueuer import AsyncpgDriver, Queries

    connection = await asyncpg.connect(url)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    for size in batches(count):
        await queries.enqueue([NAME] * size, [None] * size, [0] * size)
    await connection.close()


async def work_pgqueuer(url: str) -> None:
    import asyncpg
    from pgqueuer import Job, PgQueuer

    queue = PgQueuer.from_asyncpg_connection(await asyncpg.connect(url))

    @queue.entrypoint(NAME)
    async def noop(job: Job) -> None:
        del job
        do_nothing()

    wait_for_go()
    await queue.run()


def procrastinate_app(url: str) -> Any:
    from procrastinate import App, PsycopgConnector

    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name=NAME)
    async def noop() -> None:
        do_nothing()

    return app


async def fill_procrastinate(url: str, count: int) -> None:
    async with procrastinate_app(url).open_async() as app:
        await app.schema_manager.apply_schema_async()
        for size in batches(count):
            await app.tasks[NAME].batch_defer_async(*({} for _ in range(size)))


async def work_procrastinate(url: str) -> None:
    async with procrastinate_app(url).open_async() as app:
        wait_for_go()
        # As many at a time as its documentation shows; its default is one.
        await app.run_worker_async(concurrency=10, install_signal_handlers=False)


def open_dbos(url: str) -> Any:
    from dbos import DBOS

    if url.startswith("postgresql://"):
        url = url.replace("postgresql://", "postgresql+psycopg://", 1)
    DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False})

    @DBOS.workflow(name=NAME)
    def noop() -> None:
        do_nothing()

    return DBOS, url


def fill_dbos(url: str, count: int) -> None:
    from dbos import DBOSClient

    # It makes its tables when it is launched.
    dbos, url = open_dbos(url)
    dbos.launch()
    dbos.register_queue(NAME)
    dbos.destroy()
    client = DBOSClient(system_database_url=url)
    for _ in range(count):
        client.enqueue({"queue_name": NAME, "workflow_name": NAME})
    client.destroy()


def work_dbos(url: str) -> None:
    dbos, _ = open_dbos(url)
    wait_for_go()
    dbos.launch()
    dbos.register_queue(NAME)


def batches(count: int) -> list[int]:
    return [min(FILL_BATCH, count - done) for done in range(0, count, FILL_BATCH)]


def main(verb: str, kind: str, url: str, count: str = "0") -> None:
    # Before a library prints anything.
    os.dup2(2, 1)
    function = globals()[f"{verb}_{kind}"]
    working = function(url, int(count)) if verb == "fill" else function(url)
    # Some libraries want a loop, and some refuse to be called where one runs.
    if working is not None:
        asyncio.run(working)
    if verb != "fill":
        # It is ended when all that it wrote was read.
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
