"""List a folder of the workspace, or the files below it that match a pattern. Blocking."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from backburner.core.errors import BadRequest
from backburner.tools.workspace_paths import OPEN_FOLDER, open_parent

MAX_LISTED = 500
#: Entries that are read, matching or not.
MAX_SCANNED = 20_000
MAX_DEPTH = 32
#: Of `**` in a pattern. Each multiplies the time to match.
MAX_RECURSIVE_WILDCARDS = 3

_KINDS = {
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def list_files(folder: Path, path: str, pattern: str | None) -> str:
    """List files with size and time; with a pattern, those below whose path matches."""
    parts = _parts(pattern or "*")
    depth = MAX_DEPTH if "**" in parts else len(parts)
    with open_parent(folder, path) as (parent, name):
        top = os.open(name, OPEN_FOLDER, dir_fd=parent)
        try:
            entries = list(islice(_scan(top, (), depth), MAX_SCANNED + 1))
        finally:
            os.close(top)
    matching = sorted((names, info) for names, info in entries if _matches(names, parts))
    lines = [_line(names, info) for names, info in matching[:MAX_LISTED]]
    if len(matching) > MAX_LISTED or len(entries) > MAX_SCANNED:
        lines.append("[The list is incomplete. List a subfolder, or use a narrower pattern.]")
    return "\n".join(lines) or "[No files.]"


Entry = tuple[tuple[str, ...], os.stat_result]


def _scan(folder: int, above: tuple[str, ...], depth: int) -> Iterator[Entry]:
    """Yield everything below, links as links; folders that cannot be opened without contents."""
    with os.scandir(folder) as scan:
        children = sorted(islice(scan, MAX_SCANNED + 1), key=lambda entry: entry.name)
    for entry in children:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        names = (*above, entry.name)
        yield names, info
        if stat.S_ISDIR(info.st_mode) and depth > 1:
            yield from _scan_folder(folder, names, depth - 1)


def _scan_folder(folder: int, names: tuple[str, ...], depth: int) -> Iterator[Entry]:
    try:
        below = os.open(names[-1], OPEN_FOLDER, dir_fd=folder)
    except OSError:
        return
    try:
        yield from _scan(below, names, depth)
    except OSError:
        return
    finally:
        os.close(below)


def _parts(pattern: str) -> tuple[str, ...]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if ".." in parts or parts.count("**") > MAX_RECURSIVE_WILDCARDS or len(parts) > MAX_DEPTH:
        raise BadRequest(
            f"{pattern[:200]} is not a valid pattern.",
            hint=f"Leave out `..`, and use `**` at most {MAX_RECURSIVE_WILDCARDS} times.",
        )
    return tuple(parts)


def _matches(names: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        # A trailing `**` matches everything below the folder, not the folder itself.
        if len(parts) == 1:
            return bool(names)
        return _matches(names, parts[1:]) or (bool(names) and _matches(names[1:], parts))
    return bool(names) and fnmatchcase(names[0], parts[0]) and _matches(names[1:], parts[1:])


def _line(names: tuple[str, ...], info: os.stat_result) -> str:
    path = os.fsencode("/".join(names)).decode(errors="replace")
    path = "".join(char if char.isprintable() else "?" for char in path)
    changed = datetime.fromtimestamp(info.st_mtime, UTC)
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFDIR:
        return f"{path}/"
    size = _KINDS.get(kind) or f"{info.st_size:,} bytes"
    return f"{path}  {size}  {changed:%Y-%m-%d %H:%M} UTC"
