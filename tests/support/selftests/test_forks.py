"""Programs that are forked behave as if they had been started."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.programs.forks import fork
from support.programs.process_table import SOON
from support.programs.programs import PYTHON, Start

#: Forks a server that runs, says where, and waits to be killed.
HOLDER = """
import sys
from support.programs.programs import starter
with starter() as start:
    running = start("up", "--port", "0", "--data", sys.argv[1])
    running.wait_until_ready()
    print(running.process.pid, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(["--version"], 0), (["upp"], 2), (["say", "--data", "nowhere", "Hello."], 6)],
    ids=["done", "usage", "failed"],
)
def test_a_fork_writes_and_ends_as_a_start_does(
    start: Start, tmp_path: Path, arguments: list[str], code: int
) -> None:
    env = {**os.environ, "BACKBURNER_DATA": str(tmp_path)}
    forked = start(*arguments, cwd=tmp_path, env=env).end()
    started = subprocess.run(
        [*PYTHON, "backburner", *arguments],
        cwd=tmp_path,
        env=env,
        check=False,
        capture_output=True,
        text=True,
    )

    assert forked.code == started.returncode == code
    assert forked.out == started.stdout.splitlines()
    assert forked.err == started.stderr.splitlines()


def test_a_fork_ends_by_signals(start: Start, tmp_path: Path) -> None:
    killed = start("up", "--port", "0", "--data", tmp_path)
    killed.wait_until_ready()
    assert killed.process.poll() is None
    killed.freeze()

    assert killed.end(signal.SIGKILL).code == -signal.SIGKILL
    assert killed.process.poll() == -signal.SIGKILL
    stopped = start("up", "--port", "0", "--data", tmp_path)
    stopped.wait_until_ready()
    assert stopped.end(signal.SIGINT).code == 0


def test_a_fork_that_nobody_waits_for_any_more_is_killed(tmp_path: Path) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    arguments = ["up", "--port", "0", "--data", str(tmp_path)]
    forked = fork("backburner", arguments, [nowhere] * 3)
    handle = os.pidfd_open(forked.pid)

    forked._report.close()

    assert select.select([handle], [], [], SOON)[0] == [handle]
    for file in (handle, nowhere):
        os.close(file)


def test_forks_end_when_those_who_wanted_them_are_killed(start: Start, tmp_path: Path) -> None:
    holder = start(tmp_path, command=(sys.executable, "-c", HOLDER))
    forked = int(holder.read_line())
    handle = os.pidfd_open(forked)
    assert select.select([handle], [], [], 0)[0] == []

    holder.end(signal.SIGKILL)

    assert select.select([handle], [], [], SOON)[0] == [handle]
    os.close(handle)
