"""Turns to be timed, each up to its first words and up to its end: of a model alone, through the
relay, of an engine, and of a whole run on a database.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import httpx2
from _databases import clock
from support.contracts.engine.harness import EngineHarness, RecordingGate, Shared
from support.people.users import add_user

from backburner.actions import chat
from backburner.actions.deps import Deps
from backburner.app.machines import NoTools
from backburner.bus.local import LocalBus
from backburner.core.ids import UserId
from backburner.engine.claude.engine import ClaudeEngine, ClaudeModel
from backburner.engine.claude.relay import Relay
from backburner.live.drafts import Broadcast
from backburner.ports import DraftClosed, DraftEvent, Engine, TextDelta
from backburner.process.launcher import CleanLauncher
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.worker.seats import Seats
from backburner.worker.service import Pace, Worker

STALL = timedelta(seconds=30)
USER = UserId("u_bench")
MODEL = "claude-sonnet-4-5"
#: How the first words look in a stream of each API.
MESSAGES, COMPLETIONS = ("/v1/messages", b"text_delta"), ("/v1/chat/completions", b'"content"')


class Taken(NamedTuple):
    """Seconds."""

    first: float
    whole: float


Sample = Callable[[], Awaitable[Taken]]


@contextmanager
def model_api() -> Iterator[str]:
    """Give the address of a stand-in for a model, in a process of its own; it says hello."""
    command = [sys.executable, "-m", "support.model_api"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(iter(process.stdout or ())).strip()
        finally:
            process.terminate()


@asynccontextmanager
async def direct(address: str, api: tuple[str, bytes], *, size: int = 0) -> AsyncIterator[Sample]:
    """Ask at an address, in a request that holds so many bytes of words."""
    path, mark = api
    said = [{"role": "user", "content": "Please. " + "x" * size}]
    body = json.dumps({"model": MODEL, "stream": True, "max_tokens": 9, "messages": said})
    async with httpx2.AsyncClient(timeout=STALL.total_seconds(), trust_env=False) as client:

        async def sample() -> Taken:
            began, first = time.perf_counter(), 0.0
            async with client.stream("POST", address + path, content=body) as answer:
                answer.raise_for_status()
                async for chunk in answer.aiter_bytes():
                    if not first and mark in chunk:
                        first = time.perf_counter() - began
            return Taken(first, time.perf_counter() - began)

        yield sample


@asynccontextmanager
async def through_relay(address: str, *, size: int = 0) -> AsyncIterator[Sample]:
    relay = Relay(address=address, headers={}, stall=STALL)
    line = await relay.open()
    line.begin(RecordingGate())
    async with direct(line.address, MESSAGES, size=size) as sample:
        yield sample
    await relay.close()


@asynccontextmanager
async def claude_engine(address: str, folder: Path, *, warm: int) -> AsyncIterator[ClaudeEngine]:
    engine = ClaudeEngine(
        ClaudeModel(name=MODEL, address=address, headers={}, stall=STALL),
        launcher=CleanLauncher(),
        homes=folder / "homes",
        workspace=lambda user: folder / "workspaces" / user,
        warm=warm,
    )
    yield engine
    await engine.close()


def new_turns(engine: Engine) -> Sample:
    """Take turns that remember nothing."""

    async def sample() -> Taken:
        return await take_turn(EngineHarness(Shared(engine)))

    return sample


def next_turns(engine: Engine) -> Sample:
    """Take turns of one chat."""
    harness = EngineHarness(Shared(engine))

    async def sample() -> Taken:
        return await take_turn(harness)

    return sample


async def take_turn(harness: EngineHarness) -> Taken:
    began, first = time.perf_counter(), 0.0
    async with harness.events("Please.") as events:
        async for event in events:
            if not first and isinstance(event, TextDelta):
                first = time.perf_counter() - began
        whole = time.perf_counter() - began
    return Taken(first, whole)


@asynccontextmanager
async def whole_runs(engine: Engine, folder: Path) -> AsyncIterator[Sample]:
    """Say something, and watch until words come and until all is over: with a worker, on SQLite."""
    made = make_engine(f"sqlite:///{folder / 'backburner.sqlite3'}")
    tables.metadata.create_all(made)
    bus = LocalBus()
    with closing(Database(made, clock)) as database:
        database.bus = bus
        database.run(lambda tx: add_user(tx, USER))
        deps = Deps(
            store=database,
            engines={"": engine},
            default_profile="",
            toolbox=NoTools(),
            drafts=Broadcast(),
        )
        worker, stopping = Worker(deps, bus, seats=Seats(total=5), pace=Pace()), asyncio.Event()
        working = asyncio.create_task(worker.run(stopping))

        async def sample() -> Taken:
            here = await chat.start(deps, USER)
            sights = asyncio.Queue[DraftEvent]()
            with deps.drafts.listen(lambda _user, _conversation, event: sights.put_nowait(event)):
                began = time.perf_counter()
                await chat.send(deps, USER, here.id, "Hello?")
                await sights.get()
                first = time.perf_counter() - began
                while not isinstance(await sights.get(), DraftClosed):
                    pass
                return Taken(first, time.perf_counter() - began)

        yield sample
        stopping.set()
        await working
