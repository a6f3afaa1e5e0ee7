"""dev.py: what it says, on which Python it runs, and how it keeps `.venv` whole."""

import ast
import hashlib
import os
import runpy
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.programs.programs import Start

ROOT = Path(__file__).parent.parent
DEV = ROOT / "dev.py"

#: Stands in for uv: makes what is asked for without fetching anything, and writes down each call.
UV = f"""#!/bin/sh
set -eu
echo "$1 $2" >> calls
echo "${{UV_NATIVE_TLS:-}}" > trust
packages=.venv/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages
if [ "$1" = venv ]; then
    mkdir -p .venv/bin "$packages"
    ln -s {sys.executable} .venv/bin/python
elif [ -e broken ]; then
    echo "no such version"
    exit 1
else
    mkdir -p "$packages/thing.dist-info"
fi
if [ -e hold ]; then
    read -r line < hold
fi
"""

#: Runs dev.py the way an older Python would; only a real one could show that it parses, which
#: is tested apart.
AS_OLDER = """
import runpy, sys
sys.version_info = (3, 8, 18, "final", 0)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a checkout with one script to run, and a uv that installs nothing."""
    copied = ("dev.py", "pyproject.toml", "requirements.lock", "requirements-dev.lock")
    for name in copied:
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "thing.py").write_text('"""Measures a thing."""\nprint("ran")')
    write_program(tmp_path / "bin" / "uv", UV)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return tmp_path


def write_program(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def run(checkout: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(checkout / "dev.py"), *arguments]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd="/")


def calls(checkout: Path) -> list[str]:
    return (checkout / "calls").read_text().splitlines()


def test_it_parses_on_an_older_python() -> None:
    ast.parse(DEV.read_text(encoding="utf-8"), feature_version=(3, 8))


def test_help_lists_every_command() -> None:
    tree = ast.parse(DEV.read_text(encoding="utf-8"))
    values = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    usage, commands = values["USAGE"], values["COMMANDS"]
    assert isinstance(usage, ast.Constant)
    assert isinstance(commands, ast.Dict)
    listed = [line.split()[0] for line in str(usage.value).splitlines() if line.startswith("  ")]

    assert listed == [ast.literal_eval(key) for key in commands.keys if key]


@pytest.mark.parametrize("arguments", [[], ["help"], ["--help"]])
def test_help_needs_no_environment(checkout: Path, arguments: list[str]) -> None:
    done = run(checkout, *arguments)

    assert done.returncode == 0
    assert done.stdout.startswith("usage: python3 dev.py")
    assert not (checkout / ".venv").exists()


@pytest.mark.parametrize(
    ("certificates", "own", "trust"),
    [(["ca.pem"], None, "1"), ([], None, ""), (["ca.pem"], "false", "false")],
)
def test_packages_come_from_whom_the_machine_trusts(
    checkout: Path,
    monkeypatch: pytest.MonkeyPatch,
    certificates: list[str],
    own: str | None,
    trust: str,
) -> None:
    folder = checkout / "certificates"
    folder.mkdir()
    for name in certificates:
        (folder / name).touch()
    monkeypatch.setenv("SSL_CERT_DIR", str(folder))
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "none"))
    monkeypatch.delenv("UV_NATIVE_TLS", raising=False)
    if own is not None:
        monkeypatch.setenv("UV_NATIVE_TLS", own)

    assert run(checkout, "bench", "thing").returncode == 0
    assert (checkout / "trust").read_text().strip() == trust


def test_help_about_a_measurement_does_not_begin_it(checkout: Path) -> None:
    assert run(checkout, "bench", "thing", "--help").stdout == "Measures a thing.\n"
    assert not (checkout / "calls").exists()


def test_an_unknown_command_is_refused(checkout: Path) -> None:
    done = run(checkout, "tset")

    assert done.returncode == 1
    assert "'tset'" in done.stderr


def test_an_unknown_script_is_refused_with_those_there_are(checkout: Path) -> None:
    done = run(checkout, "bench", "nothing")

    assert done.returncode == 1
    assert done.stderr == "usage: python3 dev.py bench NAME; there are: thing\n"


def test_an_older_python_says_so_in_one_line(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A stand-in that is on the PATH but does not work must not be trusted.
    write_program(checkout / "bin" / "python3.12", "#!/bin/sh\nexit 127\n")
    monkeypatch.setenv("PATH", str(checkout / "bin"))
    command = [sys.executable, "-c", AS_OLDER, str(checkout / "dev.py"), "up"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "Backburner needs Python 3.11 or newer; this is 3.8.18, and no other was found."
    ]


def test_an_older_python_hands_over_to_a_newer_one(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(checkout / "bin" / "python3.13", '#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n')
    monkeypatch.setenv("PATH", str(checkout / "bin"))
    command = [sys.executable, "-c", AS_OLDER, str(checkout / "dev.py"), "up", "--port", "0"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    assert done.stdout == f"{checkout / 'dev.py'} up --port 0\n"


def test_the_environment_is_made_once(checkout: Path) -> None:
    first, second = run(checkout, "bench", "thing"), run(checkout, "bench", "thing")

    assert (first.stdout, second.stdout) == ("ran\n", "ran\n")
    assert "Preparing .venv" in first.stderr
    assert second.stderr == ""
    assert calls(checkout) == ["venv --quiet", "pip install", "pip install"]


def test_what_is_needed_to_develop_is_added_to_what_is_needed_to_run(checkout: Path) -> None:
    run(checkout, "up")
    (checkout / ".venv" / "in-use").touch()
    run(checkout, "bench", "thing")

    assert (checkout / ".venv" / "in-use").exists()
    assert calls(checkout).count("venv --quiet") == 1
    assert run(checkout, "up").stderr.count("Preparing") == 0


def test_a_change_of_the_lock_file_makes_it_anew_and_one_of_the_tools_does_not(
    checkout: Path,
) -> None:
    run(checkout, "bench", "thing")
    with (checkout / "pyproject.toml").open("a") as file:
        file.write("\n[tool.something]\nsetting = 1\n")
    after_tools = run(checkout, "bench", "thing")
    with (checkout / "requirements-dev.lock").open("a") as file:
        file.write("# changed\n")
    after_lock = run(checkout, "bench", "thing")

    assert after_tools.stderr == ""
    assert "Preparing" in after_lock.stderr


def test_an_installation_that_failed_shows_why_and_is_made_anew(checkout: Path) -> None:
    (checkout / "broken").touch()
    failed = run(checkout, "bench", "thing")
    (checkout / "broken").unlink()
    again = run(checkout, "bench", "thing")

    assert failed.returncode == 1
    assert "no such version" in failed.stderr
    assert failed.stdout == ""
    assert again.stdout == "ran\n"
    assert calls(checkout).count("venv --quiet") == 2


def test_pip_installs_what_is_locked_though_there_is_something_newer(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(checkout))
    write_wheel(checkout, "thing", "2", "Provides-Extra: more")
    wheels = {
        "thing==1": write_wheel(checkout, "thing", "1", "Provides-Extra: more"),
        "wants==1": write_wheel(checkout, "wants", "1", "Requires-Dist: thing[more]>=1"),
    }
    lock = [f"{name} --hash=sha256:{digest}" for name, digest in wheels.items()]
    (checkout / "requirements.lock").write_text("\n".join(lock))
    dev = runpy.run_path(str(checkout / "dev.py"))
    _, (_, *install), _ = dev["with_pip"]("requirements.lock")
    target = checkout / "installed"
    command = [find_pip(checkout), *map(str, install), "--target", str(target)]
    subprocess.run(command, check=True, cwd=checkout)
    installed = {path.name for path in target.glob("*.dist-info")}
    assert installed == {"thing-1.dist-info", "wants-1.dist-info"}


def find_pip(folder: Path) -> str:
    """Find a Python with pip, or make one: uv makes environments without it."""
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        if (
            subprocess.run(
                [python, "-c", "import pip"], check=False, stderr=subprocess.DEVNULL
            ).returncode
            == 0
        ):
            return str(python)
    subprocess.run([sys.executable, "-m", "venv", folder / "with_pip"], check=True)
    return str(folder / "with_pip" / "bin" / "python")


def write_wheel(folder: Path, name: str, version: str, more: str) -> str:
    """Write a wheel without a module in it; return its digest."""
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    record = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as files:
        header = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{more}\n"
        files.writestr(f"{record}/METADATA", header)
        tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        files.writestr(f"{record}/WHEEL", tags)
        files.writestr(f"{record}/RECORD", f"{record}/METADATA,,\n{record}/WHEEL,,\n")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


@pytest.mark.parametrize("damage", ["bin/python", "lib", ".requirements-dev.lock.done"])
def test_an_environment_that_lost_a_part_is_made_anew(checkout: Path, damage: str) -> None:
    run(checkout, "bench", "thing")
    lost = checkout / ".venv" / damage
    if lost.is_dir():
        shutil.rmtree(lost)
    else:
        lost.unlink()

    assert run(checkout, "bench", "thing").stdout == "ran\n"
    assert calls(checkout).count("venv --quiet") == 2


def test_two_at_once_take_turns_even_when_the_first_is_killed(checkout: Path, start: Start) -> None:
    os.mkfifo(checkout / "hold")
    command = (sys.executable, str(checkout / "dev.py"), "bench", "thing")
    first = start(command=command)
    # Opening the other end waits until the first is in the middle of it.
    with (checkout / "hold").open("w") as release:
        second = start(command=command)
        second.wait_for_error("waiting for it")
        (checkout / "hold").unlink()
        first.end(signal.SIGKILL)
        assert len(calls(checkout)) == 1
        release.write("go on\n")
    ended = second.end()

    assert ended.out == ["ran"]
    assert calls(checkout) == ["venv --quiet", "venv --quiet", "pip install", "pip install"]


def test_lock_files_that_do_not_fit_pyproject_are_noticed(checkout: Path) -> None:
    fits = run(checkout, "lock", "--check")
    project = checkout / "pyproject.toml"
    project.write_text(project.read_text().replace('"click>=', '"click>=7,>='))
    stale = run(checkout, "lock", "--check")

    assert fits.returncode == 0
    assert stale.returncode == 1
    assert "python3 dev.py lock" in stale.stderr


def test_the_program_learns_how_it_was_started(checkout: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "dev.py", "run", "--version"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    # In place of the real one.
    (checkout / ".venv" / "bin" / "python").unlink()
    write_program(checkout / ".venv" / "bin" / "python", '#!/bin/sh\necho "$BACKBURNER_COMMAND"\n')
    named = subprocess.run(
        [sys.executable, "dev.py", "run", "--version"],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )

    assert named.stdout == "python3 dev.py run\n", named.stderr


def test_help_about_screenshots_writes_none(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "screenshots.py", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        check=True,
        capture_output=True,
        text=True,
    )

    assert done.stdout.startswith("usage: dev.py screenshots")
    assert list(tmp_path.iterdir()) == []
