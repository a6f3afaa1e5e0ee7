"""The real program with an agent that works for a set time, and demo replies; it says what it does.

It writes `ready`, waits for `go` unless it serves, and writes a line for each commit or each start.
"""

import argparse
import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Pool, event

from backburner import log
from backburner.app.machines import Machines
from backburner.app.program import run
from backburner.core.run import RunKind, Turn
from backburner.engine.demo import DemoEngine
from backburner.ports import (
    LONG_DEADLINE,
    EngineEvent,
    Gate,
    Store,
    TurnEnded,
    TurnRequest,
    Tx,
)
from backburner.settings import load

T = TypeVar("T")
PROFILE = "bench"
SAID = "Three mails: two can wait, one is from your landlord."
#: Settings of the program; whatever is not given is as a user gets it.
SETTINGS = ("data", "database_url", "concurrency")

counted = Counter[str]()


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


@dataclass(frozen=True, slots=True)
class TimedEngine:
    seconds: float
    tells_starts: bool

    async def run(self, request: TurnRequest, gate: Gate) -> AsyncGenerator[EngineEvent, None]:
        if request.kind is RunKind.REPLY:
            async for said in DemoEngine("backburner").run(request, gate):
                yield said
            return
        if self.tells_starts:
            say(f"{request.conversation.id} {time.time_ns()}")
        if self.seconds:
            await asyncio.sleep(self.seconds)
        yield TurnEnded("", {"complete": True, "message": SAID})


@dataclass(frozen=True, slots=True)
class TellingStore:
    """Tells when a run has been committed."""

    store: Store

    async def transact(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        return await self.store.transact(work, within=within, single=single)

    async def read(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        return await self.store.read(work, within=within, single=single)

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        await self.store.commit(turn, work, alone=alone)
        say(str(time.time_ns()))


def main() -> None:
    options = argparse.ArgumentParser(prog="_program.py")
    options.add_argument("--seconds", type=float, default=0)
    options.add_argument("--tell", choices=("commits", "starts", "nothing"), default="nothing")
    options.add_argument("--serve", action="store_true")
    options.add_argument("--count", action="store_true", help="count the statements of SQLite")
    for name in SETTINGS:
        options.add_argument(f"--{name.replace('_', '-')}")
    given = options.parse_args()
    if given.count:
        count_statements()
    chosen = {name: vars(given)[name] for name in SETTINGS if vars(given)[name] is not None}
    settings = load(**chosen, port="0", log_level="warning")
    log.set_up(level=settings.log_level, style=settings.log_format, secrets=settings.secrets())

    told = threading.Event()
    threading.Thread(target=listen, args=(told,), daemon=True).start()

    def announce(name: str) -> None:
        say(f"ready {name}")
        if not given.serve:
            told.wait()

    run(
        settings,
        announce=announce,
        serves=given.serve,
        machines=Machines(
            engines={PROFILE: TimedEngine(given.seconds, given.tell == "starts")},
            default_profile=PROFILE,
            store=TellingStore if given.tell == "commits" else lambda store: store,
        ),
    )


def listen(told: threading.Event) -> None:
    """Hear `go` and `count`, and end with whoever started this."""
    for line in sys.stdin:
        told.set()
        if line.strip() == "count":
            say(f"{counted['transactions']} {counted['statements']}")
    os._exit(1)


def count_statements() -> None:
    def count(sql: str) -> None:
        if sql.startswith("BEGIN"):
            counted["transactions"] += 1
        # What a trigger does has no statement of its own.
        elif not sql.startswith(("--", "COMMIT", "ROLLBACK")):
            counted["statements"] += 1

    def follow(connection: Any, _entry: object) -> None:
        connection.set_trace_callback(count)

    event.listen(Pool, "connect", follow)


if __name__ == "__main__":
    main()
