"""A confined command: the files it can use, and that it cannot reach our processes."""

import asyncio
import os
import signal
import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.programs.families import FAMILY, GRACE, MEMBERS, PATH, SOON, assembled
from support.programs.process_table import alive

from backburner.core.errors import ProcessFailed
from backburner.process import landlock
from backburner.process.command import Command, Exit
from backburner.process.confinement import (
    RUNS_AS_ROOT,
    Confinement,
    ProcessLimits,
    _gaps,
    confine_to,
    confinement_gaps,
    confinement_missing,
    java_settings,
)
from backburner.process.refusals import not_run
from backburner.process.run import ProcessResult, run
from backburner.process.sign_ins.found_program import find_program
from backburner.process.tree import spawn

CANARY = "canary-outside-of-the-folder"
#: The system's, because ours may lie in a folder that a confined command cannot read.
PYTHON = "/usr/bin/python3"

#: Binds a Unix socket in the folder of the command.
LISTENS = "import socket; socket.socket(socket.AF_UNIX).bind('here'); print('bound')"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.fixture
def canary(tmp_path: Path) -> Path:
    """Make a file beside the folder, which the command must not reach."""
    file = tmp_path / "beside" / "canary"
    file.parent.mkdir()
    file.write_text(CANARY)
    return file


def confined(folder: Path, *argv: str, confinement: Confinement | None = None) -> Command:
    return Command(
        argv=argv, env={"PATH": PATH}, cwd=folder, confinement=confinement or confine_to(folder)
    )


async def shell(folder: Path, text: str, confinement: Confinement | None = None) -> ProcessResult:
    return await run(confined(folder, "sh", "-c", text, confinement=confinement), within=SOON)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_programs_can_be_confined_on_this_system() -> None:
    assert confinement_missing() is None
    assert landlock.version() >= 1


async def test_confinement_gaps_name_what_this_kernel_lets_a_command_do(
    folder: Path, canary: Path
) -> None:
    truncates = await shell(folder, f"truncate -s 0 {canary}")
    signals = await shell(folder, f"kill -0 {os.getpid()}")
    binds = await run(confined(folder, PYTHON, "-c", LISTENS), within=SOON)

    gaps = " ".join(confinement_gaps())
    assert ("truncate files" in gaps) == truncates.exit.ok
    assert ("send signals" in gaps) == signals.exit.ok
    assert ("Unix sockets" in gaps) == binds.exit.ok


async def test_a_command_can_change_anything_in_its_folder(folder: Path) -> None:
    text = """
    mkdir -p a/b && echo text >a/b/file && ln -s file a/b/link && mv a/b c && cat c/link
    printf '#!/bin/sh\necho ran' >program && chmod +x program && ./program && : >c/file && rm -r c
    """

    finished = await shell(folder, text)

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


async def test_a_readable_folder_cannot_be_written(folder: Path, canary: Path) -> None:
    finished = await shell(
        folder,
        f"cat {canary}; echo x >>{canary}; echo x >{canary.parent}/new",
        confine_to(folder, readable=[canary.parent]),
    )

    assert finished.stdout.text == CANARY
    assert names(canary.parent) == ["canary"]


@pytest.mark.parametrize("private", "root home var srv tmp . etc dev sys".split())
async def test_a_command_cannot_list_system_folders(folder: Path, private: str) -> None:
    finished = await shell(folder, f"ls /{private}")

    assert finished.stdout.text == ""
    assert not finished.exit.ok


def has_text(path: str) -> bool:
    try:
        return bool(Path(path).read_text())
    except OSError:
        return False


#: Those of these that we can read and that have text in them, on the system of the test.
PRIVATE = [
    path
    for path in """
    /etc/shadow /etc/fstab /etc/profile /etc/bash.bashrc /etc/login.defs /etc/pam.conf /etc/issue
    /etc/shells /var/lib/dpkg/status /proc/../etc/profile
    """.split()
    if has_text(path)
]


def test_there_are_private_files_to_try_to_read() -> None:
    assert len(PRIVATE) >= 3


@pytest.mark.parametrize("file", PRIVATE)
async def test_a_command_cannot_read_private_files_of_the_system(folder: Path, file: str) -> None:
    finished = await shell(folder, f"cat {file}")

    assert finished.stdout.text == ""
    assert "Permission denied" in finished.stderr.text


@pytest.mark.parametrize("path", [landlock.__file__, str(FAMILY), sys.prefix, "/usr/bin", "/var"])
async def test_a_command_reads_a_path_only_if_its_confinement_says_so(
    folder: Path, path: str
) -> None:
    # Our own files may be part of the system; then, and only then, a command can read them.
    finished = await shell(folder, f"if [ -d {path} ]; then ls {path}; else cat {path}; fi")

    assert finished.exit.ok == confine_to(folder).can_read(Path(path))


@pytest.mark.parametrize(
    "text",
    [
        f"{PYTHON} -c 'import ssl, socket; socket.socketpair(); ssl.create_default_context()'",
        "git init -q . && git status",
        "echo x >/dev/null; head -c 10 /dev/urandom | wc -c",
        "cat /etc/hosts /etc/passwd /etc/nsswitch.conf",
        "id; date; nproc; ps",
        # pip ends with an error if there is one that it cannot read.
        "[ ! -e /etc/debian_version ] || cat /etc/debian_version",
    ],
)
async def test_a_command_can_use_common_programs(folder: Path, text: str) -> None:
    finished = await shell(folder, f"set -e; {text}")

    assert finished.exit.ok, finished


def test_the_settings_of_java_can_be_read_without_those_that_hold_passwords(tmp_path: Path) -> None:
    java = tmp_path / "java-21-openjdk"
    for name in ("security", "management"):
        (java / name).mkdir(parents=True)
    (java / "net.properties").touch()
    (tmp_path / "javascript").mkdir()

    assert sorted(java_settings(tmp_path)) == [java / "net.properties", java / "security"]


@pytest.mark.parametrize(
    "attempt",
    [
        "cat /proc/{pid}/environ",
        "cat /proc/{pid}/maps",
        "cat /proc/{pid}/fd/0",
        "ls /proc/{pid}/cwd/",
    ],
)
async def test_a_command_cannot_inspect_our_processes(
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


async def test_a_command_can_signal_its_own_processes(folder: Path) -> None:
    assert (await shell(folder, "sleep 60 & kill $! && wait $!")).exit == Exit(code=143)


async def test_a_command_cannot_change_our_limits(folder: Path) -> None:
    finished = await shell(folder, f"prlimit --pid {os.getpid()} --nofile")

    assert not finished.exit.ok


async def test_a_command_cannot_connect_to_unix_sockets_with_or_without_a_file(
    folder: Path, word: str
) -> None:
    with socket.socket(socket.AF_UNIX) as nameless, socket.socket(socket.AF_UNIX) as file:
        nameless.bind(f"\0{word}")
        nameless.listen()
        file.bind(str(folder / "s"))
        file.listen()
        for address in (f"\\0{word}", "s"):
            connects = f"import socket; socket.socket(socket.AF_UNIX).connect('{address}')"
            finished = await run(confined(folder, PYTHON, "-c", connects), within=SOON)
            assert "PermissionError" in finished.stderr.text


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("kind", ["SOCK_DGRAM", "SOCK_RAW", "SOCK_DGRAM | socket.SOCK_NONBLOCK"])
async def test_a_command_sends_nothing_to_unix_sockets_from_a_pair(
    folder: Path, kind: str, *, network: bool
) -> None:
    sends = f"import socket; socket.socketpair(1, socket.{kind})[0].sendto(b'x', 's')"
    held = confine_to(folder, network=network)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as outside:
        outside.bind(str(folder / "s"))
        outside.settimeout(0)

        finished = await run(confined(folder, PYTHON, "-c", sends, confinement=held), within=SOON)

        with pytest.raises(BlockingIOError):
            outside.recv(1)
    assert "PermissionError" in finished.stderr.text


@pytest.mark.parametrize(
    ("arguments", "is_open"),
    [
        ("socket.AF_INET, socket.SOCK_STREAM", True),
        ("socket.AF_INET6, socket.SOCK_DGRAM", True),
        ("socket.AF_NETLINK, socket.SOCK_RAW, 0", True),  # Routes: how addresses are looked up.
        ("socket.AF_NETLINK, socket.SOCK_RAW, 16", False),
        ("socket.AF_VSOCK, socket.SOCK_STREAM", False),
        ("socket.AF_ALG, socket.SOCK_SEQPACKET", False),
        ("socket.AF_BLUETOOTH, socket.SOCK_STREAM", False),
    ],
)
async def test_a_command_opens_sockets_of_the_internet_only(
    folder: Path, arguments: str, *, is_open: bool
) -> None:
    opens = f"import socket; socket.socket({arguments}); print('open')"

    finished = await run(confined(folder, PYTHON, "-c", opens), within=SOON)

    if is_open:
        assert finished.stdout.text == "open\n"
    else:
        assert "PermissionError" in finished.stderr.text


async def called(folder: Path, call: str, held: Confinement | None = None) -> str:
    """Let a command call a function of the C library, and return what it got."""
    calls = (
        "import ctypes, errno, os; libc = ctypes.CDLL(None, use_errno=True);"
        f" print(libc.{call}, errno.errorcode.get(ctypes.get_errno()))"
    )
    command = confined(folder, PYTHON, "-c", calls, confinement=held)
    return (await run(command, within=SOON)).stdout.text


@pytest.mark.parametrize(
    "call", ["shmget(0, 4096, 0o1600)", "semget(0, 1, 0o1600)", "msgget(0, 0o1600)"]
)
async def test_a_command_leaves_no_memory_that_outlives_it(folder: Path, call: str) -> None:
    assert await called(folder, call) == "-1 ENOSYS\n"


#: System calls by their numbers on each machine: `add_key`, `request_key`, `keyctl`.
KEY_CALLS = {"x86_64": (248, 249, 250), "aarch64": (217, 218, 219)}[os.uname().machine]


@pytest.mark.parametrize(
    "call",
    [
        f"syscall({KEY_CALLS[0]}, b'user', b'name', b'x', 1, -3)",
        f"syscall({KEY_CALLS[1]}, b'user', b'name', None, -3)",
        f"syscall({KEY_CALLS[2]}, 0, -3, 1)",
    ],
)
async def test_a_command_has_no_keys_of_the_kernel(folder: Path, call: str) -> None:
    assert await called(folder, call) == "-1 ENOSYS\n"


async def test_a_command_starts_no_process_in_another_control_group(folder: Path) -> None:
    # An invalid size: where the call is open, it starts nothing.
    assert await called(folder, "syscall(435, None, 0)") == "-1 ENOSYS\n"


#: System calls by their numbers on each machine.
CLONE, FCNTL = {"x86_64": (56, 72), "aarch64": (220, 25)}[os.uname().machine]
#: Makes an overlay whose working folder is beside the folder of the command: the kernel replaces
#: what is called `work` in there.
OVERLAYS = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.unshare(0x10020000)
layers = libc.syscall(430, b"overlay", 0)
libc.syscall(431, layers, 0, b"userxattr", None, 0)
for name, path in zip(("lowerdir", "upperdir", "workdir"), sys.argv[1:]):
    libc.syscall(431, layers, 1, name.encode(), path.encode(), 0)
libc.syscall(431, layers, 6, None, None, 0)
"""


async def test_a_command_replaces_nothing_beside_its_folder_by_an_overlay(
    folder: Path, canary: Path
) -> None:
    work, upper = canary.with_name("work"), folder.parent / "upper"
    work.write_text(CANARY)
    upper.mkdir()

    layers = ("/usr", str(upper), str(work.parent))
    await run(confined(folder, PYTHON, "-c", OVERLAYS, *layers), within=SOON)

    assert await asyncio.to_thread(work.is_file)


@pytest.mark.parametrize("flags", [0x10000000, 0x7E020000])
async def test_a_command_makes_no_namespaces(folder: Path, flags: int) -> None:
    """In one of users it would have capabilities again, for overlays and file systems."""
    assert await called(folder, f"unshare({flags})") == "-1 EPERM\n"
    assert await called(folder, f"syscall({CLONE}, {flags | 17}, 0, 0, 0, 0)") == "-1 EPERM\n"


async def test_a_command_enters_no_namespaces(folder: Path) -> None:
    own = "open('/proc/self/ns/user').fileno()"

    assert await called(folder, f"setns({own}, 0)") == "-1 EPERM\n"


# With arguments that are invalid: where a call is open, it does nothing.
@pytest.mark.parametrize("number", [428, 429, 430, 431, 432, 433, 442, 467])
async def test_a_command_has_no_calls_for_mounts(folder: Path, number: int) -> None:
    assert await called(folder, f"syscall({number}, -1, None, -1, -1, -1)") == "-1 ENOSYS\n"


async def test_a_command_still_leaves_what_its_threads_share(folder: Path) -> None:
    files, file_system, semaphores = 0x400, 0x200, 0x40000

    assert await called(folder, f"unshare({files | file_system | semaphores})") == "0 None\n"


@pytest.mark.parametrize(("lease", "kind"), [(1024, 1), (1024, 0), (1026, 0x80000001), (1040, 1)])
async def test_a_command_delays_nobody_who_opens_a_file(
    folder: Path, canary: Path, lease: int, kind: int
) -> None:
    """As leases do; nor is it told about a folder by signals."""
    file = canary if lease == 1024 else canary.parent
    calls = f"syscall({FCNTL}, os.open('{file}', 0), {lease}, {kind})"
    held = confine_to(folder, readable=[canary.parent])

    assert await called(folder, calls, held) == "-1 EPERM\n"


async def test_a_command_can_use_other_calls_on_descriptors(folder: Path) -> None:
    uses = (
        "import fcntl, os; file = open('file', 'w'); fcntl.lockf(file, fcntl.LOCK_EX);"
        "fcntl.flock(file, fcntl.LOCK_EX); print(fcntl.fcntl(os.pipe()[0], fcntl.F_GETPIPE_SZ) > 0)"
    )

    assert (await run(confined(folder, PYTHON, "-c", uses), within=SOON)).stdout.text == "True\n"


#: System calls by their numbers on each machine: `fallocate`, and `setxattr`, `lsetxattr`,
#: `removexattr` and `lremovexattr`.
FALLOCATE, *ATTRIBUTE_CALLS = {
    "x86_64": (285, 188, 189, 197, 198),
    "aarch64": (47, 5, 6, 14, 15),
}[os.uname().machine]


async def test_a_command_reserves_no_room_that_it_does_not_write(folder: Path) -> None:
    """It would fill a disk between two looks at it."""
    file = "os.open('file', 66)"

    assert await called(folder, f"syscall({FALLOCATE}, {file}, 0, 0, 4096)") == "-1 ENOTSUP\n"
    assert (folder / "file").stat().st_size == 0


async def test_a_command_can_still_make_a_file_of_a_size(folder: Path) -> None:
    uses = "import os; os.posix_fallocate(os.open('file', 66), 0, 100_000)"

    made = await run(confined(folder, PYTHON, "-c", uses), within=SOON)
    tools = await shell(folder, "fallocate -x -l 5000 tool && truncate -s 5000 other")

    assert (made.exit.ok, made.stderr.text) == (True, "")
    assert (folder / "file").stat().st_size == 100_000
    assert (folder / "file").stat().st_blocks * 512 >= 100_000
    assert (tools.exit.ok, tools.stderr.text) == (True, "")


# With arguments that are invalid: where a call is open, it does nothing.
@pytest.mark.parametrize("number", [*ATTRIBUTE_CALLS, 463, 466, 469])
async def test_a_command_changes_no_attributes_of_files_by_their_paths(
    folder: Path, number: int
) -> None:
    """Landlock does not cover them, also of files beside its folder."""
    assert await called(folder, f"syscall({number}, None, None, None, 0, 0)") == "-1 ENOTSUP\n"


async def test_common_programs_work_without_attributes(folder: Path) -> None:
    text = """
    mkdir a && echo x >a/file && chmod 750 a/file && ln -s file a/link
    cp -a a b && cp -p a/file copy && mv copy moved && install -m 700 a/file installed
    tar -cf all.tar a && mkdir c && tar -xf all.tar -C c && sed -i s/x/y/ b/file
    git init -q r && cp a/file r && git -C r add file && cat b/file c/a/link
    """
    before = {"GIT_CONFIG_GLOBAL": "/dev/null"}

    ran = await run(
        Command(
            argv=("sh", "-e", "-c", text),
            env={"PATH": PATH, **before},
            cwd=folder,
            confinement=confine_to(folder),
        ),
        within=SOON,
    )

    assert (ran.stdout.text, ran.exit.ok) == ("y\nx\n", True), ran.stderr.text
    assert (folder / "b" / "file").stat().st_mode & 0o777 == 0o750


#: System calls by their numbers on each machine.
SCHEDULER_CALLS = {
    "x86_64": {"scheduler": 144, "param": 142, "attr": 314, "ioprio": 251},
    "aarch64": {"scheduler": 119, "param": 118, "attr": 274, "ioprio": 30},
}[os.uname().machine]


# To priorities that it cannot have, so that nothing is slower where the call is open.
@pytest.mark.parametrize(
    ("call", "own"),
    [
        ("setpriority(0, {pid}, -20)", True),
        ("setpriority(1, {pid}, -20)", False),
        ("setpriority(2, {pid}, -20)", False),
        ("sched_setaffinity({pid}, 128, bytes(128))", True),
        (f"syscall({SCHEDULER_CALLS['scheduler']}, {{pid}}, 9, bytes(4))", True),
        (f"syscall({SCHEDULER_CALLS['param']}, {{pid}}, None)", True),
        (f"syscall({SCHEDULER_CALLS['attr']}, {{pid}}, b'0' + bytes(47), 0)", True),
        (f"syscall({SCHEDULER_CALLS['ioprio']}, 1, {{pid}}, 0xE004)", True),
        (f"syscall({SCHEDULER_CALLS['ioprio']}, 2, {{pid}}, 0xE004)", False),
        (f"syscall({SCHEDULER_CALLS['ioprio']}, 3, {{pid}}, 0xE004)", False),
    ],
)
async def test_a_command_slows_down_no_processes_but_its_own(
    folder: Path, call: str, *, own: bool
) -> None:
    async with spawn(confined(folder, "sleep", "60")) as other:
        assert await called(folder, call.format(pid=other.pid)) == "-1 EPERM\n"

    assert (await called(folder, call.format(pid=0)) != "-1 EPERM\n") == own


async def test_a_command_can_slow_down_itself(folder: Path) -> None:
    text = "nice -n 5 nice; ionice -c 3 true; chrt --batch 0 true; taskset -c 0 nproc"

    assert (await shell(folder, f"set -e; {text}")).stdout.text == "5\n1\n"


@pytest.mark.parametrize(
    "opens",
    [
        "socket.socket(socket.AF_INET)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)",
        "socket.socket(socket.AF_UNIX)",
        "socket.create_connection(('127.0.0.1', 9))",
        "socket.create_server(('127.0.0.1', 0))",
    ],
)
async def test_without_network_no_socket_can_be_opened(folder: Path, opens: str) -> None:
    alone = confine_to(folder, network=False)

    finished = await run(
        confined(folder, PYTHON, "-c", f"import socket; {opens}", confinement=alone), within=SOON
    )

    assert "PermissionError" in finished.stderr.text


async def test_without_network_programs_still_talk_among_themselves(folder: Path) -> None:
    """As `asyncio`, pools of processes and Node do, through pairs of sockets."""
    talks = (
        "import asyncio, socket, subprocess; one, other = socket.socketpair(); one.send(b'x');"
        "asyncio.run(asyncio.sleep(0)); print(other.recv(1), subprocess.run('true').returncode)"
    )
    alone = confine_to(folder, network=False)

    finished = await run(confined(folder, PYTHON, "-c", talks, confinement=alone), within=SOON)

    assert finished.stdout.text == "b'x' 0\n"


async def test_a_command_has_no_privileges_and_cannot_gain_any(folder: Path) -> None:
    finished = await shell(folder, "grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status")

    states = [line.split()[1] for line in finished.stdout.text.splitlines()]
    assert (int(states[0], 16), states[2]) == (0, "1")
    if os.getuid() == 0:
        assert int(states[1], 16) == 0
        assert not (await shell(folder, "mknod disk b 8 0")).exit.ok


async def test_a_confined_command_has_default_signals_and_only_its_three_streams(
    folder: Path,
) -> None:
    finished = await shell(
        folder, "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd; ps -o sid= -p $$"
    )

    ignored, blocked, *descriptors, session = finished.stdout.text.split("\n")[:-1]
    assert [int(line.split()[1], 16) & 0x7FFFFFFF for line in (ignored, blocked)] == [0, 0]
    assert descriptors == ["0", "1", "2", "3"]
    assert session.strip().isdecimal()


async def test_a_confined_family_of_processes_is_ended(folder: Path, word: str) -> None:
    (folder / "family.py").write_bytes(FAMILY.read_bytes())
    family = confined(folder, PYTHON, "-I", "-S", "family.py", word)

    async with spawn(family, grace=GRACE) as tree:
        assert len(await assembled(tree.stdout)) == MEMBERS

    assert alive(word) == []


async def test_limits_apply_to_an_unconfined_command(folder: Path) -> None:
    limits = ProcessLimits(max_file_bytes=4096, max_new_processes=100)
    limited = Command(
        argv=("bash", "-c", "ulimit -c; ulimit -u; head -c 5000 /dev/zero >file; wc -c <file"),
        env={"PATH": PATH},
        cwd=folder,
        limits=limits,
    )

    core, processes, size = (await run(limited, within=SOON)).stdout.text.split()

    assert (core, size) == ("0", "4096")
    assert 100 < int(processes) < 100_000


async def test_the_kernel_ends_a_command_before_the_server_when_memory_runs_out(
    folder: Path,
) -> None:
    server = int(await asyncio.to_thread(Path("/proc/self/oom_score_adj").read_text))
    limited = Command(
        argv=("sh", "-c", "cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj"),
        env={"PATH": PATH},
        cwd=folder,
        limits=ProcessLimits(),
    )

    command, reaper = map(int, (await run(limited, within=SOON)).stdout.text.split())

    assert reaper == server
    assert command >= server + 500


async def test_a_program_outside_its_folders_is_refused_with_the_reason(
    folder: Path, canary: Path
) -> None:
    await asyncio.to_thread(canary.chmod, 0o755)

    with pytest.raises(ProcessFailed, match="outside the folders it is confined to") as caught:
        await run(confined(folder, str(canary)), within=SOON)

    assert caught.value.permanent


def test_without_landlock_a_command_is_refused_with_the_reason(folder: Path) -> None:
    refused = not_run(confined(folder, "sh"), landlock.NOT_CONFINED)

    assert refused.permanent
    assert "sh was not run: it cannot be confined on this system." in str(refused)


@pytest.mark.parametrize(
    ("version", "seccomp_works", "gaps"),
    [(7, True, 0), (6, True, 0), (5, True, 1), (3, True, 1), (2, True, 2), (1, False, 3)],
)
def test_each_gap_of_an_older_kernel_is_described(
    version: int,
    seccomp_works: bool,  # noqa: FBT001
    gaps: int,
) -> None:
    found = list(_gaps(version, seccomp_works=seccomp_works, is_root=False))
    as_root = list(_gaps(version, seccomp_works=seccomp_works, is_root=True))

    assert (len(found), as_root) == (gaps, [RUNS_AS_ROOT, *found])


@pytest.mark.parametrize(
    ("version", "bits"), [(1, 13), (2, 14), (3, 15), (4, 15), (5, 16), (7, 16), (99, 16)]
)
def test_each_landlock_version_gets_the_rights_it_knows(version: int, bits: int) -> None:
    assert landlock.handled_rights(version) == 2**bits - 1


def test_a_confinement_knows_which_paths_it_allows(folder: Path, canary: Path) -> None:
    held = confine_to(folder)

    assert held.can_read(folder / "file")
    assert held.can_read(Path("/usr/bin"))
    assert not held.can_read(canary)
    assert not held.can_read(folder / ".." / "beside")


async def test_a_confined_command_ended_by_a_signal_reports_it(folder: Path) -> None:
    assert (await shell(folder, "kill -9 $$")).exit == Exit(signal=signal.SIGKILL)


async def test_a_command_with_a_list_of_programs_executes_no_other(folder: Path) -> None:
    planted = folder / "planted"
    planted.write_text(f"#!{PYTHON}\n")
    planted.chmod(0o755)
    found = find_program("python3", PATH, ())
    held = replace(confine_to(folder), executable=found.executable)
    starts = (
        "import subprocess, sys\n"
        "for program in sys.argv[1:]:\n"
        "    try:\n"
        "        print(subprocess.run([program, '-c', ''], cwd='/').returncode)\n"
        "    except PermissionError:\n"
        "        print('refused')\n"
    )
    tried = (PYTHON, "/bin/sh", str(planted))

    ran = await run(confined(folder, PYTHON, "-c", starts, *tried, confinement=held), within=SOON)
    free = await run(confined(folder, PYTHON, "-c", starts, *tried), within=SOON)

    assert ran.stdout.text.split() == ["0", "refused", "refused"]
    assert free.stdout.text.split() == ["0", "0", "0"]


async def test_a_command_that_stays_alone_has_threads_and_no_processes(folder: Path) -> None:
    held = replace(confine_to(folder), starts_programs=False)
    tries = (
        "import os, subprocess, threading\n"
        "thread = threading.Thread(target=print, args=('thread',)); thread.start(); thread.join()\n"
        "for start in (os.fork, lambda: subprocess.run(['true'])):\n"
        "    try:\n"
        "        print(start())\n"
        "    except PermissionError:\n"
        "        print('refused')\n"
    )

    ran = await run(confined(folder, PYTHON, "-c", tries, confinement=held), within=SOON)

    assert ran.stdout.text.split() == ["thread", "refused", "refused"]
