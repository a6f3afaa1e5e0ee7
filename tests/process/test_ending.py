"""The end of a process tree: however it is ended, no process is left."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from support.programs.families import (
    GRACE,
    MEMBERS,
    SOON,
    assembled,
    command,
    family,
    family_argv,
    script,
)
from support.programs.process_table import alive, parent_of, wait_until_gone, zombies
from support.programs.programs import Start

from backburner.process import reaper
from backburner.process.command import Command, Exit
from backburner.process.tree import ProcessTree, spawn

#: Starts a command, prints its output, and can be killed.
HOLDER = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from backburner.process.command import Command
from backburner.process.tree import spawn

async def hold():
    command = Command(argv=tuple(sys.argv[1:]), env={}, cwd=Path("/"))
    async with spawn(command, grace=timedelta(seconds=0.2)) as tree:
        while line := await tree.stdout.readline():
            print(line.decode(), end="", flush=True)

asyncio.run(hold())
"""
#: A reaper whose outer process gets to its work late.
LATE_OUTER = f"""
import sys, time
sys.path.insert(0, {str(Path(reaper.__file__).parent)!r})
import reaper
usual = reaper.run_outer

def late(*given, **more):
    time.sleep(0.5)
    usual(*given, **more)

reaper.run_outer = late
reaper.main(sys.argv[1:])
"""
#: Sleeps for short, because a shell handles a signal only after the current command.
EVER = "while :; do sleep 0.1; done"


def inner(tree: ProcessTree) -> int:
    return parent_of(tree.pid)


def outer(tree: ProcessTree) -> int:
    return parent_of(inner(tree))


async def test_leaving_the_context_ends_every_process(word: str) -> None:
    async with spawn(family(word), grace=GRACE) as tree:
        assert await assembled(tree.stdout) == sorted(
            [
                "command",
                "child",
                "grandchild",
                "its parent",
                "orphan",
                "parent of one that is stopped",
                "breeder",
                "hopper",
            ]
        )
        assert len(alive(word)) > MEMBERS

    assert alive(word) == []
    assert zombies() == []


async def test_cancelling_twice_ends_every_process(word: str) -> None:
    there = asyncio.Event()

    async def use() -> None:
        async with spawn(family(word), grace=GRACE) as tree:
            await assembled(tree.stdout)
            there.set()
            await tree.wait()

    using = asyncio.create_task(use())
    await asyncio.wait_for(there.wait(), SOON.total_seconds())
    using.cancel()
    await asyncio.sleep(0)
    using.cancel()

    with pytest.raises(asyncio.CancelledError):
        await using
    assert alive(word) == []


@pytest.mark.parametrize("milliseconds", [0, 1, 3, 6, 9, 12, 16])
async def test_cancelling_during_the_start_leaves_no_process(word: str, milliseconds: int) -> None:
    async def use() -> None:
        async with spawn(script(EVER, word), grace=GRACE) as tree:
            await tree.wait()

    using = asyncio.create_task(use())
    await asyncio.wait([using], timeout=milliseconds / 1000)
    using.cancel()

    with pytest.raises(asyncio.CancelledError):
        await using
    await asyncio.to_thread(wait_until_gone, word)
    assert zombies() == []


async def test_an_error_in_the_context_ends_every_process(word: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with spawn(script(EVER, word), grace=GRACE):
            _ = 1 / 0

    assert alive(word) == []


async def test_background_processes_end_with_the_command(word: str) -> None:
    left = f'setsid sh -c \'{EVER}\' "$0" & setsid sh -c \'trap "" TERM; {EVER}\' "$0" &'

    async with spawn(script(left + " exit 3", word), grace=GRACE) as tree:
        assert await tree.wait() == Exit(code=3)
        assert alive(word) == []


async def test_a_command_has_its_grace_period_to_end_by_itself(word: str) -> None:
    polite = "trap 'echo bye; exit 7' TERM; sleep 60 & echo ready; wait"

    async with spawn(script(polite, word), grace=SOON) as tree:
        assert await tree.stdout.readline() == b"ready\n"
        assert await tree.end() == Exit(code=7)
        assert await tree.stdout.read() == b"bye\n"
        assert await tree.end() == await tree.wait() == Exit(code=7)


async def test_a_process_started_after_sigterm_gets_sigterm_as_well(
    word: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "there")
    late = f'setsid sh -c "echo >there; {EVER}" $0 & read line <there'
    prolific = script(f"trap '{late}; exit 7' TERM; echo ready; {EVER}", word, cwd=tmp_path)

    async with asyncio.timeout(20), spawn(prolific, grace=SOON * 2) as tree:
        assert await tree.stdout.readline() == b"ready\n"
        assert await tree.end() == Exit(code=7)

    assert alive(word) == []


async def test_a_stopped_command_is_continued_to_end() -> None:
    polite = "trap 'exit 7' TERM; sleep 60 & echo ready; wait"

    async with spawn(script(polite), grace=SOON) as tree:
        assert await tree.stdout.readline() == b"ready\n"
        os.kill(tree.pid, signal.SIGSTOP)
        assert await tree.end() == Exit(code=7)


async def test_unread_output_does_not_keep_the_tree_from_ending() -> None:
    async with asyncio.timeout(20), spawn(command("yes"), grace=GRACE, max_line=10) as tree:
        await tree.stdout.readline()
        assert await tree.end() == Exit(signal=signal.SIGTERM)


async def test_the_end_of_a_command_is_noticed_while_another_process_holds_its_output() -> None:
    async with asyncio.timeout(20), spawn(command("cat"), stdin="pipe") as tree:
        held = os.open(f"/proc/{tree.pid}/fd/1", os.O_WRONLY)
        try:
            tree.stdin.close()
            assert await tree.wait() == Exit(code=0)
        finally:
            os.close(held)


@pytest.mark.parametrize("of", [inner, outer])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_if_one_reaper_is_ended_the_other_ends_every_process(
    word: str, of: Callable[[ProcessTree], int], number: signal.Signals
) -> None:
    async with spawn(family(word), grace=GRACE) as tree:
        await assembled(tree.stdout)
        os.kill(of(tree), number)
        await asyncio.to_thread(wait_until_gone, word)

        assert await tree.wait() == Exit(signal=signal.SIGKILL)


async def test_stopped_reapers_still_end_every_process(word: str) -> None:
    async with spawn(family(word), grace=timedelta(0)) as tree:
        await assembled(tree.stdout)
        os.kill(outer(tree), signal.SIGSTOP)
        os.kill(inner(tree), signal.SIGSTOP)

    assert alive(word) == []


def test_a_sigterm_before_the_outer_process_watches_is_not_missed() -> None:
    argv = ["env=PATH", "--", "sh", "-c", "trap 'exit 7' TERM; sleep 60 & echo ready; wait"]
    with subprocess.Popen(
        [sys.executable, "-c", LATE_OUTER, *argv], stdout=subprocess.PIPE, text=True
    ) as late:
        assert late.stdout is not None
        assert late.stdout.readline() == "ready\n"
        late.send_signal(signal.SIGTERM)

        assert late.wait(SOON.total_seconds()) == 7


async def test_a_second_sigterm_does_not_shorten_the_grace_period(word: str) -> None:
    slow = "trap 'sleep 0.1; exit 7' TERM; sleep 60 & echo ready; wait"

    async with spawn(script(slow, word), grace=SOON) as tree:
        await tree.stdout.readline()
        for pid in (outer(tree), inner(tree)):
            os.kill(pid, signal.SIGTERM)
        assert await tree.end() == Exit(code=7)


def test_every_process_ends_if_we_are_killed(word: str, start: Start) -> None:
    holder = start(*family_argv(word), command=(sys.executable, "-P", "-c", HOLDER))
    for _ in range(MEMBERS):
        assert holder.read_line()
    holder.end(signal.SIGKILL)

    wait_until_gone(word)


def test_no_process_is_left_if_we_are_killed_during_the_start(word: str, start: Start) -> None:
    holder = start(*family_argv(word), command=(sys.executable, "-P", "-c", HOLDER))
    while len(alive(word)) < 2:
        assert holder.process.poll() is None
    holder.end(signal.SIGKILL)

    wait_until_gone(word)


@pytest.mark.parametrize(
    ("ends", "exit_"),
    [
        (command("true"), Exit(code=0)),
        (command("false"), Exit(code=1)),
        (script("exit 255"), Exit(code=255)),
        *(
            (script(f"ulimit -c 0; kill -{number} $$"), Exit(signal=number))
            for number in (1, 2, 3, 6, 9, 10, 11, 13, 15, 31, 40)
        ),
    ],
)
async def test_the_exit_of_the_command_is_reported_unchanged(ends: Command, exit_: Exit) -> None:
    async with spawn(ends) as tree:
        assert await tree.wait() == exit_
        assert exit_.ok == (exit_.code == 0)
