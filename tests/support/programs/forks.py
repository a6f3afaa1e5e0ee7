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
from threading import Lock

#: How many seconds the server may take over its imports, and over a fork.
PATIENCE = 60


class Forked:
    """A program that was forked, with what `subprocess.Popen` has and tests use."""

    def __init__(self, pid: int, report: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._report = report
        # The server waits for it, so that another process may have its id at any time.
        self._handle: int | None = None
        with suppress(ProcessLookupError):
            self._handle = os.pidfd_open(pid)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            # Nothing there: the server was killed, and has not seen the end.
            self.returncode = int(os.read(self._report, 16) or -signal.SIGKILL)
            os.close(self._report)
            if self._handle is not None:
                os.close(self._handle)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None and self._handle is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class ForkServer:
    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(PATIENCE)
        self._lock = Lock()
        module = "support.programs.fork_server"
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )

    def fork(self, wanted: Mapping[str, object], files: Sequence[int]) -> Forked:
        report, theirs = os.pipe()
        try:
            with self._lock:
                socket.send_fds(self._socket, [json.dumps(wanted).encode()], [*files, theirs])
                pid = int(self._socket.recv(16))
        finally:
            os.close(theirs)
        return Forked(pid, report)

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
