"""The end of a tree: whoever ends it, and whatever is in it, nobody is left."""

import asyncio
import os
import signal
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

from backburner.process.command import Command, Exit
from backburner.process.tree import Tree, started

#: Starts a command, shows what it says, and can be killed.
HOLDER = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from backburner.process.command import Command
from backburner.process.tree import started

async def hold():
    command = Command(argv=tuple(sys.argv[1:]), env={}, cwd=Path("/"))
    async with started(command, grace=timedelta(seconds=0.2)) as tree:
        while line := await tree.stdout.readline():
            print(line.decode(), end="", flush=True)

asyncio.run(hold())
"""
#: In short steps, because a shell that hears a signal just before a step finishes that first.
EVER = "while :; do sleep 0.1; done"


def inner(tree: Tree) -> int:
    return parent_of(tree.pid)


def outer(tree: Tree) -> int:
    return parent_of(inner(tree))


async def test_leaving_ends_everybody(word: str) -> None:
    async with started(family(word), grace=GRACE) as tree:
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


async def test_a_cancel_ends_everybody_even_if_it_comes_twice(word: str) -> None:
    there = asyncio.Event()

    async def use() -> None:
        async with started(family(word), grace=GRACE) as tree:
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
async def test_a_cancel_during_the_start_leaves_nobody(word: str, milliseconds: int) -> None:
    async def use() -> None:
        async with started(script(EVER, word), grace=GRACE) as tree:
            await tree.wait()

    using = asyncio.create_task(use())
    await asyncio.wait([using], timeout=milliseconds / 1000)
    using.cancel()

    with pytest.raises(asyncio.CancelledError):
        await using
    await asyncio.to_thread(wait_until_gone, word)
    assert zombies() == []


async def test_an_error_ends_everybody(word: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with started(script(EVER, word), grace=GRACE):
            _ = 1 / 0

    assert alive(word) == []


async def test_what_a_command_leaves_behind_ends_with_it(word: str) -> None:
    left = f'setsid sh -c \'{EVER}\' "$0" & setsid sh -c \'trap "" TERM; {EVER}\' "$0" &'

    async with started(script(left + " exit 3", word), grace=GRACE) as tree:
        assert await tree.wait() == Exit(code=3)
        assert alive(word) == []


async def test_those_that_end_when_asked_have_time_for_it(word: str) -> None:
    polite = f"trap 'echo bye; exit 7' TERM; echo ready; {EVER}"

    async with started(script(polite, word), grace=SOON) as tree:
        assert await tree.stdout.readline() == b"ready\n"
        assert await tree.end() == Exit(code=7)
        assert await tree.stdout.read() == b"bye\n"
        assert await tree.end() == await tree.wait() == Exit(code=7)


async def test_those_that_come_after_everybody_was_asked_are_asked_as_well(
    word: str, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "there")
    late = f'setsid sh -c "echo >there; {EVER}" $0 & read line <there'
    prolific = script(f"trap '{late}; exit 7' TERM; echo ready; {EVER}", word, cwd=tmp_path)

    async with asyncio.timeout(20), started(prolific, grace=SOON * 2) as tree:
        assert await tree.stdout.readline() == b"ready\n"
        assert await tree.end() == Exit(code=7)

    assert alive(word) == []


async def test_one_that_is_stopped_is_woken_to_end() -> None:
    polite = f"trap 'exit 7' TERM; echo ready; {EVER}"

    async with started(script(polite), grace=SOON) as tree:
        assert await tree.stdout.readline() == b"ready\n"
        os.kill(tree.pid, signal.SIGSTOP)
        assert await tree.end() == Exit(code=7)


async def test_output_that_nobody_reads_does_not_keep_the_tree_from_ending() -> None:
    async with asyncio.timeout(20), started(command("yes"), grace=GRACE, longest_line=10) as tree:
        await tree.stdout.readline()
        assert await tree.end() == Exit(signal=signal.SIGTERM)


async def test_the_end_is_noticed_while_somebody_else_holds_a_stream() -> None:
    async with asyncio.timeout(20), started(command("cat"), stdin="pipe") as tree:
        held = os.open(f"/proc/{tree.pid}/fd/1", os.O_WRONLY)
        try:
            tree.stdin.close()
            assert await tree.wait() == Exit(code=0)
        finally:
            os.close(held)


@pytest.mark.parametrize("of", [inner, outer])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_if_one_that_watches_is_ended_the_other_ends_everybody(
    word: str, of: Callable[[Tree], int], number: signal.Signals
) -> None:
    async with started(family(word), grace=GRACE) as tree:
        await assembled(tree.stdout)
        os.kill(of(tree), number)
        await asyncio.to_thread(wait_until_gone, word)

        assert await tree.wait() == Exit(signal=signal.SIGKILL)


async def test_if_those_that_watch_are_stopped_everybody_ends_all_the_same(word: str) -> None:
    async with started(family(word), grace=timedelta(0)) as tree:
        await assembled(tree.stdout)
        os.kill(outer(tree), signal.SIGSTOP)
        os.kill(inner(tree), signal.SIGSTOP)

    assert alive(word) == []


async def test_asked_twice_everybody_has_as_much_time_as_before(word: str) -> None:
    slow = f"trap 'sleep 0.1; exit 7' TERM; echo ready; {EVER}"

    async with started(script(slow, word), grace=SOON) as tree:
        await tree.stdout.readline()
        for pid in (outer(tree), inner(tree)):
            os.kill(pid, signal.SIGTERM)
        assert await tree.end() == Exit(code=7)


def test_if_we_are_killed_everybody_ends(word: str, start: Start) -> None:
    holder = start(*family_argv(word), command=(sys.executable, "-P", "-c", HOLDER))
    for _ in range(MEMBERS):
        assert holder.read_line()
    holder.end(signal.SIGKILL)

    wait_until_gone(word)


def test_if_we_are_killed_during_the_start_nobody_is_left(word: str, start: Start) -> None:
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
async def test_the_end_of_the_command_is_told_as_it_was(ends: Command, exit_: Exit) -> None:
    async with started(ends) as tree:
        assert await tree.wait() == exit_
        assert exit_.ok == (exit_.code == 0)
