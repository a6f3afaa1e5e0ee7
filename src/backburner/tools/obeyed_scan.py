"""Finds the files of a workspace that other programs obey, and reads them. Blocking.

By their names; by what surrounds them, as git takes any folder of the right shape for a repository;
and those that such files point to. Much is read, but never more than `MAX_SCAN_BYTES` kept: the
rest is known by its size and its last change. Files of git that may name others are read besides.
"""

import errno
import hashlib
import json
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from backburner.core.errors import LimitReached
from backburner.core.obeyed_files import (
    GIT_FOLDER,
    GIT_OBJECTS,
    POINTING_FILES,
    PROGRAM,
    SETTINGS_FILES,
    Place,
    find_pointers,
    is_repository,
)
from backburner.tools.files import replace_file
from backburner.tools.workspace_paths import OPEN_FOLDER, explain_errors, open_root, stat_entry

#: Of a file that is kept, or put back.
MAX_WATCHED_BYTES = 2**22
#: Of all of them, and of all changes.
MAX_SCAN_BYTES = 2**24
#: Of a file of git that may name others. A larger one is not read whole, and so never plain.
MAX_POINTING_BYTES = 2**18
#: Of a scan before a command, which is otherwise refused: an entry of a folder is a step, and so is
#: a folder that is opened; what is kept counts more. After a command, when all of the workspace has
#: to be looked at, of those for links: others are watched themselves.
MAX_STEPS = 1_000_000
#: No program takes a longer path. Folders that lie deeper are reached by links, and from each of
#: them as far again.
MAX_PATH_BYTES = 4096
#: Folders open at once.
_MAX_OPEN = 48
#: The kernel follows no more.
_MAX_LINKS = 40
#: Folders with very many files, none of which is obeyed where it lies. Links into them are.
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
#: Entries of a folder that are counted at once.
_BATCH = 1000
#: By these git knows the folder of a repository.
_SHAPE = frozenset({"head", "commondir", "objects", "refs"})

#: Names of files that are no text.
_AS_STORED = ("utf-8", "surrogateescape")
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileState:
    """The content of a path: a file, a link, or something else without data."""

    mode: int
    size: int
    #: Of a file, or the target of a link; of a large file its beginning.
    data: bytes
    #: Tells a file that is not whole from what it was.
    stamp: str = ""

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_whole(self) -> bool:
        return not self.is_file or self.size == len(self.data)

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")

    @classmethod
    def read(cls, folder: int, name: str, *, limit: int = MAX_WATCHED_BYTES) -> Self | None:
        status = stat_entry(folder, name)
        if status is None:
            return None
        data = b""
        if stat.S_ISLNK(status.st_mode):
            data = os.fsencode(os.readlink(name, dir_fd=folder))
        elif stat.S_ISREG(status.st_mode):
            # One that belongs to another user, or that another program holds, is known to be there.
            with (
                suppress(PermissionError, BlockingIOError),
                os.fdopen(open_again(name, _READ, folder), "rb") as file,
            ):
                data = file.read(limit)
                status = os.fstat(file.fileno())
        size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        state = cls(status.st_mode, size, data)
        if state.is_whole:
            return state
        return replace(state, stamp=f"{status.st_ino} {status.st_ctime_ns}")

    def write(self, folder: int, name: str) -> None:
        if self.is_link:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.symlink(self.data, name, dir_fd=folder)
        else:
            replace_file(folder, name, self.data, self.mode & 0o777)

    def to_json(self) -> Sequence[Any]:
        return [self.mode, self.size, b64encode(self.data).decode(), self.stamp]

    @classmethod
    def from_json(cls, value: Sequence[Any]) -> Self:
        mode, size, data, *stamp = value
        return cls(mode, size, b64decode(data), *stamp)


#: On the way to a file that is watched because another points to it.
FOLDER = FileState(stat.S_IFDIR, 0, b"")


@dataclass(frozen=True, slots=True)
class Snapshot:
    files: dict[str, FileState] = field(default_factory=dict)
    #: The folders of repositories.
    repositories: set[str] = field(default_factory=set)
    #: What watched files point to, and as what it is used.
    targets: dict[str, Place] = field(default_factory=dict)

    def digest(self) -> str:
        """Hash all of it; the sizes keep apart what stands side by side."""
        digest = hashlib.sha256("\0".join(sorted(self.repositories)).encode(*_AS_STORED))
        for path, place in sorted(self.targets.items()):
            digest.update(f"\0{path}\0{astuple(place)}\0".encode(*_AS_STORED))
        for path, state in sorted(self.files.items()):
            facts = f"\0{path}\0{state.mode} {state.size} {len(state.data)} {state.stamp}\0"
            digest.update(facts.encode(*_AS_STORED))
            digest.update(state.data)
        return digest.hexdigest()

    def to_json(self) -> str:
        files = {path: state.to_json() for path, state in self.files.items()}
        targets = {path: astuple(place) for path, place in self.targets.items()}
        repositories = sorted(self.repositories)
        return json.dumps({"files": files, "repositories": repositories, "targets": targets})

    @classmethod
    def from_json(cls, text: str) -> Self:
        value = json.loads(text)
        files = {path: FileState.from_json(state) for path, state in value["files"].items()}
        targets = {path: Place(*place) for path, place in value.get("targets", {}).items()}
        return cls(files, set(value["repositories"]), targets)

    def find_place(self, path: str) -> Place | None:
        """Return as what a path is used that a watched file points to, itself or from above."""
        parts = path.split("/")
        for number in range(len(parts), -1, -1):
            place = self.targets.get("/".join(parts[:number]))
            if place is not None:
                for name in parts[number:]:
                    place = place.enter(name)
                return place
        return None


def scan(folder: Path, known: Snapshot | None = None) -> Snapshot:
    """Read what is obeyed now.

    With what was known before, what that points to is read, and not what new files point to: those
    are put back.
    """
    with explain_errors("."):
        walk = _Walk(folder, known)
        try:
            walk.run()
        finally:
            walk.position.close()
    return walk.found


class _Position:
    """A folder of the workspace that is open: others are opened from it, and through no link."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._parts = list[str]()
        self._opened = open_root(root, opener=open_again)

    def move(self, parts: Sequence[str]) -> int:
        """Open a folder step by step, however deep it lies."""
        if self._parts != parts[: len(self._parts)]:
            opened = open_root(self._root, opener=open_again)
            self.close()
            self._parts, self._opened = [], opened
        for part in parts[len(self._parts) :]:
            below = open_again(part, OPEN_FOLDER, self._opened)
            self.close()
            self._opened = below
            self._parts.append(part)
            regain(below, os.X_OK)
        return self._opened

    def close(self) -> None:
        os.close(self._opened)


@dataclass(slots=True)
class _Level:
    """A folder on the way of a walk."""

    path: str
    place: Place
    #: Still to be entered.
    folders: list[str]
    #: None: too many others are open.
    opened: int | None
    identity: tuple[int, int] = (0, 0)

    def close(self) -> None:
        if self.opened is not None:
            os.close(self.opened)
            self.opened = None


class _Walk:
    def __init__(self, folder: Path, known: Snapshot | None) -> None:
        self.position = _Position(folder)
        self._root = list(folder.parts[1:])
        self._known = known
        self.found = Snapshot(targets={} if known is None else dict(known.targets))
        self._left = MAX_SCAN_BYTES
        #: Of files that may name others; a scan before a command ends before it is used up.
        self._left_to_point = 16 * MAX_STEPS
        self._steps_left = MAX_STEPS
        #: Links that are not obeyed: their folders and names.
        self._links = list[tuple[str, str]]()
        #: Links that are: their paths, their targets, and what they are used as.
        self._aims = list[tuple[str, str, Place]]()
        #: Files of git that may name others: their paths, what they are used as, and their text.
        self._pointing = list[tuple[str, str, str]]()
        #: Folders that a file `.git` makes work trees.
        self._trees = set[str]()
        #: Looked at because something points there.
        self._visited = set[tuple[str, Place]]()
        #: Where paths lead, by the folder and the path; and the links on the way.
        self._resolved = dict[tuple[str, str], tuple[list[str], list[str]]]()

    def run(self) -> None:
        self._walk("", Place())
        if self._known is not None:
            self._steps_left = MAX_STEPS
        for target, place in list(self.found.targets.items()):
            self._visit(target, place)
        while self._aims or self._pointing or self._links:
            if self._aims:
                self._aim(*self._aims.pop())
            elif self._pointing:
                self._follow_pointers(*self._pointing.pop())
            else:
                self._follow_link(*self._links.pop())

    def _spend(self, steps: int) -> None:
        self._steps_left -= steps
        if self._steps_left < 0 and self._known is None:
            raise LimitReached(
                "The workspace has too many files, folders or links to look for those that other"
                " programs obey. Nothing was run or written.",
                hint="Ask the user to remove some, or to move them out of the workspace.",
            )

    def _walk(self, top: str, place: Place) -> None:
        longest = _count_bytes(top) + 2 * MAX_PATH_BYTES
        levels = [self._list(os.dup(self._open(_split(top))), top, place)]
        try:
            while levels:
                level = levels[-1]
                if level.opened is None or not level.folders:
                    self._leave(levels)
                    continue
                with _skip_what_is_gone():
                    below = self._enter(level, level.opened, level.folders.pop(), longest)
                    levels += [] if below is None else [below]
                if len(levels) > _MAX_OPEN:
                    self._shut(levels[-1 - _MAX_OPEN])
        finally:
            for level in levels:
                level.close()

    def _shut(self, level: _Level) -> None:
        """Close a folder to which the walk comes back."""
        if level.opened is not None:
            level.identity = _identify(level.opened)
            level.close()

    def _leave(self, levels: list[_Level]) -> None:
        """Go back to the folder above, which is opened from below if it was closed meanwhile."""
        left = levels.pop()
        try:
            if levels and levels[-1].opened is None:
                with _skip_what_is_gone():
                    levels[-1].opened = self._climb(left, levels[-1])
        finally:
            left.close()

    def _climb(self, left: _Level, level: _Level) -> int:
        self._spend(1)
        if left.opened is not None:
            opened = open_again("..", OPEN_FOLDER, left.opened)
            if _identify(opened) == level.identity:
                return opened
            # It was moved.
            os.close(opened)
        return os.dup(self._open(_split(level.path)))

    def _list(self, opened: int, path: str, place: Place) -> _Level:
        """List a folder, and look at the files in it. Closed if that fails."""
        try:
            return self._look(opened, path, place)
        except BaseException:
            os.close(opened)
            raise

    def _look(self, opened: int, path: str, place: Place) -> _Level:
        regain(opened, os.X_OK)
        shape, folders, others = self._sort(opened, place)
        if not place.is_git and is_repository(shape):
            self.found.repositories.add(path)
            place = replace(place, is_repository=True)
            # Now others are obeyed too.
            _, folders, others = self._sort(opened, place)
        prefix = f"{path}/" if path else ""
        for name, is_link in others:
            if place.obeys(name, is_link=is_link):
                with _skip_what_is_gone():
                    self._note(opened, name, f"{prefix}{name}", place.enter(name))
            elif is_link:
                self._links.append((path, name))
        return _Level(path, place, folders, opened)

    def _sort(
        self, opened: int, place: Place
    ) -> tuple[set[str], list[str], list[tuple[str, bool]]]:
        """List a folder: names that make a repository, folders, and what is obeyed or a link.

        Of very many entries, nothing else is kept.
        """
        shape, folders, others = set[str](), list[str](), list[tuple[str, bool]]()
        number = 0
        with os.scandir(opened) as entries:
            for number, entry in enumerate(entries, 1):
                name = entry.name
                if number % _BATCH == 0:
                    self._spend(_BATCH)
                if name.casefold() in _SHAPE:
                    shape.add(name.casefold())
                if entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                elif (is_link := entry.is_symlink()) or place.obeys(name):
                    others.append((name, is_link))
                else:
                    continue
                self._spend(4 + len(name) // 16)
        self._spend(number % _BATCH)
        return shape, folders, others

    def _enter(self, level: _Level, opened: int, name: str, longest: int) -> _Level | None:
        place, below = level.place, level.place.enter(name)
        path = f"{level.path}/{name}" if level.path else name
        in_git = place.is_git or place.is_repository
        if name in SKIPPED_FOLDERS or (in_git and name == GIT_OBJECTS):
            return None
        if below.is_git and not place.is_git:
            self.found.repositories.add(path)
        if _count_bytes(path) >= longest:
            return None
        try:
            return self._list(open_again(name, OPEN_FOLDER, opened), path, below)
        except PermissionError:
            # One that belongs to another user is watched as a whole.
            self._note(opened, name, path, below)
            return None

    def _note(self, folder: int, name: str, path: str, used_as: Place) -> None:
        if path in self.found.files:
            return
        self._spend(8 + len(path) // 64)
        state = self._read(folder, name, path, points=used_as.name in POINTING_FILES)
        if state is None:
            return
        self.found.files[path] = state
        if self._known is not None:
            return
        if state.is_link:
            self._aims.append((path, os.fsdecode(state.data), used_as))
        elif state.is_file and used_as.name in POINTING_FILES:
            self._pointing.append((path, used_as.name, state.text))
            if used_as.name == GIT_FOLDER:
                self._trees.add(_parent(path))

    def _read(self, folder: int, name: str, path: str, *, points: bool) -> FileState | None:
        known = None if self._known is None else self._known.files.get(path)
        limit = min(MAX_WATCHED_BYTES, self._left)
        if points:
            limit = min(MAX_POINTING_BYTES, self._left_to_point)
        if known is not None:
            limit = max(limit, known.size) if known.is_whole else len(known.data)
        state = FileState.read(folder, name, limit=limit)
        if state is not None and state == known:
            return known
        size = 0 if state is None else len(state.data)
        if points:
            self._spend(size // 16)
            self._left_to_point = max(self._left_to_point - size, 0)
        else:
            self._left = max(self._left - size, 0)
        return state

    def _follow_pointers(self, path: str, name: str, text: str) -> None:
        own = _parent(path)
        # Git takes them from the folder of the settings, or from that of the work tree.
        bases = {own, _parent(own), *self._trees} if name in SETTINGS_FILES else {own}
        for target, used_as in find_pointers(name, text):
            for base in bases:
                is_path = used_as != PROGRAM or "/" in target
                if is_path or self._is_name(base, target):
                    self._aim(f"{base}/" if base else "", target, Place.at(used_as))

    def _is_name(self, base: str, word: str) -> bool:
        """Return whether a word is that of a file in a folder."""
        with suppress(OSError):
            status = stat_entry(self._open(_split(base)), word)
            return status is not None and not stat.S_ISDIR(status.st_mode)
        return False

    def _aim(self, path: str, target: str, used_as: Place) -> None:
        """Watch what a file at a path points to, and the links on the way."""
        self._spend(1)
        real, links = self._resolve(_parent(path), target)
        for link in links:
            self._watch(link, Place())
        inside = self._find_inside(real)
        if inside is None:
            return
        if f"{path}/".startswith(f"{inside}/" if inside else ""):
            if used_as.name != GIT_FOLDER or Place.at(inside).is_git:
                # Not everything, if it points to a folder that it lies in.
                return
            # It shares the settings of that folder; the rest there is not git's.
            used_as = Place(is_repository=True)
        self._watch(inside, used_as)

    def _watch(self, path: str, used_as: Place) -> None:
        if path not in self.found.targets:
            self.found.targets[path] = used_as
            self._visit(path, used_as)

    def _follow_link(self, folder: str, name: str) -> None:
        """Look at the target of a link; one that cannot be followed is itself watched."""
        path = f"{folder}/{name}" if folder else name
        with suppress(OSError):
            if self._steps_left >= 0 and self._look_behind(path):
                return
        with _skip_what_is_gone():
            self._note(self._open(_split(folder)), name, path, Place())

    def _look_behind(self, path: str) -> bool:
        """Visit the target of a link if no walk goes there by itself, unless it lies too deep."""
        target = self._read_link(path.split("/"))
        real, _ = (None, ()) if target is None else self._resolve(_parent(path), target)
        inside = self._find_inside(real)
        if not inside or not _is_off_the_walk(inside):
            return True
        if _count_bytes(inside) > 2 * MAX_PATH_BYTES:
            return False
        self._visit(inside, Place.at(_parent(inside)).enter(inside.rpartition("/")[2]))
        return True

    def _visit(self, path: str, used_as: Place) -> None:
        if (path, used_as) in self._visited:
            return
        self._visited.add((path, used_as))
        *folders, name = path.split("/")
        with _skip_what_is_gone():
            for number in range(len(folders)):
                if not self._pass(folders[: number + 1]):
                    return
            opened = self._open(folders)
            status = stat_entry(opened, name or ".")
            was_link = self._known is not None and self._known.files.get(path, FOLDER).is_link
            if status is None or was_link or not stat.S_ISDIR(status.st_mode):
                self._note(opened, name, path, used_as)
            elif used_as.may_hold_obeyed or _is_off_the_walk(path):
                self._walk(path, used_as)

    def _pass(self, parts: list[str]) -> bool:
        """Watch a folder on the way to what is watched; return whether it is one."""
        path = "/".join(parts)
        opened = self._open(parts[:-1])
        status = stat_entry(opened, parts[-1])
        if status is None or not stat.S_ISDIR(status.st_mode):
            self._note(opened, parts[-1], path, Place())
            return False
        if path not in self.found.files:
            self._spend(1 + len(path) // 64)
            self.found.files[path] = FOLDER
        return True

    def _open(self, parts: Sequence[str]) -> int:
        """Open a folder until the next one is opened like this."""
        self._spend(1 + len(parts) // 4)
        return self.position.move(parts)

    def _resolve(
        self, base: str, target: str, before: int = 0
    ) -> tuple[list[str] | None, list[str]]:
        """Return the absolute path that a target leads to, and the links on the way.

        None after more links than the system follows, with those before. Links outside the
        workspace are not followed.
        """
        if (base, target) in self._resolved:
            return self._resolved[base, target]
        self._spend(1 + (len(base) + len(target)) // 64)
        done = [] if target.startswith("/") else [*self._root, *_split(base)]
        links = list[str]()
        for part in target.split("/"):
            if part in ("", "."):
                continue
            if part == "..":
                del done[-1:]
                continue
            done.append(part)
            path = self._find_inside(done)
            link = self._read_link(path.split("/")) if path else None
            if path and link is not None:
                self._spend(len(path) // 64)
                links.append(path)
                if before + len(links) > _MAX_LINKS:
                    return None, links
                real, more = self._resolve(_parent(path), link, before + len(links))
                links += more
                if real is None or before + len(links) > _MAX_LINKS:
                    return None, links
                done = [*real]
        self._resolved[base, target] = done, links
        return done, links

    def _find_inside(self, parts: list[str] | None) -> str | None:
        size = len(self._root)
        is_inside = parts is not None and parts[:size] == self._root
        return "/".join(parts[size:]) if parts is not None and is_inside else None

    def _read_link(self, parts: list[str]) -> str | None:
        """Return the target of a link; None if it is none."""
        try:
            return os.readlink(parts[-1], dir_fd=self._open(parts[:-1]))
        except ValueError:
            return None
        except OSError as error:
            # The last: longer than any name.
            absent = (errno.ENOENT, errno.EINVAL, errno.ENOTDIR, errno.ENAMETOOLONG)
            if error.errno not in absent:
                raise
            return None


def open_again(path: str | Path, flags: int, folder: int | None = None) -> int:
    """Open a file or folder, also if a command has taken our right to read it away.

    Others obey a file that they can execute, or reach, but not read.
    """
    try:
        return os.open(path, flags, dir_fd=folder)
    except PermissionError:
        follow = not flags & os.O_NOFOLLOW
        mode = os.stat(path, dir_fd=folder, follow_symlinks=follow).st_mode
        rights = stat.S_IRWXU if stat.S_ISDIR(mode) else stat.S_IRUSR
        os.chmod(path, stat.S_IMODE(mode) | rights, dir_fd=folder, follow_symlinks=follow)
        return os.open(path, flags, dir_fd=folder)


def regain(folder: int, access: int) -> None:
    """Take back rights to an open folder that a command has taken away."""
    if not os.access(".", access, dir_fd=folder):
        os.fchmod(folder, stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)


@contextmanager
def _skip_what_is_gone() -> Iterator[None]:
    """Skip an entry that was removed or replaced meanwhile, but none that cannot be read."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, UnicodeError):
        # A name that is not text is none that is obeyed.
        pass
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise


def _is_off_the_walk(path: str) -> bool:
    """Return whether no walk from the top sees all that can be named from a folder."""
    return is_skipped(path) or _count_bytes(path) > MAX_PATH_BYTES


def is_skipped(path: str) -> bool:
    """Return whether only what links lead to is looked at there."""
    parts = path.split("/")
    return not SKIPPED_FOLDERS.isdisjoint(parts) or GIT_OBJECTS in parts


def _count_bytes(path: str) -> int:
    return len(path.encode(*_AS_STORED))


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _split(path: str) -> list[str]:
    return path.split("/") if path else []


def _identify(opened: int) -> tuple[int, int]:
    status = os.fstat(opened)
    return status.st_dev, status.st_ino
