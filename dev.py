#!/usr/bin/env python3
"""Everything one does with a checkout, with nothing but Python 3.11: `python3 dev.py` lists it.

The first use makes `.venv` from the lock files, with uv where it is present and with venv and
pip where it is not; later uses find it ready. An older Python can read this file, to say so.
"""

from __future__ import annotations

import ast
import fcntl
import hashlib
import os
import shlex
import shutil
import ssl
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
#: Beside `.venv`, because making one anew empties it.
LOCK = ROOT / ".venv.lock"
TO_RUN = "requirements.lock"
TO_DEVELOP = "requirements-dev.lock"

USAGE = """\
usage: python3 dev.py COMMAND [ARGUMENT ...]

  up [ARGUMENT ...]     start Backburner (`up --help` lists its options)
  setup [ARGUMENT ...]  set up a model
  doctor [ARGUMENT ...] see what works here, and what to do about what does not
  run COMMAND ...       any other command of Backburner (`run --help` lists them)
  test [ARGUMENT ...]   run all tests, or what pytest makes of the arguments
  lint                  style, types, import rules, lock files, generated pages
  check                 lint, then all tests: what has to pass before a commit
  bench NAME [--json]   measure something (bench/NAME.py)
  soak NAME             the long version of a test (soak/NAME.py)
  screenshots [FOLDER]  write pictures of all pages, with made-up people and their work
  docs [--check]        write the generated pages of docs/ anew
  lock [--upgrade]      write the lock files anew from pyproject.toml
"""


def main(arguments: list[str]) -> int:
    if sys.version_info < (3, 11):
        return with_newer_python(arguments)
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(USAGE, end="")
        return 0
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        return fail(f"dev.py does not know {name!r}.\n\n{USAGE}")
    return COMMANDS[name](rest)


def up(arguments: list[str]) -> int:
    return become("up", arguments)


def setup(arguments: list[str]) -> int:
    return become("setup", arguments)


def doctor(arguments: list[str]) -> int:
    return become("doctor", arguments)


def any_command(arguments: list[str]) -> int:
    return become(arguments[0] if arguments else "--help", arguments[1:])


def become(command: str, arguments: list[str]) -> int:
    make_environment(TO_RUN)
    # Hints of the program name its commands like this.
    os.environ["BACKBURNER_COMMAND"] = f"python3 {shlex.quote(sys.argv[0])} run"
    # In place of this process, so that Ctrl-C and signals reach it; -P keeps whatever lies in the
    # current folder from being imported.
    os.execv(str(PYTHON), [str(PYTHON), "-P", "-m", "backburner", command, *arguments])  # noqa: S606


def test(arguments: list[str]) -> int:
    make_environment(TO_DEVELOP)
    whole = ["--cov=backburner.core", "--cov-branch", "--cov-report=term", "--cov-fail-under=100"]
    # Two processes more than cores: many tests wait. tests/support/spread.py deals them out.
    whole += [f"--numprocesses={(os.cpu_count() or 1) + 2}", "--dist=loadfile"]
    return run(PYTHON, "-m", "pytest", *(arguments or whole))


def lint(arguments: list[str]) -> int:
    if arguments:
        return fail("lint takes no arguments.")
    make_environment(TO_DEVELOP)
    tools = VENV / "bin"
    checks: list[list[str | Path]] = [
        [tools / "ruff", "format", "--check", "."],
        [tools / "ruff", "check", "."],
        [tools / "lint-imports", "--no-logo"],
        [tools / "mypy"],
        [PYTHON, ROOT / "dev.py", "lock", "--check"],
        [PYTHON, ROOT / "dev.py", "docs", "--check"],
    ]
    failed = [check for check in checks if run(*check)]
    for check in failed:
        print(f"failed: {' '.join(str(part) for part in check)}", file=sys.stderr)
    return len(failed)


def check(arguments: list[str]) -> int:
    if arguments:
        return fail("check takes no arguments.")
    return lint([]) or test([])


def bench(arguments: list[str]) -> int:
    return script("bench", arguments)


def soak(arguments: list[str]) -> int:
    return script("soak", arguments)


def screenshots(arguments: list[str]) -> int:
    """Write pictures; further arguments are how the names of the wanted ones begin."""
    make_environment(TO_DEVELOP)
    os.environ["PYTHONPATH"] = str(ROOT / "tests")
    return run(PYTHON, ROOT / "docs" / "screenshots.py", *arguments)


def docs(arguments: list[str]) -> int:
    make_environment(TO_DEVELOP)
    return run(PYTHON, ROOT / "docs" / "generate.py", *arguments)


def lock(arguments: list[str]) -> int:
    """Write both lock files; with --check only see whether they are older than pyproject.toml."""
    made_from = f"# Written by `python3 dev.py lock`; dependencies {dependencies_digest()}\n"
    if "--check" in arguments:
        for name in (TO_RUN, TO_DEVELOP):
            if not (ROOT / name).read_text().startswith(made_from):
                return fail(f"{name} does not fit pyproject.toml: run `python3 dev.py lock`.")
        return 0
    make_environment(TO_DEVELOP)
    for name, groups in ((TO_RUN, ["build"]), (TO_DEVELOP, ["build", "dev"])):
        compile_lock: list[str | Path] = [
            *(VENV / "bin" / "uv", "pip", "compile", "pyproject.toml", "--quiet", "--universal"),
            *("--all-extras", "--generate-hashes", "--no-header", "--python-version", "3.11"),
            *(part for group in groups for part in ("--group", group)),
            *(["--upgrade"] if "--upgrade" in arguments else []),
            *("--output-file", name),
        ]
        if run(*compile_lock, quiet=True):
            return fail(f"{name} could not be worked out from pyproject.toml.")
        (ROOT / name).write_text(made_from + (ROOT / name).read_text())
    return 0


COMMANDS = {
    "up": up,
    "setup": setup,
    "doctor": doctor,
    "run": any_command,
    "test": test,
    "lint": lint,
    "check": check,
    "bench": bench,
    "soak": soak,
    "screenshots": screenshots,
    "docs": docs,
    "lock": lock,
}


def with_newer_python(arguments: list[str]) -> int:
    for name in ("python3.14", "python3.13", "python3.12", "python3.11"):
        newer = shutil.which(name)
        # A name on the PATH may be a version manager's stand-in for a Python that is not there.
        if newer and works(newer, "pass"):
            os.execv(newer, [newer, str(ROOT / "dev.py"), *arguments])  # noqa: S606
    this = ".".join(str(part) for part in sys.version_info[:3])
    return fail(f"Backburner needs Python 3.11 or newer; this is {this}, and no other was found.")


def works(python: str, code: str) -> bool:
    done = subprocess.run([python, "-c", code], check=False, stderr=subprocess.DEVNULL)
    return done.returncode == 0


def script(kind: str, arguments: list[str]) -> int:
    known = sorted(path.stem for path in (ROOT / kind).glob("*.py") if path.stem[0] != "_")
    if not arguments or arguments[0] not in known:
        return fail(f"usage: python3 dev.py {kind} NAME; there are: {', '.join(known)}")
    if {"-h", "--help"} & set(arguments):
        # Its first text names its arguments.
        program = ast.parse((ROOT / kind / f"{arguments[0]}.py").read_text())
        print(ast.get_docstring(program) or f"{arguments[0]} takes no arguments.")
        return 0
    make_environment(TO_DEVELOP)
    # Benchmarks and soaks use the servers and programs of the tests, in child processes too.
    os.environ["PYTHONPATH"] = str(ROOT / "tests")
    return run(PYTHON, ROOT / kind / f"{arguments[0]}.py", *arguments[1:])


def dependencies_digest() -> str:
    project = read_project()
    asked = [
        project["project"][key]
        for key in ("requires-python", "dependencies", "optional-dependencies")
    ]
    return hashlib.sha256(repr([*asked, project["dependency-groups"]]).encode()).hexdigest()[:16]


def read_project() -> dict[str, Any]:
    import tomllib  # noqa: PLC0415 (an older Python, which has none, must get as far as `main`)

    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def make_environment(lock_file: str) -> None:
    """Bring `.venv` up to the lock file, unless it is already there."""
    if is_ready(lock_file):
        return
    try:
        with LOCK.open("a") as lock:
            wait_for_turn(lock)
            if not is_ready(lock_file):
                prepare(lock_file, lock.fileno())
    except OSError as error:
        sys.exit(fail(f"Preparing .venv failed: {error}."))


def is_ready(lock_file: str) -> bool:
    # What develops can also run, not the other way round.
    return PYTHON.exists() and any(
        has_all(stamp(name), digest(name)) for name in (lock_file, TO_DEVELOP)
    )


def has_all(stamp: Path, wanted: str) -> bool:
    """See whether the stamp fits, and whether what was installed then is all still there."""
    if not stamp.is_file():
        return False
    made_for, *installed = stamp.read_text().splitlines()
    return made_for == wanted and set(installed) <= set(list_installed())


def stamp(lock_file: str) -> Path:
    return VENV / f".{lock_file}.done"


def digest(lock_file: str) -> str:
    """Sum up what an environment is made from; the settings of tools in pyproject.toml are not."""
    project = read_project()
    made_from = [project["build-system"], project["project"], project["tool"]["hatch"]]
    place = [list(sys.version_info[:2]), str(ROOT)]
    total = hashlib.sha256((ROOT / lock_file).read_bytes())
    total.update(repr([made_from, place]).encode())
    return total.hexdigest()


def list_installed() -> list[str]:
    packages = VENV / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    return sorted(path.name for path in packages.glob("*") if path.suffix in (".dist-info", ".pth"))


def wait_for_turn(lock: IO[str]) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("Another dev.py is preparing .venv; waiting for it.", file=sys.stderr)
        fcntl.flock(lock, fcntl.LOCK_EX)


def prepare(lock_file: str, lock: int) -> None:
    print("Preparing .venv; the first time this takes a minute.", file=sys.stderr)
    # Only added to where it is whole: a server that runs from it must not lose its files.
    from_scratch = not is_ready(TO_RUN)
    for name in (TO_RUN, TO_DEVELOP):
        # Gone before the first change, so that an interrupted one is never taken for done.
        if stamp(name).exists():
            stamp(name).unlink()
    if from_scratch:
        remove(VENV)
    if has_certificates():
        # By itself uv trusts only its own list, on which a proxy of a company is not.
        os.environ.setdefault("UV_NATIVE_TLS", "1")
    uv = shutil.which("uv")
    steps = with_uv(uv, lock_file) if uv else with_pip(lock_file)
    for step in steps if from_scratch else steps[1:]:
        # Whoever comes next waits for the children too, should this process be killed.
        if run(*step, quiet=True, keep=lock):
            sys.exit(fail("Preparing .venv failed; the reason stands above. Nothing was started."))
    stamp(lock_file).write_text("\n".join([digest(lock_file), *list_installed()]))


def has_certificates() -> bool:
    """See whether this machine has a list of the authorities that it trusts."""
    known = ssl.get_default_verify_paths()
    return bool(known.cafile or (known.capath and any(Path(known.capath).iterdir())))


def remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def host_python() -> str:
    """Find the Python that an environment is made with: never that of the one being made."""
    return getattr(sys, "_base_executable", sys.executable)


def with_uv(uv: str, lock_file: str) -> list[list[str | Path]]:
    install: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", PYTHON]
    return [
        [uv, "venv", "--quiet", "--python", host_python(), VENV],
        [*install, "--compile-bytecode", "--require-hashes", "--requirements", lock_file],
        [*install, "--no-deps", "--no-build-isolation", "--editable", "."],
    ]


def with_pip(lock_file: str) -> list[list[str | Path]]:
    if not works(host_python(), "import ensurepip"):
        sys.exit(fail("This Python has no venv. On Debian and Ubuntu: apt install python3-venv"))
    install: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    return [
        [host_python(), "-m", "venv", VENV],
        [*install, "--no-deps", "--require-hashes", "--requirement", lock_file],
        [*install, "--no-deps", "--no-build-isolation", "--editable", "."],
    ]


def run(*command: str | Path, quiet: bool = False, keep: int | None = None) -> int:
    """Run in the project's root; `quiet` shows what a command printed only if it failed."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        check=False,
        stdout=subprocess.PIPE if quiet else None,
        stderr=subprocess.STDOUT if quiet else None,
        pass_fds=() if keep is None else (keep,),
    )
    if quiet and done.returncode:
        sys.stderr.buffer.write(done.stdout)
    return done.returncode


def fail(why: str) -> int:
    print(why, file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
