"""Calls of MCP tools: by the bare client of the `mcp` package, through our sessions, and by a run.

The server is a process of its own that answers at once. A run makes its calls through the gate and
the journal, on both databases, with the connection of its user. Calls are made one at a time, and
twenty at once. `--quick` makes fewer.
"""

import asyncio
import subprocess
import sys
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
)
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from statistics import median, quantiles

import sqlalchemy
from _databases import clock, postgres_databases, sqlite_files
from _report import Cell, report
from mcp import Client
from support.mcp_peers.sessions import LOOPBACK, NoSignIn
from support.people.users import add_user

from backburner import log
from backburner.actions import chat
from backburner.actions.connections.sessions import open_session
from backburner.actions.deps import Deps
from backburner.app.machines import NoTools
from backburner.bus.local import LocalBus
from backburner.core.connections.connection import (
    Connection,
    ConnectionTool,
    Ticks,
    ToolDefinition,
    definition_digest,
)
from backburner.core.ids import ConnectionId, UserId
from backburner.gateway.upstream.servers import UpstreamServers
from backburner.live.drafts import Broadcast
from backburner.ports import (
    DraftClosed,
    DraftEvent,
    EngineEvent,
    Gate,
    SessionEntries,
    ToolServer,
    TurnEnded,
    TurnRequest,
)
from backburner.store.db import Database
from backburner.store.tx import Tx
from backburner.tools.toolbox import Toolbox
from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker

IS_QUICK = "--quick" in sys.argv[1:]
ROUNDS, CALLS = (3, 40) if IS_QUICK else (10, 100)
AT_ONCE = 20
#: How many times the time of the bare client a call may take, by how many are made at once.
MOST = {1: 2.0, AT_ONCE: 4.0}
USER = UserId("u_bench")
TOOL = "echo"
BORN = datetime(2026, 1, 1, tzinfo=UTC)
SERVE = """
import asyncio
from support.mcp_peers.sdk import serving

async def serve():
    async with serving("modern") as url:
        print(url, flush=True)
        await asyncio.sleep(100_000)

asyncio.run(serve())
"""
#: Makes one call.
MakeCall = Callable[[], Awaitable[object]]
#: Makes calls, so many at once, and gives how long each took, in seconds.
Sample = Callable[[int], Awaitable[list[float]]]


@dataclass
class Measure:
    name: str
    sample: Sample
    taken: dict[int, list[float]] = field(default_factory=lambda: {1: [], AT_ONCE: []})


def main() -> None:
    log.set_up(level="warning", style="text")
    with (
        server() as url,
        sqlite_files() as new_file,
        postgres_databases() as new_database,
        new_file() as file,
        new_database() as database,
    ):
        asyncio.run(measure(url, {"SQLite": file, "PostgreSQL": database}))


@contextmanager
def server() -> Iterator[str]:
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(iter(process.stdout or ())).strip()
        finally:
            process.kill()


async def measure(url: str, databases: Mapping[str, sqlalchemy.Engine]) -> None:
    async with AsyncExitStack() as opened:
        enter = opened.enter_async_context
        measures = [
            Measure("bare mcp client", await enter(bare(url))),
            Measure("session", await enter(sessions(url))),
        ]
        for name, database in databases.items():
            measures.append(Measure(f"run, {name}", await enter(runs(url, database))))
        for number in range(ROUNDS + 1):
            for one in measures:
                for at_once in one.taken:
                    samples = await one.sample(at_once)
                    # The first round warms up.
                    one.taken[at_once] += samples if number else []
    report("gateway", [row for one in measures for row in _rows(one, measures[0])], rounds=ROUNDS)


async def take(make: MakeCall, at_once: int) -> list[float]:
    left, taken = iter(range(CALLS)), list[float]()

    async def make_some() -> None:
        for _ in left:
            began = time.perf_counter()
            await make()
            taken.append(time.perf_counter() - began)

    await asyncio.gather(*(make_some() for _ in range(at_once)))
    return taken


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[Sample]:
    numbers = count()
    async with Client(url) as client:
        yield lambda at_once: take(
            lambda: client.call_tool(TOOL, {"text": f"call {next(numbers)}"}), at_once
        )


@asynccontextmanager
async def sessions(url: str) -> AsyncIterator[Sample]:
    numbers = count()
    session = UpstreamServers(allow=LOOPBACK).open(ToolServer(title="Bench", url=url), NoSignIn())
    yield lambda at_once: take(
        lambda: session.call(TOOL, {"text": f"call {next(numbers)}"}), at_once
    )
    await session.close()


class Caller:
    """An engine that makes calls through the gate, and nothing else."""

    def __init__(self) -> None:
        self.at_once = 1
        self.taken = list[float]()
        self._numbers = count()

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        (offer,) = (each for each in request.tools if each.tool.name == TOOL)

        async def make() -> None:
            result = await gate.call(offer, {"text": f"call {next(self._numbers)}"})
            if result.failed:
                raise RuntimeError(result.text)

        # Sessions are opened by the first call, which is not measured.
        await make()
        self.taken = await take(make, self.at_once)
        yield SessionEntries(request.session_id or "s_bench", ())
        yield TurnEnded("done")


@asynccontextmanager
async def runs(url: str, engine: sqlalchemy.Engine) -> AsyncIterator[Sample]:
    """Make calls in chats of a user who has a connection to the server."""
    caller, bus, servers = Caller(), LocalBus(), UpstreamServers(allow=LOOPBACK)
    connection = Connection(
        id=ConnectionId("n_bench"),
        user_id=USER,
        name="bench",
        title="Bench",
        url=url,
        created_at=BORN,
    )
    session = servers.open(ToolServer(title="Bench", url=url), NoSignIn())
    tools = [_accept(tool) for tool in (await session.list_tools()).tools]
    await session.close()

    def add(tx: Tx) -> None:
        add_user(tx, USER)
        tx.connections.add(connection)
        tx.connections.put_tools(USER, connection.id, tools)

    with closing(Database(engine, clock)) as database:
        database.bus = bus
        database.run(add)
        deps = Deps(
            store=database,
            engines={"": caller},
            default_profile="",
            toolbox=NoTools(),
            drafts=Broadcast(),
            tool_servers=servers,
        )
        deps.toolbox = Toolbox(deps, open_session=partial(open_session, deps))
        worker, stopping = Worker(deps, bus, seats=Seats(total=5), pace=Pace()), asyncio.Event()
        working = asyncio.create_task(worker.run(stopping))

        async def sample(at_once: int) -> list[float]:
            caller.at_once = at_once
            here = await chat.start(deps, USER)
            sights = asyncio.Queue[DraftEvent]()
            with deps.drafts.listen(lambda _user, _conversation, event: sights.put_nowait(event)):
                await chat.send(deps, USER, here.id, "Call!")
                while not isinstance(await sights.get(), DraftClosed):
                    pass
            return caller.taken

        yield sample
        stopping.set()
        await working


def _accept(definition: ToolDefinition) -> ConnectionTool:
    digest = definition_digest(definition)
    return ConnectionTool(
        definition=definition, digest=digest, accepted=digest, ticks=Ticks(read_only=True)
    )


def _rows(one: Measure, base: Measure) -> Iterator[dict[str, Cell]]:
    for at_once, taken in one.taken.items():
        ratio = median(taken) / median(base.taken[at_once])
        is_base = one is base
        yield {
            "what": f"{one.name}, {at_once} at once",
            "p50 ms": median(taken) * 1e3,
            "p99 ms": quantiles(taken, n=100)[-1] * 1e3,
            "calls/s": at_once / (sum(taken) / len(taken)),
            "times bare": "" if is_base else ratio,
            "goal": "" if is_base else f"<= {MOST[at_once]:g}",
            "met": "" if is_base else "yes" if ratio <= MOST[at_once] else "no",
        }


if __name__ == "__main__":
    main()
