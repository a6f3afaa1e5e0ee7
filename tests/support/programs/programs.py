"""Real programs for tests to start, ended with the test whatever happens."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO

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


@dataclass
class Ended:
    code: int
    out: list[str]
    err: list[str]


class Lines:
    """What a program writes, taken as it comes: a pipe that nobody empties would hold it up."""

    def __init__(self, stream: IO[str] | None) -> None:
        assert stream
        self._taken: Queue[str | None] = Queue()
        self._reader = Thread(target=self._take, args=(stream,), daemon=True)
        self._reader.start()

    def next(self) -> str | None:
        """Wait for a line; after the last one there is None."""
        try:
            line = self._taken.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"Nothing was written for {PATIENCE} seconds.") from None
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
    def __init__(self, command: list[str], cwd: Path | None, env: Mapping[str, str] | None) -> None:
        self.process = subprocess.Popen(
            command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._out, self._err = Lines(self.process.stdout), Lines(self.process.stderr)
        #: What was read from stderr while waiting for something.
        self._heard: list[str] = []

    def read_line(self) -> str:
        return self._out.next() or ""

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

    def end(self, number: signal.Signals | None = None) -> Ended:
        """Send a signal, if any, and wait for the end; `out` is what was not read before."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        return Ended(code, self._out.rest(), [*self._heard, *self._err.rest()])

    def clear_away(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self._out.close()
        self._err.close()


Start = Callable[..., Running]


@contextmanager
def starter() -> Iterator[Start]:
    """Give what starts a command; without one, Backburner with the arguments."""
    started: list[Running] = []

    def start(
        *arguments: str | Path,
        command: tuple[str, ...] = (),
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Running:
        program = command or (sys.executable, "-P", "-m", "backburner")
        started.append(Running([*program, *map(str, arguments)], cwd, env))
        return started[-1]

    try:
        yield start
    finally:
        for running in started:
            running.clear_away()
