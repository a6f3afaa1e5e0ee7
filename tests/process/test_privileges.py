"""Commands of servers that run as other users, or with other privileges than ours."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.programs.families import PATH

from backburner.process import landlock
from backburner.process.command import reaper_options
from backburner.process.confinement import ProcessLimits, confine_to, keeps_capabilities

#: The system's, because another user may not read where ours is installed.
PYTHON = "/usr/bin/python3"
NOBODY = 65534
AS_NOBODY = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
CAPABILITIES = "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status"
#: Runs a confined command, and prints why it was not run.
RUNS = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from backburner.core.errors import ProcessFailed
from backburner.process.command import Command
from backburner.process.confinement import confine_to
from backburner.process.run import run

folder = Path(sys.argv[1])
command = Command(argv=("true",), env={}, cwd=folder, confinement=confine_to(folder))
try:
    asyncio.run(run(command, within=timedelta(seconds=20)))
except ProcessFailed as error:
    print(error)
"""
#: Cannot be inspected by other processes of the same user, and uses much memory.
HIDES = """
import ctypes, time
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
x = bytearray(2**27)
time.sleep(60)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Make a folder with our programs that everybody can use."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        shutil.copytree(Path(landlock.__file__).parent, folder / "programs")
        yield folder


def run_as(
    folder: Path,
    privileges: Sequence[str],
    *argv: str,
    options: Sequence[str],
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    # Others than root run it as they are.
    becomes = ("/usr/bin/setpriv", *privileges) if os.geteuid() == 0 else ()
    reaper = (PYTHON, "-I", "-S", str(folder / "programs" / "reaper.py"), "env=PATH")
    return subprocess.run(
        [*becomes, *reaper, *options, "--", *argv],
        env={"PATH": PATH},
        cwd=cwd or folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("in_namespace", [False, True])
@pytest.mark.parametrize(
    "privileges",
    [
        ("--inh-caps=+dac_override",),
        (*AS_NOBODY, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"),
    ],
)
def test_a_command_inherits_no_capabilities(
    folder: Path, privileges: Sequence[str], *, in_namespace: bool
) -> None:
    held = replace(confine_to(folder), process_namespace=in_namespace)

    ran = run_as(folder, privileges, "sh", "-c", CAPABILITIES, options=reaper_options(held, None))

    assert [int(line.split()[1], 16) for line in ran.stdout.splitlines()] == [0] * 4, ran.stderr


def test_root_that_cannot_drop_its_capabilities_runs_no_command(folder: Path) -> None:
    options = reaper_options(confine_to(folder), None)

    ran = run_as(folder, ["--bounding-set=-setpcap"], "sh", "-c", CAPABILITIES, options=options)

    if os.geteuid() == 0:
        assert (ran.stdout, ran.returncode) == ("", 126)
        assert "cannot be confined" in ran.stderr


def test_root_that_cannot_drop_its_capabilities_is_told_why(folder: Path) -> None:
    becomes = ("/usr/bin/setpriv", "--bounding-set=-setpcap") if os.geteuid() == 0 else ()
    ran = subprocess.run(
        [*becomes, sys.executable, "-c", RUNS, folder], capture_output=True, text=True, check=False
    )

    if os.geteuid() == 0:
        assert "true was not run: it cannot be confined on this system." in ran.stdout
        assert "The server runs as root without CAP_SETPCAP" in ran.stdout


@pytest.mark.parametrize(
    ("status", "keeps"),
    [
        ("CapEff:\t000001fffeffffff\nCapBnd:\t000001fffeffffff\n", False),
        ("CapEff:\t000001fffefffeff\nCapBnd:\t000001fffefffeff\n", True),
        ("CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\n", False),
    ],
)
def test_a_root_that_would_pass_on_capabilities_is_known_before(
    status: str, *, keeps: bool
) -> None:
    assert keeps_capabilities(status) == keeps


def test_memory_of_a_process_that_hides_it_is_limited_too(folder: Path) -> None:
    limits = reaper_options(None, ProcessLimits(max_memory_bytes=2**26))

    ran = run_as(folder, AS_NOBODY, "timeout", "10", PYTHON, "-c", HIDES, options=limits)

    assert ran.returncode == -9


#: What Landlock does not cover, and then what a command has to be able to do.
CHANGES = """
chmod 0 ../beside; chmod 0 ../beside/file; touch ../beside/file
set -e; echo x >new; chmod 700 new; mkdir sub; mv new sub; echo x >"$PWD/absolute"
echo x >../other/new; echo x >/dev/null; cat ../beside/file; echo done
"""


@pytest.mark.parametrize("privileges", [(), AS_NOBODY])
def test_in_a_namespace_a_command_changes_no_modes_outside_its_folders(
    folder: Path, privileges: Sequence[str]
) -> None:
    user = NOBODY if privileges and os.geteuid() == 0 else -1
    work, other, beside = folder / "work", folder / "other", folder / "beside"
    for path in (work, other, beside):
        path.mkdir()
        os.chown(path, user, -1)
    (beside / "file").write_text("text\n")
    (beside / "file").chmod(0o644)
    os.chown(beside / "file", user, -1)
    os.utime(beside / "file", (0, 0))
    held = confine_to(work, other, readable=[beside], sees_processes=False)
    options = reaper_options(replace(held, process_namespace=True), None)

    ran = run_as(folder, privileges, "sh", "-c", CHANGES, options=options, cwd=work)

    assert (ran.stdout, ran.returncode) == ("text\ndone\n", 0), ran.stderr
    modes = [path.stat().st_mode & 0o777 for path in (beside, beside / "file")]
    assert (modes, (beside / "file").stat().st_mtime) == ([0o755, 0o644], 0)
    assert ran.stderr.count("Read-only file system") == 3
