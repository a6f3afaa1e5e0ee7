"""How soon a client is told of what was committed, and what a thousand cost that only wait.

Two servers on one PostgreSQL: what is committed by this process is told by a server in another one.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from _databases import clock, postgres_databases
from _report import Cell, report
from sqlalchemy import Engine
from support.people.tokens import issue_token
from support.people.users import add_user

from backburner.actions.deps import Deps
from backburner.app.machines import NoTools
from backburner.bus.postgres import PostgresBus
from backburner.core.accounts import Scope
from backburner.core.ids import UserId
from backburner.ports import EventKind
from backburner.store.db import Database
from backburner.store.lifecycle.schema import bring_up_to_date
from backburner.store.tables import metadata

IS_QUICK = "--quick" in sys.argv[1:]
SAMPLES, CLIENTS, IDLE = (100, 200, 5) if IS_QUICK else (500, 1000, 20)
MOST_MS, MOST_KB, MOST_CPU = 250, 50, 5
#: A user each has ten clients.
EACH = 10


def main() -> None:
    with postgres_databases() as make, make() as engine:
        # The program wants to see how its tables came to be.
        metadata.drop_all(engine)
        bring_up_to_date(engine)
        asyncio.run(measure(engine))


async def measure(engine: Engine) -> None:
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with AsyncExitStack() as opened:
        database = opened.enter_context(closing(Database(engine, clock)))
        database.bus = await opened.enter_async_context(PostgresBus(url))
        deps = Deps(store=database, engines={}, default_profile="", toolbox=NoTools())
        tokens = [await _token(deps, database, UserId(f"u_{n}")) for n in range(CLIENTS // EACH)]
        async with serving(url) as (address, pid):
            taken = [taken async for taken in _samples(address, database, tokens[0])]
            idle = await _idle(address, pid, tokens)
    late = quantiles(taken, n=100)[-1] * 1e3
    rows: list[dict[str, Cell]] = [
        _row("commit to event, p50 ms", median(taken) * 1e3, MOST_MS),
        _row("commit to event, p99 ms", late, MOST_MS),
        _row("memory of one that waits, KB", idle["kb"], MOST_KB),
        _row(f"CPU of {CLIENTS} that wait, %", idle["cpu"], MOST_CPU),
    ]
    report("events", rows, samples=SAMPLES, clients=CLIENTS)


def _row(what: str, value: float, limit: float) -> dict[str, Cell]:
    met = "met" if value < limit else "NOT MET"
    return {"what": what, "measured": value, "goal": f"< {limit:g}", "": met}


async def _token(deps: Deps, database: Database, user: UserId) -> str:
    await database.transact(lambda tx: add_user(tx, user))
    return await issue_token(deps, user, [Scope.READ], name="bench")


@asynccontextmanager
async def serving(url: str) -> AsyncIterator[tuple[str, int]]:
    """Start the real program, and give its address and process."""
    with tempfile.TemporaryDirectory(prefix="bb-bench-") as folder:
        options = ("--serve", "--traces", f"{folder}/traces", "--data", f"{folder}/data")
        command = (sys.executable, "-m", "support.faults.program", "--database-url", url)
        program = await asyncio.create_subprocess_exec(
            *command,
            *options,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={**os.environ, "BACKBURNER_CONNECTIONS_PER_USER": "100"},
        )
        try:
            output: Any = program.stdout
            async with asyncio.timeout(60):
                line = (await output.readline()).decode()
            yield line.split("//")[-1].strip(), program.pid
        finally:
            program.terminate()
            await program.wait()


async def _follow(address: str, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    request = f"GET /api/events HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(request.encode())
    await _until(reader, b"event: hello")
    return reader, writer


async def _until(reader: asyncio.StreamReader, start: bytes) -> None:
    async with asyncio.timeout(60):
        while True:
            line = await reader.readline()
            if line.startswith(start):
                return
            if not line or b" 401 " in line:
                raise EOFError(line.decode())


async def _samples(address: str, database: Database, token: str) -> AsyncIterator[float]:
    reader, writer = await _follow(address, token)
    for number in range(SAMPLES + 5):
        await database.transact(lambda tx: tx.changed(UserId("u_0"), None, EventKind.USER))
        committed = time.perf_counter()
        await _until(reader, b"event: change")
        if number >= 5:
            yield time.perf_counter() - committed
    writer.close()


async def _idle(address: str, pid: int, tokens: list[str]) -> dict[str, float]:
    # A few first: what is loaded with the first request is not theirs.
    first = [await _follow(address, token) for token in tokens[:5]]
    before = _resident(pid)
    waiting = [await _follow(address, token) for token in tokens * EACH]
    await asyncio.sleep(1)
    kb = (_resident(pid) - before) / len(waiting) / 1024
    busy = _cpu(pid)
    await asyncio.sleep(IDLE)
    cpu = (_cpu(pid) - busy) / IDLE * 100
    for _, writer in (*first, *waiting):
        writer.close()
    return {"kb": kb, "cpu": cpu}


def _resident(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _cpu(pid: int) -> float:
    """Give the seconds that a process has worked."""
    fields: list[Any] = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
