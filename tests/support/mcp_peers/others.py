"""MCP servers of others, as programs and over HTTP: from npm, and from PyPI.

The packages of npm are installed with the user's own npm, so from their registry, by the lock file
beside this, and kept in the user's cache folder.
"""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from backburner.ports import StdioProgram
from support import npm_packages

HERE = Path(__file__).parent
#: In seconds, for a server that starts on a busy machine.
STARTING = 30
SCOPE = "@modelcontextprotocol"


def npm_servers() -> Path:
    """Return the folder of the installed packages; the test fails if they cannot be installed."""
    return npm_packages.install(HERE, "mcp-peers")


def node() -> Path:
    return npm_packages.find_program("node")


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
