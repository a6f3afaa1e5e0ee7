"""A program on a terminal, with somebody who reads and types."""

import os
import pty
import select
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support.programs.forks import fork

#: How many seconds anything may take.
PATIENCE = 30


class Terminal:
    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        # The terminal is theirs to control, or a question for a secret would go elsewhere.
        self.process = fork("backburner", arguments, [theirs] * 3, new_session=True)
        os.close(theirs)
        self.seen = ""

    def answer(self, question: str, text: str) -> None:
        """Wait for a question, and type."""
        self._read_until(question)
        os.write(self._ours, f"{text}\n".encode())

    def wait_for(self, text: str) -> None:
        self._read_until(text)

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        self._read_until(None)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        os.close(self._ours)

    def _read_until(self, text: str | None) -> None:
        start, until = len(self.seen), time.monotonic() + PATIENCE
        while text is None or text not in self.seen[start:]:
            assert time.monotonic() < until, f"{text!r} was not asked: {self.seen}"
            if not select.select([self._ours], [], [], 0.1)[0]:
                continue
            try:
                chunk = os.read(self._ours, 4096)
            except OSError:
                chunk = b""  # Linux says that a terminal is left in this way.
            if not chunk:
                assert text is None, f"{text!r} was not asked: {self.seen}"
                return
            self.seen += chunk.decode()


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    opened = Terminal(*arguments)
    try:
        yield opened
    finally:
        opened.close()
