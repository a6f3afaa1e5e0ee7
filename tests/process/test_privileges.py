"""Commands of servers that run as other users, or with other privileges than ours."""

import os
import shutil
import subprocess
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
    folder: Path, privileges: Sequence[str], *argv: str, options: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    # Others than root run it as they are.
    becomes = ("/usr/bin/setpriv", *privileges) if os.geteuid() == 0 else ()
    reaper = (PYTHON, "-I", "-S", str(folder / "programs" / "reaper.py"), "env=PATH")
    return subprocess.run(
        [*becomes, *reaper, *options, "--", *argv],
        env={"PATH": PATH},
        cwd=folder,
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
