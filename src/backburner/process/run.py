"""Run a command until it exits or times out: its output, and why it ended."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from backburner.process.command import Command, Exit
from backburner.process.tree import DEFAULT_GRACE, ProcessTree, spawn

#: The bytes of each stream that are kept.
MAX_OUTPUT_BYTES = 2**20
#: For reading the streams after the tree has ended: a process outside may hold them open.
DRAIN_SECONDS = 1.0
CHUNK_BYTES = 2**16


class ExitReason(StrEnum):
    EXITED = "exited"  #: By itself, with a code.
    KILLED = "killed"  #: By a signal that we did not send.
    TIMED_OUT = "timed_out"  #: Ended by us.


@dataclass(frozen=True, slots=True)
class Output:
    """The first bytes of a stream, and the number of bytes after them."""

    data: bytes
    omitted: int = 0

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class ProcessResult:
    reason: ExitReason
    exit: Exit
    stdout: Output
    stderr: Output


async def run(
    command: Command,
    *,
    within: timedelta,
    stdin: bytes = b"",
    limit: int = MAX_OUTPUT_BYTES,
    grace: timedelta = DEFAULT_GRACE,
) -> ProcessResult:
    """Run a command until it exits or times out; all its descendants end with it."""
    stdout, stderr = _Sink(limit), _Sink(limit)
    async with (
        spawn(command, stdin=stdin, grace=grace, max_line=CHUNK_BYTES) as tree,
        read_streams(stdout.read_all(tree.stdout), stderr.read_all(tree.stderr)),
    ):
        reason, exited = await wait_for_exit(tree, within)
    return ProcessResult(reason, exited, stdout.output(), stderr.output())


@asynccontextmanager
async def read_streams(*sources: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Read streams meanwhile, and for a short time after."""
    tasks = [asyncio.create_task(source) for source in sources]
    try:
        yield
        await asyncio.wait(tasks, timeout=DRAIN_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def wait_for_exit(tree: ProcessTree, within: timedelta) -> tuple[ExitReason, Exit]:
    try:
        async with asyncio.timeout(within.total_seconds()):
            exited = await tree.wait()
    except TimeoutError:
        return ExitReason.TIMED_OUT, await tree.end()
    return ExitReason.KILLED if exited.code is None else ExitReason.EXITED, exited


class _Sink:
    """Reads everything, so that no full pipe blocks the command, and keeps the beginning."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self._size = 0

    async def read_all(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(CHUNK_BYTES):
            self._size += len(chunk)
            self._kept += chunk[: self._limit - len(self._kept)]

    def output(self) -> Output:
        return Output(bytes(self._kept), omitted=self._size - len(self._kept))
