"""Paths in the workspace, opened one component at a time, so that no path leads out of it.

Each component is opened relative to the folder before it, and never through an unchecked link: a
process that moves files about meanwhile causes an error and never opens another file. The path of
the workspace itself has no link.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from backburner.core.errors import BackburnerError, BadRequest, MachineFailed, NotAllowed, NotFound
from backburner.core.validation import check_text

MAX_PARTS = 64
MAX_LINKS = 16
MAX_PATH_CHARS = 2_000

OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
#: To open what is below, which needs no right to read.
PASS_FOLDER = OPEN_FOLDER | getattr(os, "O_PATH", 0)


def open_below(name: str, flags: int, folder: int) -> int:
    return os.open(name, flags, dir_fd=folder)


def open_root(
    folder: Path, flags: int = OPEN_FOLDER, opener: Callable[[str, int, int], int] = open_below
) -> int:
    """Open a workspace through no link, from the top on; the last step with flags and opener."""
    *above, last = folder.parts[1:] or (".",)
    opened = os.open("/", PASS_FOLDER)
    try:
        for name in above:
            below = open_below(name, PASS_FOLDER, opened)
            os.close(opened)
            opened = below
        return opener(last, flags, opened)
    except FileNotFoundError:
        raise NotFound(f"The folder {folder} is gone.", hint="Tell the user.") from None
    except NotADirectoryError:
        raise NotAllowed(
            f"The folder {folder} was replaced by a link.",
            hint="Tell the user, who has to add the folder that it leads to.",
        ) from None
    finally:
        os.close(opened)


@contextmanager
def open_parent(folder: Path, path: str) -> Iterator[tuple[int, str]]:
    """Open the parent folder of a path; yield its descriptor and the last name, which is no link.

    The name need not exist.
    """
    with open_real_parent(folder, path) as (parent, name, _):
        yield parent, name


@contextmanager
def open_real_parent(
    folder: Path, path: str, *, make: Callable[[str], None] | None = None
) -> Iterator[tuple[int, str, str]]:
    """Open the parent folder of a path; also yield the path without links, from the folder.

    With `make` missing folders are created, unless it refuses their paths.
    """
    with explain_errors(path):
        walk = _Walk(folder, path, make)
        with walk.opened:
            name = walk.run()
            yield walk.parent, name, "/".join([*walk.names, name])


@contextmanager
def explain_errors(path: str) -> Iterator[None]:
    """Turn each `OSError` into an error that the agent can read."""
    try:
        yield
    except OSError as error:
        raise _explain(path, error.errno or 0) from None


def stat_entry(folder: int, name: str) -> os.stat_result | None:
    """Stat an entry of a folder without following links; None if it does not exist."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


class _Walk:
    def __init__(self, folder: Path, path: str, make: Callable[[str], None] | None) -> None:
        self._folder = folder
        self._make = make
        self._left = deque(self._parts(check_text("The path", path, limit=MAX_PATH_CHARS)))
        self._links = 0
        self.opened = ExitStack()
        root = open_root(folder)
        self.opened.callback(os.close, root)
        self._open_folders = [root]
        #: Of the open folders, without the first.
        self.names: list[str] = []

    @property
    def parent(self) -> int:
        return self._open_folders[-1]

    def run(self) -> str:
        """Open all components but the last, and return that one."""
        while self._left:
            name = self._left.popleft()
            if name == "..":
                self._up()
                continue
            entry = stat_entry(self.parent, name)
            if entry is not None and stat.S_ISLNK(entry.st_mode):
                self._follow(name)
            elif not self._left:
                return name
            else:
                self._down(name, exists=entry is not None)
        return "."

    def _up(self) -> None:
        if len(self._open_folders) == 1:
            raise _outside()
        # It stays open until the end; there are few.
        self._open_folders.pop()
        self.names.pop()

    def _down(self, name: str, *, exists: bool) -> None:
        if not exists and self._make is not None:
            self._make("/".join([*self.names, name]))
            os.mkdir(name, 0o755, dir_fd=self.parent)
        below = os.open(name, OPEN_FOLDER, dir_fd=self.parent)
        self.opened.callback(os.close, below)
        self._open_folders.append(below)
        self.names.append(name)

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > MAX_LINKS:
            raise OSError(errno.ELOOP, "Too many links.")
        target = os.readlink(name, dir_fd=self.parent)
        if target.startswith("/"):
            del self._open_folders[1:]
            self.names.clear()
        self._left.extendleft(reversed(self._parts(target)))
        if len(self._left) > MAX_PARTS:
            raise OSError(errno.ENAMETOOLONG, "Too many parts.")

    def _parts(self, path: str) -> list[str]:
        if path.startswith("/"):
            if not Path(os.path.normpath(path)).is_relative_to(self._folder):
                raise _outside()
            path = os.path.relpath(os.path.normpath(path), self._folder)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if len(parts) > MAX_PARTS:
            raise OSError(errno.ENAMETOOLONG, "Too many parts.")
        return parts


def _outside() -> NotAllowed:
    return NotAllowed("This path is outside the workspace.", hint="Use a path within it.")


def _explain(path: str, number: int) -> BackburnerError:
    shown = path[:200]
    match number:
        case errno.ENOENT:
            return NotFound(f"File or folder not found: {shown}.")
        case errno.ENOTDIR:
            return BadRequest(f"A part of the path {shown} is not a folder.")
        case errno.EISDIR:
            return BadRequest(f"{shown} is a folder.")
        case errno.ENAMETOOLONG:
            return BadRequest(f"The path {shown} is too long.")
        case errno.ELOOP:
            return NotAllowed(f"The path {shown} has too many links, or changed meanwhile.")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return NotAllowed(f"No access to {shown}: {os.strerror(number)}.")
        case errno.ENOSPC | errno.EDQUOT:
            return MachineFailed("The disk is full. Nothing was written.")
        case _:
            return MachineFailed(f"{shown}: {os.strerror(number)}.")
