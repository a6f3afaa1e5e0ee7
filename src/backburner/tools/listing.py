"""What is in a folder of the workspace, or fits a pattern below it. It blocks: call in threads."""

import os
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from backburner.core.errors import BadRequest
from backburner.tools.workspace_paths import FOLDER, found

MOST_LISTED = 500
#: How many are looked at.
MOST_SEEN = 20_000
DEEPEST = 32
#: Each more of them would take many times as long.
MOST_WILD = 3

_KINDS = {
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def list_files(folder: Path, path: str, pattern: str | None) -> str:
    """List files with size and time; with a pattern, those below whose path fits it."""
    parts = _parts(pattern or "*")
    deep = DEEPEST if "**" in parts else len(parts)
    with found(folder, path) as (parent, name):
        top = os.open(name, FOLDER, dir_fd=parent)
        try:
            seen = list(islice(_below(top, (), deep), MOST_SEEN + 1))
        finally:
            os.close(top)
    fitting = sorted((names, info) for names, info in seen if _fits(names, parts))
    lines = [_line(names, info) for names, info in fitting[:MOST_LISTED]]
    if len(fitting) > MOST_LISTED or len(seen) > MOST_SEEN:
        lines.append("[There is more; ask for a folder further down, or with a narrower pattern.]")
    return "\n".join(lines) or "[There is nothing.]"


Seen = tuple[tuple[str, ...], os.stat_result]


def _below(folder: int, above: tuple[str, ...], deep: int) -> Iterator[Seen]:
    """Yield what is below, links as links; whatever cannot be opened is seen from outside."""
    with os.scandir(folder) as entries:
        inside = sorted(islice(entries, MOST_SEEN + 1), key=lambda entry: entry.name)
    for entry in inside:
        try:
            info = entry.stat(follow_symlinks=False)
        except OSError:
            continue
        names = (*above, entry.name)
        yield names, info
        if stat.S_ISDIR(info.st_mode) and deep > 1:
            yield from _inside(folder, names, deep - 1)


def _inside(folder: int, names: tuple[str, ...], deep: int) -> Iterator[Seen]:
    try:
        below = os.open(names[-1], FOLDER, dir_fd=folder)
    except OSError:
        return
    try:
        yield from _below(below, names, deep)
    except OSError:
        return
    finally:
        os.close(below)


def _parts(pattern: str) -> tuple[str, ...]:
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if ".." in parts or parts.count("**") > MOST_WILD or len(parts) > DEEPEST:
        raise BadRequest(f"{pattern[:200]} is not a pattern that can be used.")
    return tuple(parts)


def _fits(names: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    if not parts:
        return not names
    if parts[0] == "**":
        # At the end it is for everything below, not for the folder itself.
        if len(parts) == 1:
            return bool(names)
        return _fits(names, parts[1:]) or (bool(names) and _fits(names[1:], parts))
    return bool(names) and fnmatchcase(names[0], parts[0]) and _fits(names[1:], parts[1:])


def _line(names: tuple[str, ...], info: os.stat_result) -> str:
    path = os.fsencode("/".join(names)).decode(errors="replace")
    path = "".join(char if char.isprintable() else "?" for char in path)
    changed = datetime.fromtimestamp(info.st_mtime, UTC)
    kind = stat.S_IFMT(info.st_mode)
    if kind == stat.S_IFDIR:
        return f"{path}/"
    size = _KINDS.get(kind) or f"{info.st_size:,} bytes"
    return f"{path}  {size}  {changed:%Y-%m-%d %H:%M} UTC"
