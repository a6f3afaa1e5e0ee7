"""A confined command: what it can see and do, and that we stay out of its reach."""

import asyncio
import os
import signal
import socket
import sys
from pathlib import Path

import pytest
from support.programs.families import FAMILY, GRACE, MEMBERS, PATH, SOON, assembled
from support.programs.process_table import alive

from backburner.core.errors import ProcessFailed
from backburner.process import landlock
from backburner.process.command import Command, Exit
from backburner.process.confinement import (
    Confinement,
    Limits,
    _gaps,
    confine_to,
    confinement_gaps,
    confinement_missing,
)
from backburner.process.refusals import not_run
from backburner.process.run import Finished, run
from backburner.process.tree import started

CANARY = "canary-outside-of-the-folder"
#: A program of the system, because ours may lie where a confined command cannot see it.
PYTHON = "/usr/bin/python3"

#: Opens a socket that is a file; the folder for it is the command's own.
LISTENS = "import socket; socket.socket(socket.AF_UNIX).bind('here'); print('bound')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Put a file beside the folder, where a command has no business."""
    file = tmp_path / "beside" / "canary"
    file.parent.mkdir()
    file.write_text(CANARY)
    return file


def confined(folder: Path, *argv: str, confinement: Confinement | None = None) -> Command:
    return Command(
        argv=argv, env={"PATH": PATH}, cwd=folder, confined=confinement or confine_to(folder)
    )


async def shell(folder: Path, text: str, confinement: Confinement | None = None) -> Finished:
    return await run(confined(folder, "sh", "-c", text, confinement=confinement), within=SOON)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_programs_can_be_confined_here() -> None:
    assert confinement_missing() is None
    assert landlock.version() >= 1
    assert list(confinement_gaps()) == list(_gaps(landlock.version(), filters=True))


async def test_a_command_does_as_it_likes_in_its_folder(folder: Path) -> None:
    does = """
    mkdir -p a/b && echo text >a/b/file && ln -s file a/b/link && mv a/b c && cat c/link
    printf '#!/bin/sh\necho ran' >program && chmod +x program && ./program && : >c/file && rm -r c
    """

    finished = await shell(folder, does)

    assert (finished.stdout.text, finished.stderr.text) == ("text\nran\n", "")
    assert names(folder) == ["a", "program"]


@pytest.mark.parametrize(
    "attempt",
    [
        "cat {canary}",
        "cat {folder}/../beside/canary",
        "ln -s {canary} link; cat link",
        "ln {canary} hard; cat hard",
        "cp {canary} copy; cat copy",
        "cat /proc/self/cwd/../beside/canary",
        "mv {canary} here; cat here",
        "ls {beside}",
        "cd {beside} && ls && cat canary",
    ],
)
async def test_a_command_reads_nothing_beside_its_folder(
    folder: Path, canary: Path, attempt: str
) -> None:
    text = attempt.format(canary=canary, folder=folder, beside=canary.parent)

    finished = await shell(folder, text)

    assert not finished.exit.ok
    assert CANARY not in finished.stdout.text
    assert "canary" not in finished.stdout.text
    assert "Permission denied" in finished.stderr.text or "cross-device" in finished.stderr.text


@pytest.mark.parametrize(
    "attempt",
    [
        "echo x >{canary}",
        "echo x >>{canary}",
        "truncate -s 0 {canary}",
        "rm -f {canary}",
        "touch {beside}/new",
        "mkdir {beside}/new",
        "mv {canary} {beside}/new",
        "ln -s x {beside}/new",
    ],
)
async def test_a_command_changes_nothing_beside_its_folder(
    folder: Path, canary: Path, attempt: str
) -> None:
    finished = await shell(folder, attempt.format(canary=canary, beside=canary.parent))

    assert not finished.exit.ok
    assert names(canary.parent) == ["canary"]
    assert await asyncio.to_thread(canary.read_text) == CANARY


async def test_what_may_be_read_may_not_be_written(folder: Path, canary: Path) -> None:
    finished = await shell(
        folder,
        f"cat {canary}; echo x >>{canary}; echo x >{canary.parent}/new",
        confine_to(folder, readable=[canary.parent]),
    )

    assert finished.stdout.text == CANARY
    assert names(canary.parent) == ["canary"]


@pytest.mark.parametrize("private", "root home var srv tmp . etc dev sys".split())
async def test_a_command_cannot_list(folder: Path, private: str) -> None:
    finished = await shell(folder, f"ls /{private}")

    assert finished.stdout.text == ""
    assert not finished.exit.ok


@pytest.mark.parametrize("file", ["/etc/shadow", "/etc/ssh/sshd_config", "/etc/environment"])
async def test_a_command_cannot_read(folder: Path, file: str) -> None:
    assert (await shell(folder, f"cat {file}")).stdout.text == ""


async def test_our_own_python_need_not_be_seen(folder: Path) -> None:
    # Where Python is part of the system it may be seen; our own files are not.
    for private in (landlock.__file__, FAMILY, sys.prefix):
        if not confine_to(folder).shows(Path(private)):
            assert not (await shell(folder, f"cat {private}")).exit.ok


@pytest.mark.parametrize(
    "text",
    [
        f"{PYTHON} -c 'import ssl, socket; socket.socketpair(); ssl.create_default_context()'",
        "git init -q . && git status",
        "echo x >/dev/null; head -c 10 /dev/urandom | wc -c",
        "cat /etc/hosts /etc/passwd /etc/nsswitch.conf",
        "id; date; nproc; ps",
    ],
)
async def test_what_programs_need_is_there(folder: Path, text: str) -> None:
    finished = await shell(folder, f"set -e; {text}")

    assert finished.exit.ok, finished


@pytest.mark.parametrize(
    "attempt",
    [
        "cat /proc/{pid}/environ",
        "cat /proc/{pid}/maps",
        "cat /proc/{pid}/fd/0",
        "ls /proc/{pid}/cwd/",
    ],
)
async def test_a_command_cannot_look_into_our_processes(
    folder: Path, attempt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", CANARY)

    for pid in (str(os.getpid()), "$PPID"):
        finished = await shell(folder, attempt.format(pid=pid))
        assert finished.stdout.text == ""
        assert "Permission denied" in finished.stderr.text


@pytest.mark.parametrize("number", ["0", "TERM", "STOP", "KILL"])
async def test_a_command_cannot_send_signals_to_our_processes(folder: Path, number: str) -> None:
    for pid in (str(os.getpid()), "$PPID"):
        finished = await shell(folder, f"kill -{number} {pid}")
        assert "Operation not permitted" in finished.stderr.text


async def test_a_command_can_signal_what_it_started(folder: Path) -> None:
    assert (await shell(folder, "sleep 60 & kill $! && wait $!")).exit == Exit(code=143)


async def test_a_command_cannot_change_our_limits(folder: Path) -> None:
    finished = await shell(folder, f"prlimit --pid {os.getpid()} --nofile")

    assert not finished.exit.ok


async def test_a_command_reaches_nobody_through_sockets_with_or_without_a_file(
    folder: Path, word: str
) -> None:
    with socket.socket(socket.AF_UNIX) as nameless, socket.socket(socket.AF_UNIX) as file:
        nameless.bind(f"\0{word}")
        nameless.listen()
        file.bind(str(folder / "s"))
        file.listen()
        for address in (f"\\0{word}", "s"):
            asks = f"import socket; socket.socket(socket.AF_UNIX).connect('{address}')"
            finished = await run(confined(folder, PYTHON, "-c", asks), within=SOON)
            assert "PermissionError" in finished.stderr.text


async def test_sockets_that_are_files_can_be_allowed(folder: Path) -> None:
    allowed = Confinement(readable=confine_to().readable, writable=(folder,), unix_sockets=True)

    finished = await run(confined(folder, PYTHON, "-c", LISTENS, confinement=allowed), within=SOON)

    assert finished.stdout.text == "bound\n"


async def test_a_command_has_no_privileges_and_cannot_gain_any(folder: Path) -> None:
    finished = await shell(folder, "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")

    states = [line.split()[1] for line in finished.stdout.text.splitlines()]
    assert (int(states[0], 16), states[2]) == (0, "1")
    if os.getuid() == 0:
        assert int(states[1], 16) == 0
        assert not (await shell(folder, "mknod disk b 8 0")).exit.ok


async def test_a_command_has_its_signals_and_streams_as_any_other(folder: Path) -> None:
    finished = await shell(
        folder, "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd; ps -o sid= -p $$"
    )

    ignored, blocked, *descriptors, session = finished.stdout.text.split("\n")[:-1]
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in (ignored, blocked)] == [0, 0]
    assert descriptors == ["0", "1", "2", "3"]
    assert session.strip().isdecimal()


async def test_a_family_that_is_confined_is_ended_all_the_same(folder: Path, word: str) -> None:
    (folder / "family.py").write_bytes(FAMILY.read_bytes())
    family = confined(folder, PYTHON, "-I", "-S", "family.py", word)

    async with started(family, grace=GRACE) as tree:
        assert len(await assembled(tree.stdout)) == MEMBERS

    assert alive(word) == []


async def test_limits_hold_without_a_confinement_too(folder: Path) -> None:
    limits = Limits(largest_file=4096, processes=100)
    asks = Command(
        argv=("bash", "-c", "ulimit -c; ulimit -u; head -c 5000 /dev/zero >file; wc -c <file"),
        env={"PATH": PATH},
        cwd=folder,
        limits=limits,
    )

    core, processes, size = (await run(asks, within=SOON)).stdout.text.split()

    assert (core, size) == ("0", "4096")
    assert 100 < int(processes) < 100_000


async def test_a_program_outside_of_the_folders_is_refused_in_words(
    folder: Path, canary: Path
) -> None:
    await asyncio.to_thread(canary.chmod, 0o755)

    with pytest.raises(ProcessFailed, match="outside of the folders it is held to") as caught:
        await run(confined(folder, str(canary)), within=SOON)

    assert caught.value.permanent


def test_without_landlock_a_command_is_refused_with_the_reason(folder: Path) -> None:
    refused = not_run(confined(folder, "sh"), landlock.NOT_CONFINED)

    assert refused.permanent
    assert "sh was not run, because it cannot be confined here." in str(refused)


@pytest.mark.parametrize(
    ("version", "filters", "gaps"),
    [(7, True, 0), (6, True, 0), (5, True, 1), (3, True, 1), (2, True, 2), (1, False, 3)],
)
def test_what_an_older_kernel_leaves_open_is_said(version: int, filters: bool, gaps: int) -> None:  # noqa: FBT001
    assert len(list(_gaps(version, filters=filters))) == gaps


@pytest.mark.parametrize(
    ("version", "bits"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (7, 16), (99, 16)]
)
def test_each_version_is_asked_for_what_it_knows(version: int, bits: int) -> None:
    assert landlock.handled(version) == 2**bits - 1


def test_whether_a_confinement_shows_a_path_can_be_asked(folder: Path, canary: Path) -> None:
    held = confine_to(folder)

    assert held.shows(folder / "file")
    assert held.shows(Path("/usr/bin"))
    assert not held.shows(canary)
    assert not held.shows(folder / ".." / "beside")


async def test_a_signal_ends_a_confined_command_as_it_would_another(folder: Path) -> None:
    assert (await shell(folder, "kill -9 $$")).exit == Exit(signal=signal.SIGKILL)
