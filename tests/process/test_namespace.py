"""Commands that see no processes but their own: in a PID namespace, or without most of /proc."""

import asyncio
import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from support.programs.families import FAMILY, GRACE, MEMBERS, PATH, SOON, assembled
from support.programs.process_table import alive, parent_of, wait_until_gone, zombies
from support.programs.programs import Start
from support.stage.until import until

from backburner.core.errors import ProcessFailed
from backburner.process import landlock
from backburner.process.command import Command, Exit, reaper_options
from backburner.process.confinement import (
    MACHINE_FILES,
    REAPER_COMMAND,
    confine_to,
    control_groups,
    gives_process_namespace,
)
from backburner.process.refusals import not_run
from backburner.process.run import run
from backburner.process.tree import spawn

#: The system's, because ours may lie in a folder that a confined command cannot read.
PYTHON = "/usr/bin/python3"
LOOKS = "cat /proc/self/stat >/dev/null && echo own; head -c 8 /proc/meminfo; echo; exit 3"
#: Starts the rest of its arguments where the kernel refuses a system call, or any new mount.
REFUSED = f"""
import os, sys
sys.path.insert(0, {str(Path(landlock.__file__).parent)!r})
import landlock, seccomp
landlock.call("prctl", 38, 1, 0, 0, 0)
if sys.argv[1] != "mount":
    unshare = {{"x86_64": 272, "aarch64": 97}}[os.uname().machine]
    number = {{"unshare": unshare, "open_tree": 428, "mount_setattr": 442}}[sys.argv[1]]
    lines = [(seccomp.LOAD, 0), (seccomp.EQUAL, number, "refused", ""),
             (seccomp.RETURN, seccomp.ALLOW), "refused", (seccomp.RETURN, seccomp.REFUSE | 1)]
    code = seccomp.in_memory(b"".join(seccomp.assemble(lines)))
    address = seccomp._ctypes.addressof(code).to_bytes(8, "little")
    assert landlock.call("prctl", 22, 2, (4).to_bytes(8, "little") + address) == 0
else:
    landlock.restrict([], ["/"])
os.execv(sys.argv[2], sys.argv[2:])
"""
#: Starts a confined command with the arguments, prints its output, and can be killed.
HOLDER = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from backburner.process.command import Command
from backburner.process.confinement import ProcessLimits, confine_to, control_groups
from backburner.process.tree import spawn

async def hold():
    folder = Path(sys.argv[1])
    alone = confine_to(folder, sees_processes=False)
    limits = ProcessLimits(groups=control_groups())
    argv = tuple(sys.argv[2:])
    command = Command(argv=argv, env={}, cwd=folder, confinement=alone, limits=limits)
    async with spawn(command, grace=timedelta(seconds=0.1)) as tree:
        while line := await tree.stdout.readline():
            print(line.decode(), end="", flush=True)

asyncio.run(hold())
"""

#: Sets the usual mode of /dev/null, and then uses it.
CHANGES_DEVICES = """
import errno, os

def change(fd):
    try:
        os.fchmod(fd, 0o666)
    except OSError as error:
        return errno.errorcode[error.errno]

print(change(0), change(2), os.read(0, 1), os.write(2, b"x"))
"""
#: Runs a command with namespaces, while there are none left, and with them again.
RUNS_WITHOUT = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from backburner.core.errors import ProcessFailed
from backburner.process.command import Command
from backburner.process.confinement import confine_to
from backburner.process.run import run

folder, most = Path(sys.argv[2]), Path(f"/proc/sys/user/max_{sys.argv[1]}_namespaces")
for number in (most.read_text(), "0", most.read_text()):
    most.write_text(number)
    confinement = confine_to(folder, sees_processes=False)
    env = {"PATH": "/usr/bin:/bin"}
    command = Command(argv=("sh", "-c", "echo ran"), env=env, cwd=folder, confinement=confinement)
    try:
        ran = asyncio.run(run(command, within=timedelta(seconds=20)))
        print(ran.stdout.text, end="")
    except ProcessFailed as error:
        print(error, error.permanent)
"""
#: Finds out whether there are namespaces while none are left, and again later.
TRIES_WITHOUT = """
import sys
from pathlib import Path
from backburner.process.confinement import _process_namespace
from backburner.process.trial import RETRY_SECONDS

most = Path(f"/proc/sys/user/max_{sys.argv[1]}_namespaces")
for number, now in (("0", 0), (most.read_text(), RETRY_SECONDS)):
    most.write_text(number)
    print(_process_namespace.result(now=now))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "family.py").write_bytes(FAMILY.read_bytes())
    return folder


def alone(folder: Path, *argv: str, network: bool = False) -> Command:
    confinement = confine_to(folder, network=network, sees_processes=False)
    return Command(argv=argv, env={"PATH": PATH}, cwd=folder, confinement=confinement)


async def sh(folder: Path, text: str, *, network: bool = False) -> tuple[str, str, Exit]:
    command = alone(folder, "sh", "-c", text, network=network)
    # It ends with its last process, and not after the grace period.
    async with asyncio.timeout(SOON.total_seconds()):
        ran = await run(command, within=SOON, grace=SOON * 2)
    return ran.stdout.text, ran.stderr.text, ran.exit


def test_this_kernel_gives_process_namespaces() -> None:
    assert gives_process_namespace()


@pytest.mark.parametrize("network", [False, True])
async def test_a_command_of_a_team_sees_its_own_processes_and_no_others(
    folder: Path, *, network: bool
) -> None:
    text = "ps -eo comm=; grep -c NSpid /proc/self/status; echo $$"

    out, err, exited = await sh(folder, text, network=network)

    assert (sorted(out.split()), err) == (["1", "2", "ps", "sh"], "")
    assert exited.ok


async def test_nothing_is_left_of_proc_outside(folder: Path) -> None:
    attempts = f"""
    cat /proc/{os.getpid()}/cmdline; cat /proc/1/cmdline; ls /proc/1/root/; umount /proc
    unshare -Urmpf --mount-proc ls /proc; unshare -Urm umount /proc; nsenter -t 1 -m true
    unshare -Ur cat /etc/shadow; cat {FAMILY}; tail -n +3 /proc/net/tcp; ls /proc | wc -l >/dev/null
    """

    out, err, _ = await sh(folder, attempts)

    assert out == ""
    assert "No such file" in err


async def test_system_v_memory_of_others_is_not_listed(folder: Path) -> None:
    libc = ctypes.CDLL(None)
    made = libc.shmget(0, 4096, 0o1600)
    try:
        out, _, _ = await sh(folder, "cat /proc/sysvipc/shm | wc -l")
    finally:
        libc.shmctl(made, 0, None)

    assert (made >= 0, out) == (True, "1\n")


async def test_mounts_that_the_host_removes_are_removed_for_a_command(folder: Path) -> None:
    """Its mounts follow those of the host, where those are shared, and never the other way."""
    shared = ("unshare", "--mount", "--propagation", "shared") if os.geteuid() == 0 else ()
    options = ["env=PATH", *reaper_options(alone(folder, "sh").confinement, None)]
    shows = ("grep", "-oE", "(shared|master):", "/proc/self/mountinfo")
    ran = await asyncio.to_thread(
        subprocess.run,
        [*shared, *REAPER_COMMAND, *options, "--", *shows],
        env={"PATH": PATH},
        stdout=PIPE,
        check=False,
    )

    assert not shared or set(ran.stdout.split()) == {b"master:"}


async def test_the_init_of_a_namespace_holds_nothing_of_the_reaper_open(
    folder: Path, word: str
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    # So that the control socket has a high number.
    held = [os.dup(0) for _ in range(1500)]
    try:
        command = alone(folder, "sh", "-c", "echo ready; kill -STOP $$", word)
        async with spawn(command, grace=timedelta(0)) as tree:
            await tree.stdout.readline()
            init = next(pid for pid in alive(word) if pid != tree.pid and has_namespace(pid))
            opened = Path(f"/proc/{init}/fd")
            await until(lambda: names(opened) == {"0", "1", "2"})
    finally:
        for number in held:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def has_namespace(pid: int) -> bool:
    return Path(f"/proc/{pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()


async def test_a_namespace_gives_a_command_no_privileges(folder: Path) -> None:
    out, _, _ = await sh(folder, "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status")

    *capabilities, no_new = [int(line.split()[1], 16) for line in out.splitlines()]
    assert (capabilities, no_new) == ([0] * 5, 1)


@pytest.mark.parametrize(
    ("text", "exit_"),
    [
        ("exit 3", Exit(code=3)),
        *((f"ulimit -c 0; kill -{number} $$", Exit(signal=number)) for number in (9, 15)),
        ("sleep 60 & kill $! && wait $!", Exit(code=143)),
    ],
)
async def test_the_exit_of_a_command_in_a_namespace_is_its_own(
    folder: Path, text: str, exit_: Exit
) -> None:
    assert (await sh(folder, text))[2] == exit_


async def test_a_program_that_is_not_there_is_named_in_a_namespace_too(folder: Path) -> None:
    with pytest.raises(ProcessFailed, match="not found"):
        await run(alone(folder, "no-such-program"), within=SOON)

    assert zombies() == []


async def test_streams_signals_and_descriptors_are_as_without_a_namespace(folder: Path) -> None:
    text = "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd; cat; echo err >&2"

    ran = await run(alone(folder, "sh", "-c", text), stdin=b"stdin", within=SOON)

    ignored, blocked, *descriptors, fed = ran.stdout.text.split("\n")
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in (ignored, blocked)] == [0, 0]
    assert (descriptors, fed) == (["0", "1", "2", "3"], "stdin")
    assert ran.stderr.text == "err\n"


async def test_a_command_of_a_team_does_not_change_the_devices_of_its_streams(
    folder: Path,
) -> None:
    async with spawn(alone(folder, PYTHON, "-c", CHANGES_DEVICES), stderr="drop") as tree:
        printed = await tree.stdout.read()

    assert printed == b"EROFS EROFS b'' 1\n"


async def test_files_of_a_command_in_a_namespace_are_ours(folder: Path) -> None:
    out, _, _ = await sh(folder, "echo x >new; id -u; id -g; stat -c %u:%g new")

    new = await asyncio.to_thread((folder / "new").stat)
    assert (new.st_uid, new.st_gid) == (os.geteuid(), os.getegid())
    assert out.split() == [str(new.st_uid), str(new.st_gid), f"{new.st_uid}:{new.st_gid}"]


def test_an_ordinary_user_has_a_namespace_too() -> None:
    """Its own user namespace maps the user to itself, so that files keep their owner."""
    becomes: Sequence[str] = ()
    user = os.geteuid()
    if user == 0:
        user = 65534
        becomes = ("setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups")
    text = "id -u; echo x >new; ps -eo comm=; grep -E 'Cap(Prm|Eff|Bnd)' /proc/self/status; exit 7"
    with tempfile.TemporaryDirectory() as folder:
        # Another user may not read where we are installed.
        programs = shutil.copytree(Path(landlock.__file__).parent, Path(folder, "programs"))
        os.chown(folder, user, -1)
        alone = replace(confine_to(Path(folder), sees_processes=False), process_namespace=True)
        argv = [PYTHON, "-I", "-S", str(programs / "reaper.py"), "env=PATH"]
        argv += [*reaper_options(alone, None), "--", "sh", "-c", text]
        ran = subprocess.run(
            [*becomes, *argv],
            env={"PATH": PATH},
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        owner = Path(folder, "new").stat().st_uid

    *seen, prm, eff, bnd = ran.stdout.splitlines()
    assert (seen[0], sorted(seen[1:]), ran.returncode) == (str(user), ["ps", "sh"], 7)
    assert [int(line.split()[1], 16) for line in (prm, eff, bnd)] == [0, 0, 0]
    assert owner == user


async def test_a_family_in_a_namespace_is_ended(folder: Path, word: str) -> None:
    async with spawn(alone(folder, PYTHON, "-I", "-S", "family.py", word), grace=GRACE) as tree:
        assert len(await assembled(tree.stdout)) == MEMBERS

    assert alive(word) == []
    assert zombies() == []


async def test_background_processes_get_sigterm_when_the_command_has_exited(folder: Path) -> None:
    text = "(trap 'echo bye; exit' TERM; echo >there; while :; do :; done) & read l <there; exit 4"
    os.mkfifo(folder / "there")

    out, _, exited = await sh(folder, text)

    assert (out, exited) == ("bye\n", Exit(code=4))


@pytest.mark.parametrize("generations", [1, 2])
async def test_if_a_reaper_is_killed_no_process_of_a_namespace_is_left(
    folder: Path, word: str, generations: int
) -> None:
    async with spawn(alone(folder, PYTHON, "-I", "-S", "family.py", word), grace=GRACE) as tree:
        await assembled(tree.stdout)
        reaper = tree.pid
        for _ in range(generations):
            reaper = parent_of(reaper)
        os.kill(reaper, signal.SIGKILL)
        await asyncio.to_thread(wait_until_gone, word)

        assert await tree.wait() == Exit(signal=signal.SIGKILL)


async def test_if_both_reapers_are_killed_no_process_of_a_namespace_is_left(
    folder: Path, word: str
) -> None:
    async with spawn(alone(folder, PYTHON, "-I", "-S", "family.py", word)) as tree:
        await assembled(tree.stdout)
        inner = parent_of(tree.pid)
        for pid in (inner, parent_of(inner)):
            os.kill(pid, signal.SIGSTOP)
        for pid in (parent_of(inner), inner):
            os.kill(pid, signal.SIGKILL)

        await asyncio.to_thread(wait_until_gone, word)


def groups_of(pids: Sequence[int]) -> Sequence[Path]:
    named = [Path(parent, f"backburner-{pid}") for parent in control_groups() for pid in pids]
    return [path for path in named if path.exists()]


def test_no_process_and_no_group_is_left_if_we_are_killed(
    folder: Path, word: str, start: Start
) -> None:
    argv = (folder, PYTHON, "-I", "-S", "family.py", word)
    holder = start(*argv, command=(sys.executable, "-P", "-c", HOLDER))
    for _ in range(MEMBERS):
        assert holder.read_line()
    pids = alive(word)
    assert len(groups_of(pids)) == len(control_groups())
    holder.end(signal.SIGKILL)

    wait_until_gone(word)
    assert groups_of(pids) == []


async def test_where_the_kernel_gives_no_namespace_most_of_proc_is_hidden(folder: Path) -> None:
    command = alone(folder, "sh", "-c", LOOKS)
    assert command.confinement
    hidden = replace(command.confinement, process_namespace=False)

    ran = await run(replace(command, confinement=hidden), within=SOON)

    assert (ran.stdout.text, ran.exit) == ("MemTotal\n", Exit(code=3))
    assert "Permission denied" in ran.stderr.text


@pytest.mark.parametrize("refused", ["unshare", "mount"])
async def test_without_the_namespace_it_was_to_have_a_program_does_not_run(refused: str) -> None:
    confinement = confine_to(sees_processes=False)
    options = ["env=PATH", *reaper_options(confinement, None)]
    argv = [*REAPER_COMMAND, *options, "--", "sh", "-c", "echo ran"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", REFUSED, refused, *argv), stdout=PIPE, stderr=PIPE
    )
    out, err = await process.communicate()

    assert confinement.process_namespace
    assert (out, err) == (b"", b"sh: The kernel gave it no namespace of its own.\n")


@pytest.mark.parametrize("kind", ["pid", "ipc", "mnt"])
def test_a_command_of_a_team_does_not_run_while_namespaces_are_used_up(
    folder: Path, kind: str
) -> None:
    given, none, again = in_user_namespace(RUNS_WITHOUT, kind, folder).splitlines()

    assert (given, again) == ("ran", "ran")
    assert none == (
        "sh was not run: no namespaces are left on this machine to confine it."
        " Try again when other programs have ended. False"
    )


def test_a_command_whose_namespace_is_refused_later_says_so(folder: Path) -> None:
    refused = not_run(alone(folder, "sh"), landlock.NO_NAMESPACE)

    assert refused.permanent
    assert "restart the server" in str(refused)


def test_a_trial_while_namespaces_are_used_up_is_repeated(folder: Path) -> None:
    assert in_user_namespace(TRIES_WITHOUT, "ipc", folder) == "False\nTrue\n"


def in_user_namespace(code: str, *arguments: str | Path) -> str:
    """Run code where it is root, so that it can limit its namespaces, and nobody else's."""
    ran = subprocess.run(
        ["/usr/bin/unshare", "-Ur", sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ran.stdout


@pytest.mark.parametrize("refused", ["open_tree", "mount_setattr"])
async def test_where_mounts_cannot_be_read_only_a_command_still_has_a_namespace(
    folder: Path, refused: str
) -> None:
    options = ["env=PATH", *reaper_options(alone(folder, "sh").confinement, None)]
    argv = [*REAPER_COMMAND, *options, "--", "sh", "-c", "echo x >new; ps -eo comm="]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", REFUSED, refused, *argv), stdout=PIPE, cwd=folder
    )
    out, _ = await process.communicate()

    assert sorted(out.split()) == [b"ps", b"sh"]
    assert (folder / "new").exists()


def test_a_refusal_is_found_out_before_commands_run() -> None:
    asks = "from backburner.process.confinement import *; print(gives_process_namespace(),"
    asks += "confine_to(sees_processes=False).process_namespace)"
    ran = subprocess.run(
        [sys.executable, "-c", REFUSED, "unshare", sys.executable, "-c", asks],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert ran.stdout == "False False\n"
    assert set(MACHINE_FILES) <= set(confine_to(sees_processes=False).readable)
