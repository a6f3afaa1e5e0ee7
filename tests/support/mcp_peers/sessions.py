"""Sessions with servers under test: retries take no time, and nothing of a session is left."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from backburner.core.errors import SignedOut
from backburner.gateway.transport import Resolve
from backburner.gateway.upstream.servers import UpstreamServers
from backburner.gateway.upstream.session import RetryPolicy, UpstreamSession
from backburner.ports import Authorization, StartProgram, StdioProgram, ToolServer
from backburner.process.piped_program import PipedPrograms

LOOPBACK = (ip_network("127.0.0.1/32"),)
TITLE = "Peer"
#: How many seconds everything has to be gone.
SOON = 5.0


class NoSignIn:
    """For servers that want none."""

    async def headers(self) -> Mapping[str, str]:
        return {}

    async def renew(self, _refused: Mapping[str, str]) -> Mapping[str, str]:
        raise SignedOut(f"{TITLE} wants a sign-in.")

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        return doubted


@dataclass
class Tokens:
    """A sign-in with numbered tokens; renewing gives the next one."""

    number: int = 1
    #: The last one that can be renewed; None: all can.
    last: int | None = None
    renewals: int = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer token-{self.number}"}

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        self.renewals += 1
        if refused == await self.headers():
            if self.number == self.last:
                raise SignedOut(f"{TITLE} has withdrawn the sign-in.", hint="Sign in again.")
            self.number += 1
        return await self.headers()

    async def check(self, doubted: Mapping[str, str]) -> Mapping[str, str]:
        return await self.renew(doubted)


@dataclass
class Pauses:
    """In place of a clock: pauses take no time, and are written down."""

    taken: list[float] = field(default_factory=list)
    now: float = 0.0

    async def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def policy(self) -> RetryPolicy:
        return RetryPolicy(sleep=self.sleep, chance=lambda: 1.0, clock=lambda: self.now)


def servers(
    *,
    pauses: Pauses | None = None,
    start: StartProgram | None = None,
    connect_timeout: timedelta = timedelta(seconds=20),
    idle_timeout: timedelta = timedelta(seconds=20),
    resolve: Resolve | None = None,
    private: bool = True,
) -> UpstreamServers:
    """Make sessions with servers on loopback; without `private`, with public ones only."""
    return UpstreamServers(
        allow=LOOPBACK if private else (),
        resolve=resolve,
        start=start or PipedPrograms().start,
        policy=(pauses or Pauses()).policy(),
        connect_timeout=connect_timeout,
        idle_timeout=idle_timeout,
    )


@asynccontextmanager
async def session(
    target: str | StdioProgram,
    *,
    sign_in: Authorization | None = None,
    pauses: Pauses | None = None,
    start: StartProgram | None = None,
    connect_timeout: timedelta = timedelta(seconds=20),
    idle_timeout: timedelta = timedelta(seconds=20),
) -> AsyncIterator[UpstreamSession]:
    """Open a session; in the end it has left no task, no process and no socket."""
    before = Left.now()
    made = servers(
        pauses=pauses, start=start, connect_timeout=connect_timeout, idle_timeout=idle_timeout
    )
    url, program = (target, None) if isinstance(target, str) else ("", target)
    opened = made.open(ToolServer(title=TITLE, url=url, program=program), sign_in or NoSignIn())
    try:
        yield opened
    finally:
        await opened.close()
    await Left.nothing_since(before)


@dataclass(frozen=True)
class Left:
    """What a process has open: the names of its tasks, its descriptors, and its children."""

    tasks: frozenset[str]
    descriptors: frozenset[str]
    children: frozenset[int]

    @classmethod
    def now(cls) -> "Left":
        return cls(
            frozenset(map(_name, asyncio.all_tasks())) - {""},
            frozenset(_descriptors()),
            frozenset(_children()),
        )

    @classmethod
    async def nothing_since(cls, before: "Left") -> None:
        """Wait until nothing is left, which what was closed may take a moment for."""
        deadline = asyncio.get_running_loop().time() + SOON
        while True:
            now = cls.now()
            new = (now.tasks - before.tasks, now.children - before.children)
            if not any(new) and len(now.descriptors) <= len(before.descriptors):
                return
            assert asyncio.get_running_loop().time() < deadline, f"{new}, {now.descriptors}"
            await asyncio.sleep(0.01)


def _name(task: asyncio.Task[Any]) -> str:
    coroutine = getattr(task.get_coro(), "__qualname__", "")
    # Those of servers in this process may take longer.
    of_servers = coroutine.startswith(("RequestResponseCycle", "_shutdown_watcher"))
    return "" if of_servers else f"{task.get_name()} {coroutine}"


def _descriptors() -> list[str]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            found.append(f"{descriptor.name} {descriptor.readlink()}")
        except OSError:
            continue
    return [each for each in found if "socket:" in each or "pipe:" in each]


def _children() -> list[int]:
    ids = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return [int(each) for each in ids.split()]
