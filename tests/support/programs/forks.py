"""Our own programs, forked from a server that has imported them: for tests of what they do.

Where the start itself is the point, a test starts a process of its own.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

#: How many seconds the server may take over its imports, and over a fork.
PATIENCE = 60


class Forked:
    """A program that was forked, with what `subprocess.Popen` has and tests use."""

    def __init__(self, report: IO[str]) -> None:
        self._report = report
        self._wait_for_report(PATIENCE)
        self.pid = int(report.readline())
        self.returncode: int | None = None
        # The server waits for it, so that another process may have its id at any time.
        self._handle: int | None = None
        with suppress(ProcessLookupError):
            self._handle = os.pidfd_open(self.pid)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._wait_for_report(timeout)
            # Nothing there: the server was killed, and has not seen the end.
            self.returncode = int(self._report.readline() or -signal.SIGKILL)
            self._report.close()
            if self._handle is not None:
                os.close(self._handle)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None and self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _wait_for_report(self, timeout: float | None) -> None:
        if not select.select([self._report], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired("a fork", timeout or 0)


class ForkServer:
    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        module = "support.programs.fork_server"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def fork(self, wanted: Mapping[str, object], files: Sequence[int]) -> Forked:
        ours, theirs = os.pipe()
        report = os.fdopen(ours, buffering=1)
        try:
            socket.send_fds(self._socket, [json.dumps(wanted).encode()], [*files, theirs])
            os.close(theirs)
            return Forked(report)
        except BaseException:
            # Which ends it, if it has begun.
            report.close()
            raise

    def close(self) -> None:
        self._socket.close()
        self._process.wait(PATIENCE)


@cache
def _server() -> ForkServer:
    server = ForkServer()
    atexit.register(server.close)
    return server


def fork(
    module: str,
    arguments: Sequence[str],
    files: Sequence[int],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    new_session: bool = False,
) -> Forked:
    """Run `python -P -m MODULE` with these files as its stdin, stdout and stderr."""
    wanted = {
        "module": module,
        "arguments": list(arguments),
        "cwd": str(cwd or Path.cwd()),
        "env": dict(os.environ if env is None else env),
        "new_session": new_session,
    }
    return _server().fork(wanted, files)
