"""Watches the files of a workspace that other programs obey, around each command.

What a command changed in them is kept aside, and the files are put back. With approval a change is
made again, unless the file is no longer what it was put back to. What may be an edit of the user is
kept aside too, but put back only with approval. Blocking: call in threads.
"""

import difflib
import errno
import hashlib
import json
import os
import secrets
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from backburner.core.errors import BadRequest, Conflict, NotFound
from backburner.core.obeyed_files import (
    adds_plain_settings,
    is_obeyed,
    plain_settings,
    repository_of,
)
from backburner.core.shown_call import excerpt
from backburner.core.validation import escape_hidden
from backburner.tools.files import replace_file
from backburner.tools.workspace_paths import OPEN_FOLDER, explain_errors, open_parent, stat_entry

#: Nobody works in folders that lie deeper.
MAX_DEPTH = 64
#: Of a file that is kept, or put back.
MAX_WATCHED_BYTES = 2**22
#: Folders with very many files, none of which is obeyed where it lies.
SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "site-packages"})
#: The same, of a repository.
GIT_OBJECTS = "objects"

#: Names of files that are no text.
_AS_STORED = ("utf-8", "surrogateescape")
_OPEN_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class FileState:
    """The content of a path: a file, a link, or something else without data."""

    mode: int
    size: int
    #: Of a file, or the target of a link; of a large file its beginning.
    data: bytes

    @property
    def is_link(self) -> bool:
        return stat.S_ISLNK(self.mode)

    @property
    def is_whole(self) -> bool:
        return not stat.S_ISREG(self.mode) or self.size == len(self.data)

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace")

    @classmethod
    def read(cls, folder: int, name: str) -> Self | None:
        status = stat_entry(folder, name)
        if status is None:
            return None
        data = b""
        if stat.S_ISLNK(status.st_mode):
            data = os.fsencode(os.readlink(name, dir_fd=folder))
        elif stat.S_ISREG(status.st_mode):
            # Of a file that belongs to another user, we know that it is there.
            with suppress(PermissionError), os.fdopen(_open(name, _READ, folder), "rb") as file:
                data = file.read(MAX_WATCHED_BYTES)
                status = os.fstat(file.fileno())
        size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
        return cls(status.st_mode, size, data)

    def write(self, folder: int, name: str) -> None:
        if self.is_link:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            os.symlink(self.data, name, dir_fd=folder)
        else:
            replace_file(folder, name, self.data, self.mode & 0o777)


@dataclass(frozen=True, slots=True)
class Snapshot:
    files: dict[str, FileState] = field(default_factory=dict)
    #: The folders of repositories.
    repositories: set[str] = field(default_factory=set)

    def digest(self) -> str:
        """Hash all of it; the sizes keep apart what stands side by side."""
        digest = hashlib.sha256("\0".join(sorted(self.repositories)).encode(*_AS_STORED))
        for path, state in sorted(self.files.items()):
            facts = f"\0{path}\0{state.mode} {state.size} {len(state.data)}\0"
            digest.update(facts.encode(*_AS_STORED))
            digest.update(state.data)
        return digest.hexdigest()

    def to_json(self) -> str:
        files = {path: _state_to_json(state) for path, state in self.files.items()}
        return json.dumps({"files": files, "repositories": sorted(self.repositories)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        value = json.loads(text)
        files = {path: _state_from_json(state) for path, state in value["files"].items()}
        return cls(files, set(value["repositories"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChange:
    """A change that was put back, and can be made again."""

    id: str
    path: str
    #: What it was put back to; None: no file.
    old: FileState | None
    new: FileState

    def show(self, *, happened: bool = False) -> str:
        """Show it as a difference: one to be made, or one that has happened."""
        old = "" if self.old is None else self.old.text
        verb = "Create" if self.old is None else "Change"
        shown = f"{self._show_name(self.new)}:\n{show_difference(old, self.new.text)}"
        return f"{verb}d: the {shown}" if happened else f"{verb} the {shown}"

    def show_undo(self) -> str:
        """Show what putting it back does to what is there now."""
        if self.old is None:
            what = f"Remove the {self._show_name(self.new)}, which was not there before"
            return f"{what}:\n{show_difference(self.new.text, '')}"
        difference = show_difference(self.new.text, self.old.text)
        return f"Put back the {self._show_name(self.old)}:\n{difference}"

    def _show_name(self, state: FileState) -> str:
        if state.is_link:
            return f"link {show_path(self.path)}"
        return f"file {show_path(self.path)}{' (executable)' if state.mode & 0o111 else ''}"


@dataclass(frozen=True, slots=True)
class ObeyedFiles:
    folder: Path
    #: Where changes are kept, out of reach of commands.
    kept: Path

    def scan(self) -> Snapshot:
        found = Snapshot()
        with explain_errors("."):
            root = _open(self.folder, _OPEN_ROOT)
            try:
                _scan(root, "", found)
            finally:
                os.close(root)
        return found

    def put_back(self, before: Snapshot) -> Sequence[KeptChange]:
        """Put back what was made or changed since, and keep the changes.

        What was deleted stays so: the file is obeyed no longer.
        """
        return [change for change in self._compare(before) if self._put_back(change)]

    def keep_changes(self, before: Snapshot, *, source: str) -> Sequence[KeptChange]:
        """Keep what was made or changed since, and leave the files as they are.

        The same change is kept once for each source.
        """
        changes = [
            replace(change, id=_derive_id(source, change)) for change in self._compare(before)
        ]
        for change in changes:
            self._keep(change)
        return changes

    def _compare(self, before: Snapshot) -> Sequence[KeptChange]:
        changes = []
        for path, new in sorted(self.scan().files.items()):
            old, settings = before.files.get(path), _is_settings(path)
            if settings and old is None and repository_of(path) not in before.repositories:
                # A new repository stays usable.
                data = plain_settings(new.text).encode()
                old = replace(new, data=data, size=len(data))
            is_plain = settings and adds_plain_settings(old.text if old else "", new.text)
            if new != old and not is_plain:
                change_id = f"change-{secrets.token_hex(8)}"
                changes.append(KeptChange(id=change_id, path=path, old=old, new=new))
        return changes

    def read_text(self, path: str) -> str:
        """Read a file, or nothing where there is none."""
        with open_parent(self.folder, path) as (parent, name):
            state = FileState.read(parent, name)
        return "" if state is None else state.text

    def find(self, change_id: str) -> KeptChange:
        file = self.kept / f"{change_id}.json"
        if "/" in change_id or not file.is_file():
            raise NotFound("This change is not kept, or has been made already.")
        return _from_json(json.loads(file.read_text(encoding="ascii")))

    def make_again(self, change_id: str) -> str:
        change = self.find(change_id)
        if not change.new.is_whole:
            raise BadRequest(f"{change.path} was too large to be kept.")
        with _open_parent(self.folder, change.path) as (parent, name):
            if FileState.read(parent, name) != change.old:
                raise Conflict(
                    f"{change.path} has changed since, so the change was not made.",
                    hint="Read the file, and write what it should be now.",
                )
            change.new.write(parent, name)
        (self.kept / f"{change_id}.json").unlink()
        return f"{change.path} is now as the command had left it."

    def undo(self, change_id: str) -> str:
        """Put a file back that was left as it was; the change stays kept."""
        change = self.find(change_id)
        if not self._put_back(change):
            raise Conflict(
                f"{change.path} has changed since, or was too large, so it was not put back.",
                hint="Read the file, and write what it should be now.",
            )
        if change.old is None:
            return f"{change.path} was removed: it was not there before the command."
        return f"{change.path} is now as it was before the command."

    def _keep(self, change: KeptChange) -> None:
        self.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(_to_json(change))
        (self.kept / f"{change.id}.json").write_text(text, encoding="ascii")

    def _put_back(self, change: KeptChange) -> bool:
        """Return False if it cannot be, or somebody else has changed it since: theirs stays."""
        with _open_parent(self.folder, change.path) as (parent, name):
            if FileState.read(parent, name) != change.new:
                return False
            if change.old is not None and not change.old.is_whole:
                return False
            self._keep(change)
            if change.old is not None:
                change.old.write(parent, name)
            else:
                os.unlink(name, dir_fd=parent)
        return True


@contextmanager
def _open_parent(folder: Path, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a path through no link; its last part may be one."""
    *folders, name = path.split("/")
    with explain_errors(path), ExitStack() as opened:
        parent = _open(folder, _OPEN_ROOT)
        opened.callback(os.close, parent)
        for part in folders:
            with suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=parent)
            parent = _open(part, OPEN_FOLDER, parent)
            opened.callback(os.close, parent)
        _regain(parent, os.W_OK | os.X_OK)
        yield parent, name


def _open(path: str | Path, flags: int, folder: int | None = None) -> int:
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


def _regain(folder: int, access: int) -> None:
    """Take back rights to an open folder that a command has taken away."""
    if not os.access(".", access, dir_fd=folder):
        os.fchmod(folder, stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)


def show_path(path: str) -> str:
    """Show it on one line, so that no part of it can be taken for a line of ours."""
    return escape_hidden(path).replace("\n", "\\n").replace("\t", "\\t")


def show_difference(old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
    # The first two would name files.
    shown = "\n".join(f"    {escape_hidden(line)}" for line in list(lines)[2:])
    return excerpt(shown) or "    (the same lines)"


def _scan(folder: int, place: str, snapshot: Snapshot) -> None:
    _regain(folder, os.X_OK)
    with os.scandir(folder) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in names:
        path = f"{place}/{name}" if place else name
        with _skip_what_is_gone():
            if is_folder and not _is_skipped(path, name):
                if repository_of(f"{path}/config") == path:
                    snapshot.repositories.add(path)
                # One that belongs to another user is watched as a whole.
                with suppress(PermissionError):
                    _scan_below(folder, name, path, snapshot)
                    continue
            elif is_folder or not is_obeyed(path):
                continue
            state = FileState.read(folder, name)
            if state is not None:
                snapshot.files[path] = state


def _scan_below(folder: int, name: str, path: str, snapshot: Snapshot) -> None:
    below = _open(name, OPEN_FOLDER, folder)
    try:
        _scan(below, path, snapshot)
    finally:
        os.close(below)


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


def _is_skipped(path: str, name: str) -> bool:
    is_objects = name == GIT_OBJECTS and repository_of(path) is not None
    return is_objects or name in SKIPPED_FOLDERS or path.count("/") >= MAX_DEPTH


def _is_settings(path: str) -> bool:
    return path == f"{repository_of(path)}/config"


def _derive_id(source: str, change: KeptChange) -> str:
    # With the content: what was approved is what was shown.
    content = Snapshot({change.path: change.new}).digest()
    return f"change-{hashlib.sha256(f'{source} {content}'.encode()).hexdigest()[:16]}"


def _to_json(change: KeptChange) -> dict[str, Any]:
    old, new = (state and _state_to_json(state) for state in (change.old, change.new))
    return {"id": change.id, "path": change.path, "old": old, "new": new}


def _from_json(value: dict[str, Any]) -> KeptChange:
    old = value["old"] and _state_from_json(value["old"])
    new = _state_from_json(value["new"])
    return KeptChange(id=value["id"], path=value["path"], old=old, new=new)


def _state_to_json(state: FileState) -> list[Any]:
    return [state.mode, state.size, b64encode(state.data).decode()]


def _state_from_json(value: list[Any]) -> FileState:
    mode, size, data = value
    return FileState(mode, size, b64decode(data))
