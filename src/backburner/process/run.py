"""A command that runs to its end, or to ours: what it wrote, and why it ended."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from backburner.process.command import Command, Exit
from backburner.process.tree import GRACE, Tree, started

#: How many bytes of each stream are kept.
LIMIT = 2**20
#: How many seconds the streams have to end after the tree: somebody outside may hold them.
LINGER = 1.0
CHUNK = 2**16


class Ending(StrEnum):
    EXITED = "exited"  #: By itself, with a code.
    KILLED = "killed"  #: By a signal that did not come from us.
    TIMED_OUT = "timed_out"  #: By us, because it took too long.


@dataclass(frozen=True, slots=True)
class Output:
    """The first bytes of a stream, and how many more there were."""

    kept: bytes
    left_out: int = 0

    @property
    def text(self) -> str:
        return self.kept.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class Finished:
    ending: Ending
    exit: Exit
    stdout: Output
    stderr: Output


async def run(
    command: Command,
    *,
    within: timedelta,
    stdin: bytes = b"",
    limit: int = LIMIT,
    grace: timedelta = GRACE,
) -> Finished:
    """Run a command to its end, or end it after some time; everything it started ends with it."""
    stdout, stderr = _Sink(limit), _Sink(limit)
    async with (
        started(command, stdin=stdin, grace=grace, longest_line=CHUNK) as tree,
        reading(stdout.take_all(tree.stdout), stderr.take_all(tree.stderr)),
    ):
        ending, exited = await wait(tree, within)
    return Finished(ending, exited, stdout.output(), stderr.output())


@asynccontextmanager
async def reading(*sources: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Let the streams be read meanwhile, and for a moment after."""
    tasks = [asyncio.create_task(source) for source in sources]
    try:
        yield
        await asyncio.wait(tasks, timeout=LINGER)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def wait(tree: Tree, within: timedelta) -> tuple[Ending, Exit]:
    """Wait for the end, or bring it about after some time."""
    try:
        async with asyncio.timeout(within.total_seconds()):
            ended = await tree.wait()
    except TimeoutError:
        return Ending.TIMED_OUT, await tree.end()
    return Ending.KILLED if ended.code is None else Ending.EXITED, ended


class _Sink:
    """Takes all there is, so that nobody waits for room, and keeps the beginning."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._size = 0

    async def take_all(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CHUNK):
            self._size += len(chunk)
            self._kept += chunk[: self._limit - len(self._kept)]

    def output(self) -> Output:
        return Output(bytes(self._kept), left_out=self._size - len(self._kept))
