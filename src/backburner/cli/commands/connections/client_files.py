"""The files of other MCP clients on this machine: where they are, and how they are read."""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from backburner.core.connections.imports.client_files import MAX_FILE_BYTES, parse
from backburner.core.connections.imports.client_server import ClientFile
from backburner.core.errors import BadRequest, NotFound

#: From the home folder on. Files of projects are named by their path: others may have made them.
PLACES: Mapping[str, tuple[str, ...]] = {
    "claude": (
        ".config/Claude/claude_desktop_config.json",
        "Library/Application Support/Claude/claude_desktop_config.json",
    ),
    "claude-code": (".claude.json",),
    "cursor": (".cursor/mcp.json",),
    "vscode": (
        ".config/Code/User/mcp.json",
        "Library/Application Support/Code/User/mcp.json",
    ),
    "windsurf": (".codeium/windsurf/mcp_config.json",),
}


@dataclass(frozen=True, slots=True)
class FoundFile:
    #: Absolute, with its links.
    path: Path
    content: ClientFile


def find_files(path: str | None, client: str | None) -> list[Path]:
    """Find the file at a path, else those that a client has, else those of all clients."""
    if path is not None:
        return [_absolute(path)]
    places = list(_existing(PLACES if client is None else {client: PLACES[client]}))
    if not places:
        whose = "other clients" if client is None else client
        raise NotFound(
            f"There is no file of {whose} in your home folder.", hint="Name a file by its path."
        )
    return places


def _existing(clients: Mapping[str, tuple[str, ...]]) -> Iterator[Path]:
    home = Path.home()
    for places in clients.values():
        yield from (home / place for place in places if (home / place).exists())


def _absolute(path: str) -> Path:
    # Links stay: the server looks at each of them.
    return Path(os.path.abspath(Path(path).expanduser()))  # noqa: PTH100


def read_file(path: Path) -> FoundFile:
    return FoundFile(path=path, content=parse(_read_text(path), str(path)))


def _read_text(path: Path) -> str:
    try:
        # Without waiting for the other end of a pipe.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise BadRequest(f"{path} is not a file.")
            if found.st_mode & stat.S_IWOTH:
                raise BadRequest(
                    f"Everybody on this machine can change {path}.", hint=f"chmod o-w {path}"
                )
            content = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"There is no file {path}.") from None
    except OSError as error:
        raise BadRequest(f"Cannot read {path}: {error.strerror}.") from None
    if len(content) > MAX_FILE_BYTES:
        raise BadRequest(
            f"{path} is larger than {MAX_FILE_BYTES // 1_000_000} MB.",
            hint="Copy its servers to another file.",
        )
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise BadRequest(f"{path} is not UTF-8 text.") from None
