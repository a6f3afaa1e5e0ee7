"""The shell of the agent: the result of a line, its limits, and the files it cannot read."""

import asyncio
import os
import subprocess
import sys
import tempfile
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from support.programs.families import FAMILY, SOON
from support.programs.process_table import alive, wait_until_gone

from backburner.core.commands import Cage
from backburner.core.errors import BadRequest, ProcessFailed
from backburner.ports import MAX_SHOWN_CHARS, CommandBounds, CommandResult
from backburner.process.confinement import ProcessLimits
from backburner.process.excerpt import Excerpt
from backburner.process.shell import COMMAND_GRACE, MAX_COMMAND_OUTPUT_BYTES, ConfinedShell

CANARY = "canary-that-is-ours"
#: Makes nested folders, deeper than Python can remove.
DEEP = """
import os, tempfile
os.chdir(tempfile.gettempdir())
for _ in range(1500):
    os.mkdir("d")
    os.chdir("d")
"""
#: Uses memory for page tables only: 120 MB of them, for 60 GB that are never written.
TABLES = """
import mmap, time
memory = mmap.mmap(-1, 60 * 2**30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)
memory.madvise(15)
for place in range(0, len(memory), 2**21):
    memory[place]
time.sleep(60)
"""
#: Mounts a small disk for temporary files and for the server, runs commands that fill it, and one
#: while it is full; prints why they ended.
SMALL_DISK = """
import asyncio, subprocess, sys, tempfile
from datetime import timedelta
from pathlib import Path
from backburner.core.commands import Cage
from backburner.core.errors import ProcessFailed
from backburner.ports import CommandBounds
from backburner.process.confinement import ProcessLimits
from backburner.process.shell import ConfinedShell

disk, folder = Path(sys.argv[1]), Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,nr_inodes=1000", "none", disk], check=True)
tempfile.tempdir = str(disk)
files = "i=0; while : >$TMPDIR/$i; do i=$((i+1)); done; sleep 60"

def run(line, **limits):
    shell = ConfinedShell(limits=ProcessLimits(**limits))
    bounds = CommandBounds(cage=Cage.LOOK)
    running = shell.run(line, folder=folder, within=timedelta(seconds=20), bounds=bounds)
    try:
        ran = asyncio.run(running)
    except (ProcessFailed, OSError) as error:
        print(error)
    else:
        print(ran.exceeded or ran.output.strip())

run("echo ran")
run("cat /dev/zero >$TMPDIR/file; sleep 60")
run(files)
run(files, disk=disk, min_free_bytes=0)
with open(disk / "others", "wb", buffering=0) as file:
    for _ in range(2**12 + 1):
        try:
            file.write(bytes(2**12))
        except OSError:
            break
run("echo ran")
(disk / "others").unlink()
run("echo ran")
print(len(list(disk.iterdir())))
"""
#: A timeout for commands that are to time out.
BRIEF = timedelta(seconds=0.3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make temporary folders in a folder of the test, to see whether one is left."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return temporary


async def sh(
    folder: Path,
    line: str,
    within: timedelta = SOON,
    *,
    shell: ConfinedShell | None = None,
    cage: Cage = Cage.WORK,
    **bounds: Any,
) -> CommandResult:
    shell = shell or ConfinedShell()
    given = CommandBounds(cage=cage, **bounds)
    return await shell.run(line, folder=folder, within=within, bounds=given)


async def test_the_result_has_both_streams_in_order_and_the_exit_code(folder: Path) -> None:
    ran = await sh(folder, "echo one; echo two >&2; echo three; exit 3")

    assert ran == CommandResult(output="one\ntwo\nthree\n", code=3)


async def test_a_line_runs_in_bash_in_its_folder_with_empty_stdin(folder: Path) -> None:
    ran = await sh(folder, '[[ $PWD = "$(pwd)" ]] && pwd && cat && diff <(echo x) <(echo x)')

    assert ran == CommandResult(output=f"{folder}\n", code=0)


async def test_the_result_names_the_signal_that_ended_the_command(folder: Path) -> None:
    assert await sh(folder, "kill -9 $$") == CommandResult(output="", code=None, signal=9)


async def test_a_command_inherits_none_of_our_environment(
    folder: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY", CANARY)
    shell = ConfinedShell(variables={"GIVEN": "yes"})

    ran = await sh(folder, "env", shell=shell)

    seen = dict(line.split("=", 1) for line in ran.output.splitlines())
    assert sorted(set(seen) - {"_", "SHLVL", "OLDPWD"}) == sorted(
        ["GIVEN", "HOME", "LANG", "PATH", "PWD", "TERM", "TMPDIR", "USER"]
    )
    assert seen["GIVEN"] == "yes"
    own = Path(seen["HOME"]).parent
    assert (own.parent, Path(seen["TMPDIR"]).parent) == (temporary, own)
    assert CANARY not in ran.output


async def test_each_command_has_a_temporary_folder_that_is_removed(
    folder: Path, temporary: Path
) -> None:
    deep = f"python3 -c '{DEEP}'"
    closed = (
        'mkdir -p "$TMPDIR/closed/in"; touch "$TMPDIR/closed/in/file"; chmod 0 "$TMPDIR/closed"'
    )

    for line in ('mktemp >/dev/null && echo x >"$TMPDIR/file"', deep, closed):
        ran = await sh(folder, line)
        assert (ran.code, ran.output) == (0, "")
        assert os.listdir(temporary) == []  # noqa: PTH208 (names are all there is to see)


@pytest.mark.parametrize(("cage", "is_written"), [(Cage.LOOK, False), (Cage.WORK, True)])
async def test_the_cage_says_whether_the_folder_can_be_written(
    folder: Path, cage: Cage, *, is_written: bool
) -> None:
    (folder / "old").write_text("old")
    lines = "cat old; echo x >new; echo y >old; rm old; echo z >$HOME/z && cat $HOME/z"

    ran = await sh(folder, lines, cage=cage)

    assert ran.output.startswith("old")
    assert ran.output.endswith("z\n")
    assert os.listdir(folder) == (["new"] if is_written else ["old"])  # noqa: PTH208
    assert is_written or (folder / "old").read_text() == "old"


@pytest.mark.parametrize("cage", list(Cage))
async def test_only_a_command_with_network_reaches_a_server(folder: Path, cage: Cage) -> None:
    listening = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        line = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached"

        alone = await sh(folder, line, cage=cage)
        reaching = await sh(folder, line, cage=cage, network=True)

    assert "Permission denied" in alone.output
    assert reaching.output == "reached\n"


@pytest.mark.parametrize("sees_processes", [True, False])
async def test_commands_of_a_team_see_no_other_process(
    folder: Path, *, sees_processes: bool
) -> None:
    line = f"cat /proc/{os.getpid()}/cmdline; ps -e; head -c 9 /proc/meminfo; cat <(echo ' fed')"

    ran = await sh(folder, line, sees_processes=sees_processes)

    assert ran.output.endswith("MemTotal: fed\n")
    assert ("python" in ran.output) == sees_processes


async def test_commands_of_a_team_see_themselves(folder: Path) -> None:
    ran = await sh(folder, "ps -eo comm=; cat /proc/self/comm", sees_processes=False)

    assert (sorted(ran.output.split()), ran.code) == (["bash", "cat", "ps"], 0)


async def test_a_line_is_not_among_the_arguments_of_any_process(folder: Path) -> None:
    """Nor in the environment of what it starts."""
    word = "in-this-line-only"
    looks = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; env"

    ran = await sh(folder, f": {word}; {looks}")

    assert "bash -c" in ran.output
    assert word not in ran.output


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("cat <<X\na $((1 + 1))\nX", "a 2\n"),
        ("# nothing", ""),
        ("for x in 1 2; do\n  echo $x\ndone", "1\n2\n"),
        ("echo 'a\\nb' \"$0\" | head -c 9", "a\\nb /bin"),
        ("\n\necho x &&\n echo y", "x\ny\n"),
    ],
)
async def test_a_line_means_what_it_means_in_a_shell(folder: Path, line: str, output: str) -> None:
    assert (await sh(folder, line)).output == output


async def test_a_commit_needs_no_settings_and_those_of_the_repository_come_first(
    folder: Path,
) -> None:
    begin = "git init -q && git commit -q --allow-empty -m x"

    first = await sh(folder, f"{begin} && git log --format=%an%ae && git branch --show-current")
    named = await sh(
        folder,
        "git config user.name Ann; git commit -q --allow-empty -m y; git log -1 --format=%an",
    )

    assert (first.output, named.output) == ("Agentagent@localhost\nmain\n", "Ann\n")


async def test_where_commands_are_not_confined_nothing_holds_them(folder: Path) -> None:
    assert ConfinedShell().cage_missing is None
    assert "setting" in (ConfinedShell(unconfined=True).cage_missing or "")
    ran = await sh(folder, "true", shell=ConfinedShell(unconfined=True), cage=Cage.LOOK)
    assert ran.code == 0


@pytest.mark.parametrize(
    ("limits", "line", "words"),
    [
        (
            ProcessLimits(max_memory_bytes=2**28),
            f"{sys.executable} -c 'x = bytearray(2**29); import time; time.sleep(60)'",
            "its processes used more than 0.2 GB of memory",
        ),
        (
            ProcessLimits(max_memory_bytes=2**26),
            f"{sys.executable} -c '{TABLES}'",
            "its processes used more than 0.1 GB of memory",
        ),
        (
            ProcessLimits(max_processes=20),
            "bomb() { bomb | bomb & sleep 60; }; bomb",
            "it had more than 20 processes",
        ),
        (
            ProcessLimits(disk=Path("/"), min_free_bytes=2**60),
            "sleep 60",
            "the disk of the server has less than 1073741824.0 GB left",
        ),
    ],
)
async def test_a_command_that_uses_too_much_is_ended_with_the_reason(
    folder: Path, limits: ProcessLimits, line: str, words: str
) -> None:
    shell = ConfinedShell(limits=limits, readable=[Path(sys.prefix), Path(sys.base_prefix)])

    ran = await sh(folder, f"echo $$; {line}", shell=shell)

    assert ran.exceeded == words
    assert not ran.timed_out
    # It may have been ended before it could say so.
    for pid in ran.output.split()[:1]:
        assert not os.path.exists(f"/proc/{pid}")  # noqa: ASYNC240, PTH110


FULL = (
    "The command was not run: the disk for temporary files is full. Try again when other commands"
    " have ended, or ask the operator to free space."
)


def test_a_full_disk_ends_commands_and_refuses_others_with_the_reason(
    folder: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    ran = subprocess.run(
        ["/usr/bin/unshare", "-Urm", sys.executable, "-c", SMALL_DISK, disk, folder],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines() == [
        "ran",
        "the disk for temporary files is almost full",
        "the disk for temporary files is almost full",
        "the disk of the server can hold hardly any more files",
        FULL,
        "ran",
        "0",
    ]


async def test_what_processes_share_is_counted_once(folder: Path) -> None:
    """As pools of workers do, which are forked from a large program."""
    shares = "import os, time; x = bytearray(2**26)\nfor _ in range(5): os.fork()\ntime.sleep(1)"
    shell = ConfinedShell(
        limits=ProcessLimits(max_memory_bytes=2**30),
        readable=[Path(sys.prefix), Path(sys.base_prefix)],
    )

    assert (await sh(folder, f"{sys.executable} -c '{shares}'", shell=shell)).code == 0


async def test_a_command_cannot_read_our_files(folder: Path, temporary: Path) -> None:
    data = folder.parent / "data" / "backburner.db"
    home = folder.parent / "home" / ".ssh" / "key"
    for file in (data, home, temporary / "others"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(CANARY)
        ran = await sh(folder, f"cat {file}")
        assert (ran.output, ran.code) == (f"cat: {file}: Permission denied\n", 1)


async def test_the_operator_can_add_readable_folders(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "shown").write_text("to be seen")
    shell = ConfinedShell(readable=[tmp_path / "shown"])

    ran = await sh(folder, "cat ../shown; echo x >../shown", shell=shell)

    assert ran.output.startswith("to be seen")
    assert "Permission denied" in ran.output


async def test_the_operator_can_turn_confinement_off(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "seen").write_text("seen")

    ran = await sh(folder, "cat ../seen", shell=ConfinedShell(unconfined=True))

    assert ran.output == "seen"


async def test_the_middle_of_a_long_output_is_left_out(folder: Path) -> None:
    ran = await sh(folder, "echo begin; seq 1000000; echo end")

    assert ran.code == 0
    assert ran.output.startswith("begin\n1\n")
    assert ran.output.endswith("1000000\nend\n")
    assert "bytes left out ...]" in ran.output
    assert len(ran.output) < MAX_SHOWN_CHARS + 100


async def test_a_command_with_endless_output_is_ended(folder: Path, word: str) -> None:
    before = monotonic()

    ran = await sh(folder, f"yes {word}; yes {word}", within=timedelta(minutes=5))

    assert ran.output_exceeded
    assert not ran.timed_out
    assert monotonic() - before < SOON.total_seconds()
    assert len(ran.output) < MAX_SHOWN_CHARS + 100
    assert alive(word) == []


async def test_a_command_is_ended_only_above_the_limit_of_its_output(folder: Path) -> None:
    within = await sh(folder, f"yes | head -c {MAX_COMMAND_OUTPUT_BYTES}")
    above = await sh(folder, f"yes | head -c {MAX_COMMAND_OUTPUT_BYTES + 1}")

    assert (within.output_exceeded, above.output_exceeded) == (False, True)
    assert within.code == 0
    assert MAX_SHOWN_CHARS < len(within.output) < MAX_SHOWN_CHARS + 100


async def test_a_command_is_ended_before_it_writes_a_gigabyte(folder: Path) -> None:
    ran = await sh(folder, "head -c 1000000000 /dev/zero && echo all >&2")

    assert ran.output_exceeded
    assert "all" not in ran.output
    # Text with zero bytes could not be stored.
    assert "\0" not in ran.output


async def test_a_command_cannot_write_a_huge_file(folder: Path) -> None:
    ran = await sh(folder, "truncate -s 2G file")

    assert ran.code != 0


#: Commands that hang, with a marker to find them by; the second ignores signals.
HANGS = "sh -c 'while :; do sleep 1; done' {word}"
DEAF = "sh -c 'trap \"\" TERM INT HUP; while :; do sleep 1; done' {word}"


@pytest.mark.parametrize(
    "line",
    [
        HANGS,
        DEAF,
        f"({HANGS} & {DEAF}) & wait",
        f"setsid {HANGS} & {HANGS}",
        f"(setsid setsid {DEAF} &); {HANGS}",
        f"trap '' TERM INT HUP; {DEAF}; {DEAF}",
    ],
)
async def test_a_command_that_times_out_is_ended_with_its_descendants(
    folder: Path, word: str, line: str
) -> None:
    before = monotonic()

    ran = await sh(folder, f"echo begun; {line.format(word=word)}", within=BRIEF)

    assert ran.timed_out
    assert ran.output.startswith("begun\n")
    assert monotonic() - before < (BRIEF + COMMAND_GRACE).total_seconds() + 5
    assert alive(word) == []


async def test_a_family_of_processes_that_times_out_is_ended(folder: Path, word: str) -> None:
    (folder / "family.py").write_bytes(FAMILY.read_bytes())

    ran = await sh(folder, f"exec python3 -I -S family.py {word}", within=BRIEF * 3)

    assert ran.timed_out
    assert alive(word) == []


async def test_background_processes_end_with_the_command(folder: Path, word: str) -> None:
    shells = f"for i in $(seq 20); do (setsid sh -c 'while :; do sleep 1; done' {word} &); done"
    ran = await sh(folder, f"{shells}; echo done")

    assert (ran.output, ran.code) == ("done\n", 0)
    assert alive(word) == []


async def test_a_cancelled_command_leaves_no_process_and_no_folder(
    folder: Path, temporary: Path, word: str
) -> None:
    os.mkfifo(folder / "there")
    line = f"trap '' TERM; echo >there; while :; do sleep 1; done; : {word}"
    running = asyncio.create_task(sh(folder, line))
    await asyncio.to_thread((folder / "there").read_text)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    await asyncio.to_thread(wait_until_gone, word)
    assert os.listdir(temporary) == []  # noqa: PTH208 (names are all there is to see)


async def test_a_line_that_cannot_be_run_is_refused_with_the_reason(folder: Path) -> None:
    with pytest.raises(BadRequest, match="zero byte"):
        await sh(folder, "echo \0")
    with pytest.raises(ProcessFailed, match="cannot run in the folder"):
        await sh(folder / "missing", "true")
    with pytest.raises(ProcessFailed, match="too long"):
        await sh(folder, "#" * 3_000_000)


def test_an_excerpt_keeps_all_of_a_short_output() -> None:
    excerpt = Excerpt(100)
    for number in range(10):
        excerpt.add(b"%09d\n" % number)

    assert excerpt.text() == "".join(f"{number:09d}\n" for number in range(10))


@pytest.mark.parametrize("chunk", [1, 7, 100, 5000])
def test_an_excerpt_does_not_depend_on_the_size_of_chunks(chunk: int) -> None:
    data = b"".join(b"%04d" % number for number in range(1250))
    excerpt = Excerpt(100)
    for start in range(0, len(data), chunk):
        excerpt.add(data[start : start + chunk])

    assert excerpt.size == len(data) == 5000
    assert excerpt.text() == (
        data[:25].decode() + "\n[... 4,900 bytes left out ...]\n" + data[-75:].decode()
    )
