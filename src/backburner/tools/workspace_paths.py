"""Files of the workspace, opened step by step from its folder, so that no path leads out of it.

Each step is taken from the folder that was opened before, and never through a link that was not
looked at: whoever moves things about meanwhile gets an error, not another file.
"""

import errno
import os
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from backburner.core.errors import BackburnerError, BadRequest, MachineFailed, NotAllowed, NotFound
from backburner.core.validation import check_text

MOST_PARTS = 64
MOST_LINKS = 16
LONGEST_PATH = 2_000

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def found(folder: Path, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """Give the folder, open, that something is in, and its name there, which is no link.

    There need not be anything by that name. `make` makes the folders on the way.
    """
    with explained(path):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        walk = _Walk(folder, path, make=make)
        with walk.opened:
            name = walk.go()
            yield walk.here, name


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Put errors of the system into words for the agent."""
    try:
        yield
    except OSError as error:
        raise _in_words(path, error.errno or 0) from None


def status(folder: int, name: str) -> os.stat_result | None:
    """Look at what has this name, itself and not where it leads; None: nothing has."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


class _Walk:
    def __init__(self, folder: Path, path: str, *, make: bool) -> None:
        self._folder = folder
        self._make = make
        self._left = deque(self._parts(check_text("The path", path, limit=LONGEST_PATH)))
        self._links = 0
        self.opened = ExitStack()
        # Whether the folder itself is a link is not for the agent to say.
        root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.opened.callback(os.close, root)
        self._way = [root]

    @property
    def here(self) -> int:
        return self._way[-1]

    def go(self) -> str:
        """Take all steps but the last, and give the name for that."""
        while self._left:
            name = self._left.popleft()
            if name == "..":
                self._up()
                continue
            seen = status(self.here, name)
            if seen is not None and stat.S_ISLNK(seen.st_mode):
                self._follow(name)
            elif not self._left:
                return name
            else:
                self._down(name, there=seen is not None)
        return "."

    def _up(self) -> None:
        if len(self._way) == 1:
            raise _outside()
        # It stays open until the end; they are few.
        self._way.pop()

    def _down(self, name: str, *, there: bool) -> None:
        if not there and self._make:
            os.mkdir(name, 0o755, dir_fd=self.here)
        below = os.open(name, FOLDER, dir_fd=self.here)
        self.opened.callback(os.close, below)
        self._way.append(below)

    def _follow(self, name: str) -> None:
        self._links += 1
        if self._links > MOST_LINKS:
            raise OSError(errno.ELOOP, "Too many links.")
        target = os.readlink(name, dir_fd=self.here)
        if target.startswith("/"):
            del self._way[1:]
        self._left.extendleft(reversed(self._parts(target)))
        if len(self._left) > MOST_PARTS:
            raise OSError(errno.ENAMETOOLONG, "Too many parts.")

    def _parts(self, path: str) -> list[str]:
        if path.startswith("/"):
            if not Path(os.path.normpath(path)).is_relative_to(self._folder):
                raise _outside()
            path = os.path.relpath(os.path.normpath(path), self._folder)
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if len(parts) > MOST_PARTS:
            raise OSError(errno.ENAMETOOLONG, "Too many parts.")
        return parts


def _outside() -> NotAllowed:
    return NotAllowed("That is outside of the workspace.", hint="Use a path within it.")


def _in_words(path: str, number: int) -> BackburnerError:
    shown = path[:200]
    match number:
        case errno.ENOENT:
            return NotFound(f"There is no {shown}.")
        case errno.ENOTDIR:
            return BadRequest(f"On the way to {shown} is something that is not a folder.")
        case errno.EISDIR:
            return BadRequest(f"{shown} is a folder.")
        case errno.ENAMETOOLONG:
            return BadRequest(f"The path {shown} is too long.")
        case errno.ELOOP:
            return NotAllowed(f"Links on the way to {shown} lead nowhere, or changed meanwhile.")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return NotAllowed(f"{shown} may not be used in that way: {os.strerror(number)}.")
        case errno.ENOSPC | errno.EDQUOT:
            return MachineFailed("There is no room left on the disk; nothing was written.")
        case _:
            return MachineFailed(f"{shown}: {os.strerror(number)}.")
