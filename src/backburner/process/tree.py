"""A running command with all its descendants: its streams, and its end."""

import asyncio
import os
import signal
import socket
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, SubprocessStreamProtocol
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from datetime import timedelta
from tempfile import TemporaryFile
from typing import IO, Any, Literal, TypeVar, cast
from weakref import WeakKeyDictionary

from backburner.core.errors import ProcessFailed
from backburner.process import reaper
from backburner.process.command import Command, Exit
from backburner.process.confinement import REAPER_COMMAND
from backburner.process.refusals import explain_errors, not_run

#: Between SIGTERM and SIGKILL.
DEFAULT_GRACE = timedelta(seconds=reaper.GRACE_SECONDS)
#: After the grace period, until ending a tree has failed.
END_TIMEOUT = timedelta(seconds=reaper.HANDOVER_SECONDS + 5)
#: Of one line of a stream; up to twice as much is read ahead.
MAX_LINE_BYTES = 16 * 2**20

#: Bytes for the command to read, or a pipe to write to. No bytes: /dev/null.
Stdin = bytes | Literal["pipe"]
#: A full pipe blocks the command, so it has to be read. Joined: to stdout, in order.
Stderr = Literal["pipe", "join", "drop"]
_STDERR: dict[Stderr, int] = {"pipe": PIPE, "join": STDOUT, "drop": DEVNULL}

#: Each event loop starts one process at a time: many at once would block it.
_start_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
_Stream = TypeVar("_Stream", asyncio.StreamReader, asyncio.StreamWriter)


class ProcessTree:
    def __init__(self, child: "_Child", control: socket.socket, *, timeout: timedelta) -> None:
        self._child = child
        self._control = control
        self._timeout = timeout
        #: The process id of the command.
        self.pid = 0
        #: The limit for which the reaper has ended the tree: memory, processes or disk.
        self.exceeded = ""

    @property
    def stdin(self) -> asyncio.StreamWriter:
        return _require_pipe(self._child.stdin)

    @property
    def stdout(self) -> asyncio.StreamReader:
        return _require_pipe(self._child.stdout)

    @property
    def stderr(self) -> asyncio.StreamReader:
        return _require_pipe(self._child.stderr)

    async def wait(self) -> Exit:
        """Wait until the command and all its descendants have ended."""
        exited = Exit.of(await asyncio.shield(self._child.exited))
        with suppress(OSError):
            self.exceeded += self._control.recv(32).decode().strip()
        return exited

    async def end(self) -> Exit:
        """End the tree and wait until it is gone; a cancellation takes effect only then."""
        self._control.close()
        self._child.wake()
        await wait_despite_cancel(self._child.exited, self._timeout)
        if not self._child.exited.done():
            raise ProcessFailed(f"Process {self.pid} and its descendants could not be ended.")
        return Exit.of(self._child.exited.result())


@asynccontextmanager
async def spawn(
    command: Command,
    *,
    stdin: Stdin = b"",
    stderr: Stderr = "pipe",
    grace: timedelta = DEFAULT_GRACE,
    max_line: int = MAX_LINE_BYTES,
) -> AsyncIterator[ProcessTree]:
    """Start a command; leaving the context, in any way, ends it with all its descendants."""
    with explain_errors(command):
        ours, theirs = socket.socketpair()
    with ours:
        ours.settimeout(0)
        with explain_errors(command), theirs, _open_stdin(stdin) as source:
            child = await _start_reaper(
                command,
                [f"grace={grace.total_seconds()}", f"control={theirs.fileno()}"],
                max_line,
                stdin=source,
                stderr=_STDERR[stderr],
                pass_fds=(theirs.fileno(),),
            )
        with closing(child):
            tree = ProcessTree(child, ours, timeout=grace + END_TIMEOUT)
            try:
                tree.pid, tree.exceeded = await _receive_start(command, ours)
                yield tree
            finally:
                await tree.end()


async def _start_reaper(
    command: Command, options: list[str], max_line: int, **streams: Any
) -> "_Child":
    options = [*options, f"env={','.join(command.env)}", f"caller={os.getpid()}"]
    options += command.options()
    loop = asyncio.get_running_loop()
    async with _start_locks.setdefault(loop, asyncio.Lock()):
        _, child = await loop.subprocess_exec(
            lambda: _Child(max_line),
            *(*REAPER_COMMAND, *options, "--", *command.argv),
            stdout=PIPE,
            cwd=command.cwd,
            env=command.env,
            start_new_session=True,
            **streams,
        )
    return child


async def _receive_start(command: Command, control: socket.socket) -> tuple[int, str]:
    """Wait for the process id of the command, or the error number of its start.

    A limit that it exceeded at once may come with it.
    """
    received = await asyncio.get_running_loop().sock_recv(control, 32)
    if not received:
        raise ProcessFailed(f"{command.program} was not started: its reaper ended early.")
    start, _, limit = received.decode().partition("\n")
    if (number := int(start)) < 0:
        raise not_run(command, -number)
    return number, limit.strip()


class _Child(SubprocessStreamProtocol):
    """The reaper as asyncio sees it, with a future for its exit.

    `asyncio.subprocess.Process.wait` also waits for the streams, which a process outside the tree
    may hold open, or which may be left unread.
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
        """Continue the reaper if it was stopped."""
        # Not through asyncio, which may poll the process and so take its exit status.
        if not self.exited.done():
            with suppress(ProcessLookupError):
                os.kill(self.reaper.get_pid(), signal.SIGCONT)

    def close(self) -> None:
        self.reaper.close()


async def wait_despite_cancel(future: asyncio.Future[Any], within: timedelta) -> None:
    """Wait for a future even if cancelled meanwhile, and raise the cancellation afterwards."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within.total_seconds()
    cancelled: asyncio.CancelledError | None = None
    while not future.done() and (left := deadline - loop.time()) > 0:
        try:
            await asyncio.wait([future], timeout=left)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled:
        raise cancelled


@contextmanager
def _open_stdin(stdin: Stdin) -> Iterator[int | IO[bytes]]:
    if stdin == "pipe":
        yield PIPE
    elif not stdin:
        yield DEVNULL
    else:
        with _anonymous_file() as file:
            file.write(stdin)
            file.seek(0)
            yield file


def _anonymous_file() -> IO[bytes]:
    # In memory where possible: the data may be secret.
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("stdin"), "w+b")
    return TemporaryFile()


def _require_pipe(stream: _Stream | None) -> _Stream:
    if stream is None:
        raise ValueError("This stream has no pipe.")
    return stream
