"""Real programs for tests to start, ended with the test whatever happens."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO


@dataclass
class Ended:
    code: int
    out: list[str]
    err: list[str]


class Running:
    def __init__(self, command: list[str], cwd: Path | None) -> None:
        # Into a file: a pipe that nobody empties would hold the program up.
        self._err = NamedTemporaryFile("w+")  # noqa: SIM115 (open until it is cleared away)
        self.process = subprocess.Popen(
            command, cwd=cwd, stdout=subprocess.PIPE, stderr=self._err, text=True
        )

    def read_line(self) -> str:
        """Wait for a line; the time limit of the test is the bound."""
        return self._out.readline().rstrip("\n")

    def wait_until_ready(self) -> str:
        """Give the address that is announced."""
        line = self.read_line()
        assert " is ready at " in line, self.end()
        return line.split()[-1]

    def wait_for_error(self, text: str) -> None:
        """Wait until something is on stderr; the time limit of the test is the bound."""
        while text not in Path(self._err.name).read_text():
            assert self.process.poll() is None, self.end()
            time.sleep(0.01)

    def end(self, number: signal.Signals | None = None) -> Ended:
        """Send a signal, if any, and wait for the end; `out` is what was not read before."""
        if number is not None:
            self.process.send_signal(number)
        out = self._out.read().splitlines()
        code = self.process.wait()
        self._err.seek(0)
        return Ended(code, out, self._err.read().splitlines())

    def clear_away(self) -> None:
        self.process.kill()
        self.process.wait()
        self._out.close()
        self._err.close()

    @property
    def _out(self) -> IO[str]:
        assert self.process.stdout
        return self.process.stdout


Start = Callable[..., Running]


@contextmanager
def starter() -> Iterator[Start]:
    """Give what starts a command; without one, Backburner with the arguments."""
    started: list[Running] = []

    def start(
        *arguments: str | Path, command: tuple[str, ...] = (), cwd: Path | None = None
    ) -> Running:
        program = command or (sys.executable, "-P", "-m", "backburner")
        started.append(Running([*program, *map(str, arguments)], cwd))
        return started[-1]

    try:
        yield start
    finally:
        for running in started:
            running.clear_away()
