"""Starting a command: what it inherits, its streams, and commands that cannot start."""

import asyncio
import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.programs.families import GRACE, PATH, SOON, command, script
from support.programs.process_table import environment_of, parent_of, zombies

from backburner.core.errors import BadRequest, ProcessFailed
from backburner.process.command import Command, Exit
from backburner.process.run import run
from backburner.process.tree import spawn

CANARY = "canary-in-our-environment"
SECRET = "a-secret-for-the-program"  # noqa: S105


async def output_of(command: Command) -> list[str]:
    finished = await run(command, within=SOON)
    assert finished.exit.ok, finished
    return finished.stdout.text.splitlines()


async def test_a_command_has_the_variables_it_is_given_and_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    given = {"PATH": "/usr/bin:/bin", "EMPTY": "", "LINES": "one\ntwo", "NAME": "naïve=☂"}

    output = await output_of(Command(argv=("env", "-0"), env=given, cwd=Path("/")))

    assert "\n".join(output) == "".join(f"{name}={value}\0" for name, value in given.items())


async def test_a_command_may_have_no_variables_at_all() -> None:
    assert await output_of(Command(argv=("/usr/bin/env",), env={}, cwd=Path("/"))) == []


async def test_no_process_between_us_and_the_command_has_our_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CANARY", CANARY)

    async with spawn(command("cat"), stdin="pipe") as tree:
        # Only after exec is its environment in place.
        tree.stdin.write(b"ready\n")
        await tree.stdout.readline()
        inner = parent_of(tree.pid)
        outer = parent_of(inner)

        assert parent_of(outer) == os.getpid()
        for pid in (outer, inner, tree.pid):
            assert environment_of(pid) == {"PATH": PATH}


async def test_a_command_has_its_three_streams_and_no_other_descriptors() -> None:
    inheritable = fcntl.fcntl(1, fcntl.F_DUPFD, 57)
    try:
        # The fourth is the folder that `ls` lists.
        assert await output_of(command("ls", "/proc/self/fd")) == ["0", "1", "2", "3"]
    finally:
        os.close(inheritable)


async def test_a_command_ignores_and_blocks_no_signals() -> None:
    lines = await output_of(command("grep", "-E", "SigIgn|SigBlk", "/proc/self/status"))

    # Signals above 31 belong to the C library.
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in lines] == [0, 0]


async def test_a_command_runs_in_its_folder_and_in_a_session_of_its_own(tmp_path: Path) -> None:
    assert await output_of(command("pwd", cwd=tmp_path)) == [str(tmp_path)]

    async with spawn(command("cat"), stdin="pipe") as tree:
        assert os.getsid(tree.pid) == tree.pid


async def test_arguments_are_passed_on_unchanged() -> None:
    arguments = ("", " two words ", "$HOME;*", "--", "-x", "naïve ☂", "line\nbreak")

    output = await output_of(command("printf", "%s|", *arguments))

    assert "\n".join(output) == "".join(f"{argument}|" for argument in arguments)


async def test_a_caller_can_talk_with_a_command_line_by_line() -> None:
    async with spawn(command("cat"), stdin="pipe") as tree, asyncio.timeout(20):
        for line in (b"one\n", b"x" * 1_000_000 + b"\n", b"three\n"):
            tree.stdin.write(line)
            await tree.stdin.drain()
            assert await tree.stdout.readline() == line
        tree.stdin.close()

        assert await tree.stdout.read() == b""
        assert await tree.wait() == Exit(code=0)


async def test_stderr_is_separate_from_stdout_and_can_be_dropped() -> None:
    both = script("echo out; echo err >&2")

    async with spawn(both) as tree:
        assert await tree.stdout.read() == b"out\n"
        assert await tree.stderr.read() == b"err\n"

    async with spawn(both, stderr="drop") as tree:
        assert await tree.stdout.read() == b"out\n"
        with pytest.raises(ValueError, match="no pipe"):
            _ = tree.stderr


async def test_a_stream_ends_when_the_command_closes_it() -> None:
    async with spawn(script("exec >&-; read line"), stdin="pipe") as tree:
        async with asyncio.timeout(20):
            assert await tree.stdout.read() == b""

        tree.stdin.write(b"go on\n")
        assert await tree.wait() == Exit(code=0)


async def test_fifty_commands_run_at_once() -> None:
    barrier = asyncio.Barrier(50)

    async def talk(number: int) -> bytes:
        async with spawn(command("cat"), stdin="pipe") as tree:
            await barrier.wait()
            tree.stdin.write(b"%d\n" % number)
            return await tree.stdout.readline()

    async with asyncio.timeout(20):
        lines = await asyncio.gather(*map(talk, range(50)))

    assert lines == [b"%d\n" % number for number in range(50)]
    assert zombies() == []


def missing(folder: Path) -> Command:
    return command("no-such-program", SECRET, TOKEN=SECRET, cwd=folder)


def missing_in_folder(folder: Path) -> Command:
    return command(str(folder / "no-such-program"), SECRET, TOKEN=SECRET)


def missing_folder(folder: Path) -> Command:
    return command("true", SECRET, TOKEN=SECRET, cwd=folder / "no-such-folder")


def no_folder(folder: Path) -> Command:
    (folder / "file").touch()
    return command("true", SECRET, TOKEN=SECRET, cwd=folder / "file")


def not_executable(folder: Path) -> Command:
    (folder / "file").write_text("#!/bin/sh\n")
    return command(str(folder / "file"), SECRET, TOKEN=SECRET)


def no_program(folder: Path) -> Command:
    (folder / "file").write_text("This is no program.")
    (folder / "file").chmod(0o755)
    return command(str(folder / "file"), SECRET, TOKEN=SECRET)


def too_long(folder: Path) -> Command:
    return command("true", SECRET * 100_000, TOKEN=SECRET, cwd=folder)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (missing, "Program not found: no-such-program. Install it"),
        (missing_in_folder, "Program not found: /"),
        (missing_folder, "no-such-folder: No such file or directory."),
        (no_folder, "file: Not a directory."),
        (not_executable, "cannot be executed. Make it executable"),
        (no_program, "cannot be executed. Make it executable"),
        (too_long, "The arguments and variables for true are too long"),
    ],
)
async def test_a_command_that_cannot_start_is_refused_without_naming_its_secrets(
    make: Callable[[Path], Command], sentence: str, tmp_path: Path
) -> None:
    refused = make(tmp_path)

    with pytest.raises(ProcessFailed) as caught:
        async with spawn(refused, grace=GRACE):
            pytest.fail("The command has started.")

    assert sentence in str(caught.value)
    assert caught.value.permanent
    assert SECRET not in f"{caught.value!r} {refused!r} {refused}"
    assert zombies() == []


@pytest.mark.parametrize(
    ("argv", "env"),
    [
        ((), {}),
        (("",), {}),
        (("true", f"{SECRET}\0"), {}),
        (("true",), {"NAME": f"{SECRET}\0"}),
        (("true",), {"": SECRET}),
        (("true",), {"A=B": SECRET}),
        (("true",), {"A,B": SECRET}),
    ],
)
def test_arguments_and_variables_that_cannot_be_passed_are_refused(
    argv: tuple[str, ...], env: dict[str, str]
) -> None:
    with pytest.raises(BadRequest) as caught:
        Command(argv=argv, env=env, cwd=Path("/"))

    assert SECRET not in str(caught.value)
