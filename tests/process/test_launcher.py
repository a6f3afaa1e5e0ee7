"""A wrapper in place of a program: it behaves the same, and leaves no process behind."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.programs.families import FAMILY, GRACE, MEMBERS, PATH, SOON, assembled
from support.programs.process_table import alive, environment_of, wait_until_gone
from support.programs.programs import Start

from backburner.process.confinement import ProcessLimits, confine_to
from backburner.process.launcher import CleanLauncher, write_wrapper

CANARY = {"CANARY": "canary-in-our-environment"}
#: Starts a program, prints its output, and can be killed.
HOLDER = """
import subprocess, sys
with subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True) as process:
    for line in process.stdout:
        print(line, end="", flush=True)
"""

Wrap = Callable[[str | Path], Path]


@pytest.fixture
def wrap(tmp_path: Path) -> Wrap:
    """Return a function that writes a wrapper, in a folder whose name needs quotes."""
    folder = tmp_path / "it's a folder"
    folder.mkdir()

    def wrap(program: str | Path) -> Path:
        write_wrapper(
            folder / "wrapper", program=Path(program), keep=("PATH", "KEPT", "UNSET"), grace=GRACE
        )
        return folder / "wrapper"

    return wrap


@pytest.fixture
def family(tmp_path: Path) -> Path:
    program = tmp_path / "family"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {FAMILY} "$@"\n')
    program.chmod(0o700)
    return program


@asynccontextmanager
async def running(*argv: str | Path, new_session: bool = False) -> AsyncIterator[Process]:
    environment = {"PATH": PATH, "KEPT": "yes", **CANARY}
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment, start_new_session=new_session
    )
    try:
        async with asyncio.timeout(SOON.total_seconds()):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_wrapper_passes_on_arguments_and_streams(wrap: Wrap) -> None:
    text = 'printf "%s|" "$@"; cat; echo err >&2; exit 3'

    async with running(wrap("/bin/sh"), "-c", text, "sh", "", "two words", "it's $HOME") as process:
        out, err = await process.communicate(b"stdin")

    assert (out, err, process.returncode) == (b"|two words|it's $HOME|stdin", b"err\n", 3)


async def test_a_wrapper_and_its_program_have_only_the_variables_to_keep(
    wrap: Wrap, word: str
) -> None:
    async with running(wrap("/bin/cat"), "-", word) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(b"ready\n")
        await process.stdout.readline()

        kept = {"PATH": PATH, "KEPT": "yes"}
        assert [environment_of(pid) for pid in alive(word)] == [kept, kept, kept]


async def test_sigterm_to_a_wrapper_ends_every_process(wrap: Wrap, family: Path, word: str) -> None:
    async with running(wrap(family), word) as process:
        await assembled(process.stdout)
        process.terminate()
        await process.communicate()

        assert process.returncode == -signal.SIGKILL
        assert alive(word) == []


async def test_sigkill_to_a_wrapper_ends_every_process(wrap: Wrap, family: Path, word: str) -> None:
    async with running(wrap(family), word) as process:
        await assembled(process.stdout)
        process.kill()

        await asyncio.to_thread(wait_until_gone, word)


async def test_sigkill_to_the_group_of_a_wrapper_ends_every_process(
    wrap: Wrap, family: Path, word: str
) -> None:
    async with running(wrap(family), word, new_session=True) as process:
        await assembled(process.stdout)
        os.killpg(process.pid, signal.SIGKILL)

        await asyncio.to_thread(wait_until_gone, word)


async def test_a_wrapped_program_sees_the_end_of_its_input(wrap: Wrap) -> None:
    async with running(wrap("/bin/cat")) as process:
        assert await process.communicate(b"all\n") == (b"all\n", b"")
        assert process.returncode == 0


def test_the_end_of_the_process_that_started_a_wrapper_ends_every_process(
    wrap: Wrap, family: Path, word: str, start: Start
) -> None:
    holder = start(wrap(family), word, command=(sys.executable, "-c", HOLDER))
    for _ in range(MEMBERS):
        assert holder.read_line()
    holder.end(signal.SIGKILL)

    wait_until_gone(word)


@pytest.mark.parametrize(("program", "code"), [("/no/such/program", 127), ("/etc/passwd", 126)])
async def test_a_wrapper_names_a_program_that_cannot_be_run(
    wrap: Wrap, program: str, code: int
) -> None:
    async with running(wrap(program), "a-secret") as process:
        _, err = await process.communicate()

    assert process.returncode == code
    assert err.decode().startswith(f"{program}: ")
    assert b"a-secret" not in err


def test_a_wrapper_is_writable_by_its_owner_only_and_can_be_replaced(wrap: Wrap) -> None:
    wrapper = wrap("/bin/false")

    assert wrap("/bin/true") == wrapper
    assert wrapper.stat().st_mode & 0o777 == 0o755
    assert [path.name for path in wrapper.parent.iterdir()] == ["wrapper"]


async def test_a_wrapped_program_can_be_confined(tmp_path: Path) -> None:
    folder = tmp_path / "a folder, with = signs"
    folder.mkdir()
    (tmp_path / "canary").write_text("canary")
    wrapper = tmp_path / "wrapper"
    write_wrapper(
        wrapper,
        program=Path("/bin/sh"),
        keep=("PATH",),
        grace=GRACE,
        confinement=confine_to(folder),
        limits=ProcessLimits(max_file_bytes=4096),
    )
    text = 'cd "$1"; echo in >file; cat file; ulimit -f; cat ../canary; kill -0 $PPID; exit 3'

    async with running(wrapper, "-c", text, "sh", folder) as process:
        out, err = await process.communicate()

    assert (out, process.returncode) == (b"in\n8\n", 3)
    assert b"Permission denied" in err
    assert b"not permitted" in err


async def test_a_wrapped_program_outside_its_folders_is_named(tmp_path: Path, family: Path) -> None:
    wrapper = tmp_path / "wrapper"
    write_wrapper(wrapper, program=family, keep=(), confinement=confine_to())

    async with running(wrapper) as process:
        _, err = await process.communicate()

    assert (err.decode(), process.returncode) == (f"{family}: Permission denied\n", 126)


def write_agent(wrapper: Path, *, program: Path) -> None:
    limit = wrapper.with_name("limit")
    CleanLauncher().write(wrapper, program=program, keep=(), writable=(), limit_report=limit)


async def test_a_wrapped_agent_has_limits(tmp_path: Path) -> None:
    wrapper = tmp_path / "wrapper"
    write_agent(wrapper, program=Path("/bin/sh"))

    text = "ulimit -f; ulimit -c; read -r score </proc/self/oom_score_adj; echo $score"
    async with running(wrapper, "-c", text) as process:
        out, _ = await process.communicate()

    assert out.split() == [b"%d" % (2**30 // 512), b"0", b"500"]


@pytest.mark.parametrize(
    ("limits", "line", "name"),
    [
        (ProcessLimits(max_processes=5), "for i in 1 2 3 4 5 6 7; do sleep 60 & done", "processes"),
        (ProcessLimits(max_memory_bytes=1024), ":", "memory"),
        (ProcessLimits(disk=Path("/"), min_free_bytes=2**62), ":", "disk"),
    ],
)
async def test_a_limit_that_a_wrapped_program_exceeds_is_named(
    tmp_path: Path, limits: ProcessLimits, line: str, name: str
) -> None:
    wrapper, report = tmp_path / "wrapper", tmp_path / "a = limit"
    limits = replace(limits, poll=timedelta(seconds=0.05))
    write_wrapper(
        wrapper, program=Path("/bin/sh"), keep=("PATH",), limits=limits, limit_report=report
    )

    async with running(wrapper, "-c", f"{line}; sleep 60; sleep 60") as process:
        await process.communicate()

    assert process.returncode
    assert report.read_text() == name


async def test_a_wrapped_agent_sees_no_other_process(tmp_path: Path) -> None:
    """Its own tools share what it sees, and processes of other users have arguments."""
    wrapper = tmp_path / "wrapper"
    write_agent(wrapper, program=Path("/bin/cat"))

    files = (f"/proc/{os.getpid()}/cmdline", "/proc/loadavg", "/proc/self/cmdline")
    async with running(wrapper, *files) as process:
        out, err = await process.communicate()

    assert err.count(b"No such file") == 1
    assert len(out.split()) == 5 + 1
    assert out.endswith(b"/proc/self/cmdline\0")
