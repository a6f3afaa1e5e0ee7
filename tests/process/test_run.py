"""Running a command until it exits: its output, how much of it is kept, and how it ended."""

import asyncio
import os
import socket
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from support.faults.limits import few_files_can_be_opened
from support.programs.families import GRACE, SOON, command, family, script
from support.programs.process_table import alive

from backburner.core.errors import ProcessFailed
from backburner.process.command import Exit
from backburner.process.run import ExitReason, Output, ProcessResult, run

#: Passes its stdout to a process outside its tree, and exits.
GIVER = """
import socket, sys
with socket.socket(socket.AF_UNIX) as outside:
    outside.connect("\\0" + sys.argv[1])
    socket.send_fds(outside, [b"hold this"], [1])
print("given")
"""


async def test_a_result_has_the_exit_and_both_outputs() -> None:
    finished = await run(script("echo out; echo err >&2; exit 3"), within=SOON)

    assert finished == ProcessResult(
        ExitReason.EXITED, Exit(code=3), Output(b"out\n"), Output(b"err\n")
    )


@pytest.mark.parametrize("data", [b"", b"a line\n", bytes(range(256)) * 4000])
async def test_a_command_reads_its_stdin(data: bytes) -> None:
    for reader in (command("cat"), command("cat", "/dev/stdin")):
        assert (await run(reader, within=SOON, stdin=data)).stdout == Output(data)


async def test_a_command_need_not_read_its_stdin() -> None:
    assert (await run(command("true"), within=SOON, stdin=bytes(1_000_000))).exit.ok


async def test_output_above_the_limit_is_omitted_and_counted() -> None:
    both = script("head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end")

    finished = await run(both, within=SOON, limit=1000)

    assert finished.exit.ok
    assert finished.stdout == Output(bytes(1000), omitted=2_999_004)
    assert finished.stderr == Output(bytes(1000), omitted=2_999_000)


async def test_output_that_is_not_utf_8_is_decoded_with_replacements() -> None:
    assert (
        await run(command("printf", r"na\303\257ve \377"), within=SOON)
    ).stdout.text == "naïve �"


async def test_a_command_that_times_out_is_ended_and_its_output_kept(word: str) -> None:
    slow = script("echo begun; trap '' TERM; while :; do sleep 60; done", word)

    finished = await run(slow, within=timedelta(seconds=0.4), grace=GRACE)

    assert finished == ProcessResult(
        ExitReason.TIMED_OUT, Exit(signal=9), Output(b"begun\n"), Output(finished.stderr.data)
    )
    assert alive(word) == []


async def test_a_family_of_processes_that_times_out_is_ended(word: str) -> None:
    finished = await run(family(word), within=timedelta(seconds=0.3), grace=GRACE)

    assert finished.reason is ExitReason.TIMED_OUT
    assert alive(word) == []


async def test_a_cancelled_command_leaves_no_process(word: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    os.mkfifo(there)
    deaf = script("trap '' TERM; echo >$1; while :; do sleep 60; done", word, str(there))
    running = asyncio.create_task(run(deaf, within=SOON, grace=GRACE))
    await asyncio.to_thread(there.read_text)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert alive(word) == []


async def test_a_command_ended_by_a_signal_is_reported_as_killed() -> None:
    finished = await run(script("echo out; kill -9 $$"), within=SOON)

    assert (finished.reason, finished.exit) == (ExitReason.KILLED, Exit(signal=9))
    assert finished.stdout == Output(b"out\n")


async def test_a_result_does_not_wait_for_an_outside_process_that_holds_the_output(
    word: str,
) -> None:
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(f"\0{word}")
        outside.listen()
        holding = asyncio.create_task(asyncio.to_thread(receive_descriptor, outside))

        finished = await run(command(sys.executable, "-I", "-c", GIVER, word), within=SOON)

        os.close(await holding)
    assert (finished.exit, finished.stdout) == (Exit(code=0), Output(b"given\n"))


def receive_descriptor(outside: socket.socket) -> int:
    outside.settimeout(SOON.total_seconds())
    giver, _ = outside.accept()
    with giver:
        _, [descriptor], *_ = socket.recv_fds(giver, 100, 1)
    return descriptor


def count_open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_without_free_file_handles_a_program_is_not_started_and_none_is_lost() -> None:
    assert (await run(command("true"), within=SOON)).exit.ok
    before = count_open_files()
    refused = set[str]()

    for spare in range(12):
        try:
            with few_files_can_be_opened(spare):
                await run(command("true"), within=SOON)
        except ProcessFailed as error:
            refused.add(str(error))

    assert refused == {"true could not be started: Too many open files."}
    assert count_open_files() == before
    assert (await run(command("true"), within=SOON)).exit.ok
