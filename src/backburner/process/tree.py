"""A command that is running, with everything it started: its streams and its end."""

import asyncio
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, TypeVar, cast
from weakref import WeakKeyDictionary

from backburner.core.errors import ProcessFailed
from backburner.process import reaper
from backburner.process.command import Command, Exit, launching
from backburner.process.refusals import explained, not_run

#: How long everybody has between SIGTERM and SIGKILL.
GRACE = timedelta(seconds=reaper.GRACE)
#: How long to wait after that before saying that it was of no use.
PATIENCE = timedelta(seconds=reaper.HANDOVER + 5)
#: A line can be this long; up to twice as much is read ahead.
LONGEST_LINE = 16 * 2**20
#: How to run the reaper.
REAPER = (sys.executable, "-I", "-S", str(Path(reaper.__file__).absolute()))

#: Bytes to read, or a pipe to write to. No bytes: /dev/null.
Stdin = bytes | Literal["pipe"]
#: A pipe that nobody reads holds the command up once it is full. Joined: with stdout, in order.
Stderr = Literal["pipe", "join", "drop"]
_STDERR: dict[Stderr, int] = {"pipe": PIPE, "join": STDOUT, "drop": DEVNULL}

#: Each loop starts one at a time: many in one go would hold it up.
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_Stream = TypeVar("_Stream", asyncio.StreamReader, asyncio.StreamWriter)


class Tree:
    """A command and everything it started."""

    def __init__(self, child: "_Child", control: socket.socket, *, patience: timedelta) -> None:
        self._child = child
        self._control = control
        self._patience = patience
        #: The process id of the command.
        self.pid = 0

    @property
    def stdin(self) -> asyncio.StreamWriter:
        return _piped(self._child.stdin)

    @property
    def stdout(self) -> asyncio.StreamReader:
        return _piped(self._child.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        return _piped(self._child.stderr)

    async def wait(self) -> Exit:
        """Wait until the command has ended, and so has what it left behind."""
        return Exit.of(await asyncio.shield(self._child.exited))

    async def end(self) -> Exit:
        """End all of it and wait until it is gone; a cancel takes effect only then."""
        self._control.close()
        self._child.wake()
        await outwait(self._child.exited, self._patience)
        if not self._child.exited.done():
            raise ProcessFailed("A program could not be ended.")
        return Exit.of(self._child.exited.result())


@asynccontextmanager
async def started(
    command: Command,
    *,
    stdin: Stdin = b"",
    stderr: Stderr = "pipe",
    grace: timedelta = GRACE,
    longest_line: int = LONGEST_LINE,
) -> AsyncIterator[Tree]:
    """Start a command. However this is left, nothing that it started is left behind."""
    with explained(command):
        ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(0)
        with explained(command), theirs, _source(stdin) as source:
            child = await _start_reaper(
                command,
                [f"grace={grace.total_seconds()}", f"control={theirs.fileno()}"],
                longest_line,
                stdin=source,
                stderr=_STDERR[stderr],
                pass_fds=(theirs.fileno(),),
            )
        with closing(child):
            tree = Tree(child, ours, patience=grace + PATIENCE)
            try:
                tree.pid = await _hear(command, ours)
                yield tree
            finally:
                await tree.end()


async def _start_reaper(
    command: Command, options: list[str], longest_line: int, **streams: Any
) -> "_Child":
    options = [*options, f"env={','.join(command.env)}", f"caller={os.getpid()}"]
    options += launching(command.confined, command.limits)
    loop = asyncio.get_running_loop()
    async with _turns.setdefault(loop, asyncio.Lock()):
        _, child = await loop.subprocess_exec(
            lambda: _Child(longest_line),
            *(*REAPER, *options, "--", *command.argv),
            stdout=PIPE,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
            **streams,
        )
    return child


async def _hear(command: Command, control: socket.socket) -> int:
    """Wait until the reaper says which process the command is, or why it is none."""
    said = await asyncio.get_running_loop().sock_recv(control, 32)
    if not said:
        raise ProcessFailed(f"{command.program} could not be watched over.")
    if (number := int(said)) < 0:
        raise not_run(command, -number)
    return number


class _Child(SubprocessStreamProtocol):
    """The reaper as asyncio sees it; it says itself when that has exited.

    What asyncio offers for this also waits for the streams, and somebody outside the tree may
    hold those, or nobody read them.
    """

    def __init__(self, limit: int) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(limit, loop)
        self.exited: asyncio.Future[int] = loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.reaper = cast(asyncio.SubprocessTransport, transport)

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set_result(self.reaper.get_returncode() or 0)

    def wake(self) -> None:
        """Let the reaper go on if somebody has stopped it."""
        # Not through asyncio, which could take its status from whoever waits for that.
        if not self.exited.done():
            with suppress(ProcessLookupError):
                os.kill(self.reaper.get_pid(), signal.SIGCONT)

    def close(self) -> None:
        self.reaper.close()


async def outwait(future: asyncio.Future[Any], patience: timedelta) -> None:
    """Wait for something although cancelled meanwhile, and be cancelled after that."""
    loop = asyncio.get_running_loop()
    until = loop.time() + patience.total_seconds()
    cancelled: asyncio.CancelledError | None = None
    while not future.done() and (left := until - loop.time()) > 0:
        try:
            await asyncio.wait([future], timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


@contextmanager
def _source(stdin: Stdin) -> Iterator[int | IO[bytes]]:
    if stdin == "pipe":
        yield PIPE
    elif not stdin:
        yield DEVNULL
    else:
        with _nameless_file() as file:
            file.write(stdin)
            file.seek(0)
            yield file


def _nameless_file() -> IO[bytes]:
    # In memory where that can be: what is read may be secret.
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stdin"), "w+b")
    return TemporaryFile()


def _piped(stream: _Stream | None) -> _Stream:
    if stream is None:
        raise ValueError("There is no pipe for this stream.")
    return stream
