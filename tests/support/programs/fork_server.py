"""A process that has imported our programs, and forks one whenever it is asked to.

Importing takes two seconds of each start, a fork some milliseconds. `forks` starts this program
and asks it over a socket. It has one thread and no event loop: a fork copies neither.

The id of a fork, and later its exit code, go into a pipe of its own. Whoever closes the other end
of that, however it ended, wants the fork no more: it is killed. The server ends with the socket.
"""

import gc
import importlib
import json
import os
import random
import runpy
import select
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The modules that can be run, as with `python -P -m`, and all that they import when they need it.
PROGRAMS = (
    "backburner",
    "support.faults.program",
    "support.oauth_peer",
    "support.programs.racers",
    "support.programs.token_users",
)
IMPORTED_LATE = (
    "alembic.command",
    "support.oauth_peer.apps",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)
#: Scripts that run in processes of their own, and an engine that hardly any program here uses.
LEFT_OUT = (
    "backburner.__main__",
    "backburner.engine.openai",
    "backburner.process.child",
    "backburner.process.namespace",
    "backburner.store.migrations.",
)
#: The most bytes of a request.
LONGEST = 1_000_000


@dataclass(frozen=True)
class Request:
    """A program to run. `files` are for stdin, stdout and stderr."""

    module: str
    arguments: list[str]
    cwd: str
    env: dict[str, str]
    new_session: bool
    files: tuple[int, ...]

    def become(self) -> None:
        """Be that program, as if this process had been started for it."""
        for number, file in enumerate(self.files):
            os.dup2(file, number)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        if self.new_session:
            os.setsid()
        os.chdir(self.cwd)
        os.environ.clear()
        os.environ.update(self.env)
        time.tzset()
        random.seed()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv[1:] = self.arguments
        # It is run, not imported; otherwise there would be a warning.
        sys.modules.pop(self.module if self.module != "backburner" else "backburner.__main__", None)
        runpy.run_module(self.module, run_name="__main__", alter_sys=True)


@dataclass(frozen=True)
class Process:
    """A process that was forked, what shows its end, and where to report."""

    pid: int
    ends: int
    report: int

    def tell(self, number: int) -> None:
        with suppress(BrokenPipeError):
            os.write(self.report, f"{number}\n".encode())


class ForkServer:
    def __init__(self, asked: socket.socket) -> None:
        self._asked = asked
        self._poll = select.poll()
        self._poll.register(asked.fileno(), select.POLLIN)
        #: The processes by the files that show their end, and by those that somebody reads.
        self._ends: dict[int, Process] = {}
        self._reports: dict[int, Process] = {}

    def serve(self) -> Request | None:
        """Give a request in the process that is to become it; None: nobody asks any more."""
        while True:
            # One at a time: the number of a file that is closed goes to the next one.
            (file, _), *_ = self._poll.poll()
            if file in self._reports:
                self._kill(self._reports[file])
            elif file in self._ends:
                self._report_end(self._ends[file])
            else:
                message, files, _, _ = socket.recv_fds(self._asked, LONGEST, 4)
                if not message:
                    self._kill_all()
                    return None
                if request := self._fork(json.loads(message), files):
                    return request

    def _fork(self, wanted: dict[str, Any], files: list[int]) -> Request | None:
        *theirs, report = files
        pid = os.fork()
        if pid == 0:
            self._asked.close()
            return Request(**wanted, files=tuple(theirs))
        for file in theirs:
            os.close(file)
        process = Process(pid, os.pidfd_open(pid), report)
        self._ends[process.ends] = self._reports[report] = process
        self._poll.register(process.ends, select.POLLIN)
        # Only errors: that nobody reads it.
        self._poll.register(report, 0)
        process.tell(pid)
        return None

    def _kill(self, process: Process) -> None:
        os.kill(process.pid, signal.SIGKILL)
        self._poll.unregister(process.report)
        del self._reports[process.report]

    def _report_end(self, process: Process) -> None:
        _, status = os.waitpid(process.pid, 0)
        process.tell(os.waitstatus_to_exitcode(status))
        if self._reports.pop(process.report, None):
            self._poll.unregister(process.report)
        self._poll.unregister(process.ends)
        del self._ends[process.ends]
        os.close(process.report)
        os.close(process.ends)

    def _kill_all(self) -> None:
        for process in self._ends.values():
            os.kill(process.pid, signal.SIGKILL)


def import_all() -> None:
    for name in (*PROGRAMS, *IMPORTED_LATE):
        importlib.import_module(name)
    # By their files: walking through packages would import them all.
    root = Path(sys.modules["backburner"].__path__[0])
    for path in sorted(root.rglob("*.py")):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        if not name.startswith(LEFT_OUT):
            importlib.import_module(name.removesuffix(".__init__"))
    # As the first request would: the models of all routes are made from their types.
    build_api = sys.modules["backburner.api.app"].build_api
    build_api(None, hosts=(), checks={}).openapi()
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "An import has started a thread."


def main() -> None:
    # The children get an interrupt from the keyboard themselves.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asked = socket.socket(fileno=int(sys.argv[1]))
    import_all()
    # Collecting would touch, and so copy, what all share.
    gc.collect()
    gc.freeze()
    if request := ForkServer(asked).serve():
        request.become()


if __name__ == "__main__":
    main()
