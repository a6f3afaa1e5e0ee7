"""Finds the files of a workspace that other programs obey, and reads them. Blocking.

By their names; by what surrounds them, as git takes any folder of the right shape for a repository;
and those that such files point to. Much is read, but never more than `MAX_SCAN_BYTES` kept: the
rest is known by its size and its last change.
"""

import errno
import hashlib
import json
import os
import stat
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, field, replace
from pathlib import Path
from typing import Any, Self

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
from backburner.tools.workspace_paths import OPEN_FOLDER, explain_errors, stat_entry

#: Of a file that is kept, or put back.
MAX_WATCHED_BYTES = 2**22
#: Of all of them, and of all changes.
MAX_SCAN_BYTES = 2**24
#: No program has a longer path for its folder, so nobody works in folders that lie deeper.
MAX_PATH_BYTES = 4096
#: Folders open at once.
_MAX_OPEN = 48
#: The kernel follows no more.
_MAX_LINKS = 40
#: Folders with very many files, none of which is obeyed where it lies. Links into them are.
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})

#: Names of files that are no text.
_AS_STORED = ("utf-8", "surrogateescape")
OPEN_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
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
    walk = _Walk(folder, known)
    with explain_errors("."):
        walk.run()
    return walk.found


class _Walk:
    def __init__(self, folder: Path, known: Snapshot | None) -> None:
        self._folder = folder
        #: Absolute paths begin with one of them.
        self._roots = (folder, Path(os.path.realpath(folder)))
        self._known = known
        self.found = Snapshot(targets={} if known is None else dict(known.targets))
        self._left = MAX_SCAN_BYTES
        #: Too deep to stay open.
        self._deep = list[tuple[str, Place]]()
        #: Links that are not obeyed.
        self._links = list[str]()
        #: Files of git that may name others: their paths, what they are used as, and their text.
        self._pointing = list[tuple[str, str, str]]()
        #: Folders that a file `.git` makes work trees.
        self._trees = set[str]()
        #: Looked at because something points there.
        self._visited = set[tuple[str, Place]]()

    def run(self) -> None:
        root = open_again(self._folder, OPEN_ROOT)
        try:
            self._walk(root, "", Place())
        finally:
            os.close(root)
        self._walk_deep()
        for target, place in list(self.found.targets.items()):
            self._visit(target, place)
        while self._pointing:
            self._follow_pointers(*self._pointing.pop())
        while self._links:
            self._follow_link(self._links.pop())

    def _walk(self, folder: int, path: str, place: Place, depth: int = 0) -> None:
        regain(folder, os.X_OK)
        with os.scandir(folder) as entries:
            listed = [
                (entry.name, entry.is_dir(follow_symlinks=False), entry.is_symlink())
                for entry in entries
            ]
        if not place.is_git and is_repository({name.casefold() for name, *_ in listed}):
            self.found.repositories.add(path)
            place = replace(place, is_repository=True)
        prefix = f"{path}/" if path else ""
        for name, is_folder, is_link in listed:
            if is_folder:
                with _skip_what_is_gone():
                    self._enter(folder, name, f"{prefix}{name}", place, depth)
            elif place.obeys(name, is_link=is_link):
                with _skip_what_is_gone():
                    self._note(folder, name, f"{prefix}{name}", place.enter(name))
            elif is_link:
                self._links.append(f"{prefix}{name}")

    def _enter(self, folder: int, name: str, path: str, place: Place, depth: int) -> None:
        below = place.enter(name)
        in_git = place.is_git or place.is_repository
        if name in SKIPPED_FOLDERS or (in_git and name == GIT_OBJECTS):
            return
        if below.is_git and not place.is_git:
            self.found.repositories.add(path)
        if depth >= _MAX_OPEN:
            if len(path.encode(*_AS_STORED)) < MAX_PATH_BYTES:
                self._deep.append((path, below))
            return
        try:
            opened = open_again(name, OPEN_FOLDER, folder)
            try:
                self._walk(opened, path, below, depth + 1)
            finally:
                os.close(opened)
        except PermissionError:
            # One that belongs to another user is watched as a whole.
            self._note(folder, name, path, below)

    def _walk_deep(self) -> None:
        while self._deep:
            path, place = self._deep.pop()
            with _skip_what_is_gone(), open_folder(self._folder, path) as opened:
                self._walk(opened, path, place)

    def _note(self, folder: int, name: str, path: str, used_as: Place) -> None:
        if path in self.found.files:
            return
        state = self._read(folder, name, path)
        if state is None:
            return
        self.found.files[path] = state
        if self._known is not None:
            return
        if state.is_link:
            self._aim(path, state.text, used_as)
        elif state.is_file and used_as.name in POINTING_FILES:
            self._pointing.append((path, used_as.name, state.text))
            if used_as.name == GIT_FOLDER:
                self._trees.add(_parent(path))

    def _read(self, folder: int, name: str, path: str) -> FileState | None:
        known = None if self._known is None else self._known.files.get(path)
        limit = min(MAX_WATCHED_BYTES, self._left)
        if known is not None:
            limit = max(limit, known.size) if known.is_whole else len(known.data)
        state = FileState.read(folder, name, limit=limit)
        if state is not None and state == known:
            return known
        self._left -= 0 if state is None else len(state.data)
        self._left = max(self._left, 0)
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
        path = os.path.join(self._folder, base, word)  # noqa: PTH118
        return os.path.lexists(path) and not os.path.isdir(path)  # noqa: PTH112

    def _aim(self, path: str, target: str, used_as: Place) -> None:
        """Watch what a file at a path points to, and the links on the way."""
        real, links = self._resolve(_parent(path), target)
        for link in links:
            self._watch(link, Place())
        if real is None:
            return
        if f"{path}/".startswith(f"{real}/" if real else ""):
            if used_as.name != GIT_FOLDER or Place.at(real).is_git:
                # Not everything, if it points to a folder that it lies in.
                return
            # It shares the settings of that folder; the rest there is not git's.
            used_as = Place(is_repository=True)
        self._watch(real, used_as)

    def _watch(self, path: str, used_as: Place) -> None:
        if path not in self.found.targets:
            self.found.targets[path] = used_as
            self._visit(path, used_as)

    def _follow_link(self, path: str) -> None:
        """Look at the target of a link that leads to where no walk goes by itself."""
        with suppress(OSError):
            target = str((self._folder / path).readlink())
            real, _ = self._resolve(_parent(path), target)
            if real and is_skipped(real):
                self._visit(real, Place.at(_parent(real)).enter(real.rpartition("/")[2]))

    def _visit(self, path: str, used_as: Place) -> None:
        if (path, used_as) in self._visited:
            return
        self._visited.add((path, used_as))
        parts = path.split("/")
        with _skip_what_is_gone():
            for number, part in enumerate(parts[:-1], 1):
                here = "/".join(parts[:number])
                if not self._is_folder(here, part):
                    return
            with open_folder(self._folder, _parent(path)) as opened:
                status = stat_entry(opened, parts[-1] or ".")
                was_link = self._known is not None and self._known.files.get(path, FOLDER).is_link
                if status is None or was_link or not stat.S_ISDIR(status.st_mode):
                    self._note(opened, parts[-1], path, used_as)
                elif used_as.may_hold_obeyed or is_skipped(path):
                    with open_folder(self._folder, path) as below:
                        self._walk(below, path, used_as)
        self._walk_deep()

    def _is_folder(self, path: str, name: str) -> bool:
        with open_folder(self._folder, _parent(path)) as parent:
            status = stat_entry(parent, name)
            if status is not None and stat.S_ISDIR(status.st_mode):
                self.found.files.setdefault(path, FOLDER)
                return True
            self._note(parent, name, path, Place())
            return False

    def _resolve(self, base: str, target: str) -> tuple[str | None, Sequence[str]]:
        """Return where a path leads in the workspace, and the links on the way."""
        done, left, links = base.split("/") if base else [], deque[str](), list[str]()
        while True:
            if target.startswith("/"):
                inside = [root for root in self._roots if Path(target).is_relative_to(root)]
                if not inside:
                    return None, links
                target, done = str(Path(target).relative_to(inside[0])), []
            left.extendleft(reversed(target.split("/")))
            target = ""
            while left and not target:
                part = left.popleft()
                if part == ".." and not done:
                    return None, links
                if part == "..":
                    done.pop()
                elif part not in ("", "."):
                    done.append(part)
                    with suppress(OSError, ValueError):
                        target = str(self._folder.joinpath(*done).readlink())
            if not target:
                return "/".join(done), links
            links.append("/".join(done))
            done.pop()
            if len(links) > _MAX_LINKS:
                return None, links


@contextmanager
def open_folder(root: Path, path: str) -> Iterator[int]:
    """Open a folder through no link, however deep it lies."""
    opened = open_again(root, OPEN_ROOT)
    try:
        for part in path.split("/") if path else ():
            below = open_again(part, OPEN_FOLDER, opened)
            os.close(opened)
            opened = below
        yield opened
    finally:
        os.close(opened)


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


def is_skipped(path: str) -> bool:
    """Return whether only what links lead to is looked at there."""
    parts = path.split("/")
    return not SKIPPED_FOLDERS.isdisjoint(parts) or GIT_OBJECTS in parts


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
