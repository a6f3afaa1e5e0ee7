"""Real programs for tests to start, ended with the test whatever happens."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from subprocess import PIPE
from threading import Thread
from typing import IO, Protocol

from support.programs import process_table
from support.programs.fork_server import PROGRAMS
from support.programs.forks import fork

#: Root may write anywhere, so a test of what may not be written gives that up first. Everything
#: has to be imported by then: the unprivileged user may not be able to read this Python.
AS_NOBODY = """
import os
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
"""
#: How many seconds a program may take over whatever it is waited for.
PATIENCE = 30


class Process(Protocol):
    """What tests use of `subprocess.Popen`, and `Forked` has too."""

    pid: int

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, number: int, /) -> None: ...
    def kill(self) -> None: ...


@dataclass
class Ended:
    code: int
    out: list[str]
    err: list[str]


class Lines:
    """What a program writes, taken as it comes: a pipe that nobody empties would hold it up."""

    def __init__(self, stream: IO[str]) -> None:
        self._taken: Queue[str | None] = Queue()
        self._reader = Thread(target=self._take, args=(stream,), daemon=True)
        self._reader.start()

    def next(self, within: float = PATIENCE) -> str | None:
        """Wait for a line; after the last one there is None."""
        try:
            line = self._taken.get(timeout=within)
        except Empty:
            raise AssertionError(f"Nothing was written for {within} seconds.") from None
        if line is None:
            self._taken.put(None)
        return line

    def rest(self) -> list[str]:
        return list(iter(self.next, None))

    def close(self) -> None:
        self._reader.join(PATIENCE)

    def _take(self, stream: IO[str]) -> None:
        with stream:
            for line in stream:
                self._taken.put(line.rstrip("\n"))
        self._taken.put(None)


class Running:
    def __init__(self, process: Process, stdin: IO[str], out: IO[str], err: IO[str]) -> None:
        self.process = process
        self._in = stdin
        self._out, self._err = Lines(out), Lines(err)
        #: What was read from stderr while waiting for something.
        self._heard: list[str] = []

    def read_line(self, within: float = PATIENCE) -> str:
        return self._out.next(within) or ""

    def write_line(self, text: str) -> None:
        self._in.write(f"{text}\n")
        self._in.flush()

    def wait_until_ready(self) -> str:
        """Give the address that is announced."""
        line = self.read_line()
        assert " is ready at " in line, self.end()
        return line.split()[-1]

    def wait_for_error(self, text: str) -> None:
        """Wait until a line on stderr has something in it."""
        while (line := self._err.next()) is not None:
            self._heard.append(line)
            if text in line:
                return
        raise AssertionError(self.end())

    def freeze(self) -> None:
        """Stop it in the middle of whatever it does, until SIGCONT."""
        self.process.send_signal(signal.SIGSTOP)
        until = time.monotonic() + PATIENCE
        while process_table.state_of(self.process.pid) != "T":
            assert time.monotonic() < until, "It does not stop."
            time.sleep(0.001)

    def end(self, number: signal.Signals | None = None) -> Ended:
        """Send a signal, if any, and wait for the end; `out` is what was not read before."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        return Ended(code, self._out.rest(), [*self._heard, *self._err.rest()])

    def clear_away(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        with suppress(BrokenPipeError):
            self._in.close()
        self._out.close()
        self._err.close()


Start = Callable[..., Running]
#: What stands before the name of a program of ours.
PYTHON = (sys.executable, "-P", "-m")


@contextmanager
def starter(*, forks: bool = True) -> Iterator[Start]:
    """Give what starts a command; without one, Backburner with the arguments.

    Our own programs are forked from a process that has imported them, unless told not to.
    """
    started: list[Running] = []

    def start(
        *arguments: str | Path,
        command: tuple[str, ...] = (),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Running:
        whole = [*(command or (*PYTHON, "backburner")), *map(str, arguments)]
        forkable = forks and tuple(whole[:3]) == PYTHON and whole[3] in PROGRAMS
        started.append(_fork(whole[3:], cwd, env) if forkable else _start(whole, cwd, env))
        return started[-1]

    try:
        yield start
    finally:
        for running in started:
            running.clear_away()


def _start(command: list[str], cwd: Path | None, env: Mapping[str, str] | None) -> Running:
    process = subprocess.Popen(
        command, cwd=cwd, env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    return Running(process, process.stdin, process.stdout, process.stderr)


def _fork(command: list[str], cwd: Path | None, env: Mapping[str, str] | None) -> Running:
    module, *arguments = command
    (read, stdin), (out, to_out), (err, to_err) = os.pipe(), os.pipe(), os.pipe()
    theirs = (read, to_out, to_err)
    try:
        process = fork(module, arguments, theirs, cwd=cwd, env=env)
    finally:
        for file in theirs:
            os.close(file)
    return Running(process, os.fdopen(stdin, "w"), os.fdopen(out), os.fdopen(err))
