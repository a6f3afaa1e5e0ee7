"""Workers in processes of their own, with an agent that does what its work says."""

import signal
import time
from pathlib import Path

from support.faults.halting import Point
from support.faults.invariants import violations_at_rest
from support.faults.outside import Outside
from support.faults.traces import Traces
from support.programs.programs import PYTHON, Running, Start

#: In seconds.
LEASE = 2.0
#: How long after a lease somebody else has the turn.
TAKEOVER = 2.0


class Worker:
    def __init__(self, running: Running) -> None:
        self.running = running
        ready, _, self.name = running.read_line().partition(" as ")
        assert ready == "ready", running.end()

    def wait_until_halted(self, point: Point) -> None:
        assert self.running.read_line() == f"halted at {point}"

    def kill(self) -> float:
        """Give the time when it was done."""
        self.running.end(signal.SIGKILL)
        return time.monotonic()

    def stop(self) -> None:
        """Let it stand still in the middle of whatever it does."""
        self.running.freeze()

    def go_on(self) -> None:
        """Let it go on, also from where it was halted."""
        self.running.process.send_signal(signal.SIGUSR1)
        self.running.process.send_signal(signal.SIGCONT)


class Workers:
    """Starts them on one database, with one file for their traces."""

    def __init__(self, start: Start, folder: Path, url: str | None) -> None:
        self._start = start
        self._folder = folder
        self._url = url
        self.traces = Traces(folder / "traces")
        self._started: list[Worker] = []

    def start(self, *options: str, halt_at: Point | None = None) -> Worker:
        command = (*PYTHON, "support.faults.program")
        given = ["--data", str(self._folder / "data"), "--traces", str(self.traces.path)]
        given += ["--database-url", self._url] if self._url else ["--serve"]
        given += ["--halt-at", halt_at.value] if halt_at else []
        self._started.append(Worker(self._start(*given, *options, command=command)))
        return self._started[-1]

    def end(self) -> None:
        """End those that are left, before what they need goes."""
        for worker in self._started:
            worker.running.clear_away()

    def sent(self) -> list[str]:
        return sorted(trace["text"] for trace in self.traces.read("send"))

    def delivered(self) -> list[str]:
        """Tell what was delivered, without the name of the work and what follows the text."""
        texts = (trace["text"].partition(": ")[2] for trace in self.traces.read("delivery"))
        return sorted(text.split("\n\n")[0] for text in texts)


def assert_sound(outside: Outside, workers: Workers) -> None:
    """See that everything is finished, and nothing lost or done twice."""
    outside.wait_until_settled()
    assert violations_at_rest(outside.rows, workers.traces) == []
