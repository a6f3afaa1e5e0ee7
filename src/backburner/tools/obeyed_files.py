"""Watches the files of a workspace that other programs obey, around each command.

What a command changed in them is kept aside, and the files are put back. With approval a change is
made again, unless the file is no longer what it was put back to. What may be an edit of the user is
kept aside too, but put back only with approval. What cannot be kept is renamed, so that nobody
obeys it. Blocking: call in threads.
"""

import difflib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog

from backburner.core.errors import (
    BackburnerError,
    BadRequest,
    Conflict,
    MachineFailed,
    NotAllowed,
    NotFound,
)
from backburner.core.obeyed_files import (
    COMMON_FOLDER,
    Place,
    is_plain_change,
    is_repository,
    plain_settings,
)
from backburner.core.shown_call import excerpt
from backburner.core.validation import escape_hidden
from backburner.tools.command_records import APPROVED, find_baseline, lock_records
from backburner.tools.files import WrittenFile, read_private, regain_rights, write_text
from backburner.tools.obeyed_scan import (
    FOLDER,
    MAX_WATCHED_BYTES,
    FileState,
    Snapshot,
    is_skipped,
    open_again,
    regain,
    scan,
)
from backburner.tools.workspace_paths import OPEN_FOLDER, explain_errors, open_parent, open_root

#: After one command; what is more is renamed.
MAX_CHANGES = 50
#: Of a difference that is computed; others are shown as what was there, and what is.
MAX_COMPARED_LINES = 100
MAX_COMPARED_CHARS = 10_000
#: Of each side of such a difference.
_SHOWN_CHARS = 4_000
#: Longer names may be too long with an ending.
_ASIDE_CHARS = 40

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptChange:
    """A change that was put back, and can be made again."""

    id: str
    path: str
    #: What it was put back to; None: no file.
    old: FileState | None
    new: FileState
    #: The name in its folder that the file now has, unless its content is kept.
    aside: str | None = None
    is_kept: bool = True

    @property
    def restored(self) -> FileState | None:
        """The state of the file once it is put back."""
        return self.old if self.old is not None and _can_restore(self.old) else None

    def show(self, *, happened: bool = False) -> str:
        """Show it as a difference: one to be made, or one that has happened."""
        old = "" if self.old is None else self.old.text
        verb = "Create" if self.old is None else "Change"
        shown = f"{self._show_name(self.new)}:\n{show_difference(old, self.new.text)}"
        if not self.new.is_whole:
            seen = f"{len(self.new.data):,} of {self.new.size:,} bytes"
            shown += f"\n    [Only {seen} are shown: it is too large, or cannot be read.]"
        if self.aside is not None:
            shown += f"\n    [Its name is now {show_path(self.aside)}.]"
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
        regain_rights(self.folder)
        return scan(self.folder)

    def put_back(self, before: Snapshot) -> Sequence[KeptChange]:
        """Put back what was made or changed since, and keep the changes.

        What was deleted stays so: the file is obeyed no longer.
        """
        done, failed = list[KeptChange](), list[str]()
        for number, found in enumerate(self._compare(before)):
            change = found if number < MAX_CHANGES else _without_record(found)
            # Each by itself: what is wrong with one keeps no other one there.
            try:
                put_back = self._put_back(change)
            except (BackburnerError, OSError) as error:
                _log.error("obeyed_file.not_put_back", path=change.path, error=repr(error))
                failed.append(change.path)
                continue
            done += [put_back] if put_back is not None else []
        if failed:
            raise MachineFailed(f"Could not be put back: {', '.join(failed)}. Look at these files.")
        return done

    def keep_changes(self, before: Snapshot, *, source: str) -> Sequence[KeptChange]:
        """Keep what was made or changed since, and leave the files as they are.

        The same change is kept once for each source.
        """
        changes = [
            replace(change, id=_derive_id(source, change), aside=None)
            for change in self._compare(before)
        ]
        for change in changes[:MAX_CHANGES]:
            self._keep(change)
        return changes

    def write_approved(self, path: str, content: str) -> WrittenFile:
        """Write a file as it was shown: with the mode that it had before commands that run now."""
        with lock_records(self.kept):
            before = find_baseline(self.kept)
            modes = None
            if before is not None:
                files = before.files.items()
                modes = {path: state.mode & 0o777 for path, state in files if state.is_file}
            written = write_text(self.folder, path, content, guard=self, modes=modes)
            mode, data = stat.S_IFREG | written.mode, written.data
            self._approve(written.path, FileState(mode, len(data), data))
        return written

    def _approve(self, path: str, state: FileState) -> None:
        """Remember what a file has become, so that no command that runs now puts it back.

        That is what was shown, and not what is there: a command may have changed it since.
        """
        (self.kept / f"{APPROVED}{_hash(path, state)}").touch(mode=0o600)

    def check_shape(self, path: str) -> None:
        """Refuse to make what git would take its folder for a repository with."""
        folder, _, name = path.rpartition("/")
        names = self._list_names(folder)
        if is_repository({*names, name.casefold()}) and not is_repository(names):
            raise _guarded("With it, git would take its folder for a repository.")

    def check_unguarded(self, path: str) -> None:
        """Refuse to write a file, at a path without links, that is obeyed but not by its name."""
        parts, place = path.split("/"), Place()
        for number, part in enumerate(parts):
            names = self._list_names("/".join(parts[:number]))
            place = replace(place, is_repository=place.is_repository or is_repository(names))
            if number == len(parts) - 1 and place.obeys(part):
                raise _guarded("Other programs obey it.")
            place = place.enter(part)
        found = self.scan()
        above = found.find_place("/".join(parts[:-1]))
        is_obeyed_there = above is not None and above.obeys(parts[-1])
        if path in found.files or path in found.targets or is_obeyed_there:
            raise _guarded("A file that other programs obey points to it.")

    def _list_names(self, path: str) -> set[str]:
        """List a folder, at a path without links; empty if there is none."""
        with suppress(BadRequest, NotFound), open_parent(self.folder, path or ".") as (above, name):
            folder = os.open(name, OPEN_FOLDER, dir_fd=above)
            try:
                with os.scandir(folder) as entries:
                    return {entry.name.casefold() for entry in entries}
            finally:
                os.close(folder)
        return set()

    def _compare(self, before: Snapshot) -> Sequence[KeptChange]:
        regain_rights(self.folder)
        now = scan(self.folder, before)
        shapes = [
            path for path in now.repositories - before.repositories if not Place.at(path).is_git
        ]
        changes = []
        for path, new in sorted(now.files.items()):
            old = before.files.get(path)
            if new in (old, FOLDER) or self._is_approved(path, new):
                continue
            # It may have been there before git took its folder for a repository.
            is_new_shape = any(path.startswith(f"{shape}/" if shape else "") for shape in shapes)
            folder, _, name = path.rpartition("/")
            settings = name.casefold() == "config" and folder in now.repositories
            is_new = settings and old is None and folder not in before.repositories
            if is_new and not is_new_shape and new.is_file and new.is_whole:
                # A new repository stays usable.
                data = plain_settings(new.text).encode()
                old = replace(new, data=data, size=len(data))
            if (settings or name.casefold() != "config") and _is_plain(path, old, new):
                continue
            must_move = not new.is_whole or (old is None and is_new_shape)
            change = KeptChange(
                id=f"change-{secrets.token_hex(8)}",
                path=path,
                old=old,
                new=new,
                aside=_name_aside(path) if must_move else None,
            )
            changes.append(change)
        return changes

    def _is_approved(self, path: str, state: FileState) -> bool:
        with suppress(OSError):
            return (self.kept / f"{APPROVED}{_hash(path, state)}").exists()
        return False

    def read_text(self, path: str) -> str:
        """Read a file, or nothing where there is none."""
        with suppress(NotFound), open_parent(self.folder, path) as (parent, name):
            state = FileState.read(parent, name)
            return "" if state is None else state.text
        return ""

    def find(self, change_id: str) -> KeptChange:
        file = self.kept / f"{change_id}.json"
        if "/" in change_id or not file.is_file():
            raise NotFound("This change is not kept, or has been made already.")
        return _from_json(json.loads(read_private(file)))

    def make_again(self, change_id: str) -> str:
        change = self.find(change_id)
        if not change.new.is_whole and change.aside is None:
            raise BadRequest(f"{change.path} was too large to be kept.")
        with lock_records(self.kept):
            if not change.new.is_whole and find_baseline(self.kept) is not None:
                # Nobody could tell what they do to the part of it that was not read.
                raise Conflict("Commands run in this folder.", hint="Try it when they have ended.")
            self._approve(change.path, self._make_again(change))
        (self.kept / f"{change_id}.json").unlink()
        return f"{change.path} is now as the command had left it."

    def _make_again(self, change: KeptChange) -> FileState:
        """Return what the file is meant to be now."""
        with _open_parent(self.folder, change.path) as (parent, name):
            if FileState.read(parent, name) != change.restored:
                raise _changed_since(change.path)
            if change.aside is None:
                change.new.write(parent, name)
                mode = stat.S_IFMT(change.new.mode) | change.new.mode & 0o777
                return replace(change.new, mode=mode)
            if _read_like(change.new, parent, change.aside) != change.new:
                raise _changed_since(change.aside)
            os.rename(change.aside, name, src_dir_fd=parent, dst_dir_fd=parent)
            return change.new

    def undo(self, change_id: str) -> str:
        """Put a file back that was left as it was; the change stays kept."""
        change = self.find(change_id)
        if not change.new.is_whole:
            change = replace(change, aside=_name_aside(change.path))
        put_back = self._put_back(change)
        if put_back is None:
            raise _changed_since(change.path)
        moved = f" What was there is now {put_back.aside}." if put_back.aside else ""
        if change.old is None:
            return f"{change.path} was removed: it was not there before the command.{moved}"
        if change.restored is None:
            return f"{change.path} was removed: it cannot be put back.{moved}"
        return f"{change.path} is now as it was before the command.{moved}"

    def _keep(self, change: KeptChange) -> None:
        self.kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        text = json.dumps(_to_json(change))
        (self.kept / f"{change.id}.json").write_text(text, encoding="ascii")

    def _put_back(self, change: KeptChange) -> KeptChange | None:
        """Return what was done; None if somebody else has changed it since: theirs stays."""
        with _open_parent(self.folder, change.path) as (parent, name):
            if _read_like(change.new, parent, name) != change.new:
                return None
            if change.aside is None:
                try:
                    self._keep(change)
                    _restore(change, parent, name)
                except OSError as error:
                    _log.warning("obeyed_file.not_kept", path=change.path, error=repr(error))
                else:
                    return change
            return self._set_aside(change, parent, name)

    def _set_aside(self, change: KeptChange, parent: int, name: str) -> KeptChange:
        """Rename a file, which needs no room, and put back what was there if there is room."""
        aside = change.aside or _name_aside(change.path)
        os.rename(name, aside, src_dir_fd=parent, dst_dir_fd=parent)
        # With a new stamp.
        new = _read_like(change.new, parent, aside) or change.new
        change = replace(change, aside=aside, new=new)
        try:
            if change.restored is not None:
                change.restored.write(parent, name)
            if change.is_kept:
                self._keep(change)
        except OSError as error:
            _log.warning("obeyed_file.not_kept", path=change.path, error=repr(error))
            return replace(change, is_kept=False)
        return change


def _without_record(change: KeptChange) -> KeptChange:
    return replace(change, aside=_name_aside(change.path), is_kept=False)


def _can_restore(state: FileState) -> bool:
    return state.is_whole and state != FOLDER


def _restore(change: KeptChange, parent: int, name: str) -> None:
    if change.restored is not None:
        change.restored.write(parent, name)
    else:
        os.unlink(name, dir_fd=parent)


def _read_like(state: FileState, folder: int, name: str) -> FileState | None:
    """Read a file as far as a state of it was read."""
    limit = MAX_WATCHED_BYTES if state.is_whole else len(state.data)
    return FileState.read(folder, name, limit=limit)


def _is_plain(path: str, old: FileState | None, new: FileState) -> bool:
    if not (new.is_file and new.is_whole):
        return False
    if old is not None and not (old.is_file and old.is_whole):
        return False
    if path.casefold().endswith(f"/{COMMON_FOLDER}") and is_skipped(path):
        # The folder that it names is looked at only if a link leads there.
        return False
    return is_plain_change(path, "" if old is None else old.text, new.text)


def _name_aside(path: str) -> str:
    name = path.rpartition("/")[2]
    return f"{name[:_ASIDE_CHARS]}.set-aside-{secrets.token_hex(4)}"


def _guarded(reason: str) -> NotAllowed:
    # Without the path: a link may have led to it, and names of files are outside text.
    hint = "Change it with run_command; the user is then asked."
    return NotAllowed(f"The file was not written. {reason}", hint=hint)


def _changed_since(path: str) -> Conflict:
    return Conflict(
        f"{path} has changed since, so it was left as it is.",
        hint="Read the file, and write what it should be now.",
    )


@contextmanager
def _open_parent(folder: Path, path: str) -> Iterator[tuple[int, str]]:
    """Open the folder of a path through no link; its last part may be one."""
    *folders, name = path.split("/")
    with explain_errors(path):
        parent = open_root(folder, opener=open_again)
        try:
            for part in folders:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=parent)
                below = open_again(part, OPEN_FOLDER, parent)
                os.close(parent)
                parent = below
            regain(parent, os.W_OK | os.X_OK)
            yield parent, name
        finally:
            os.close(parent)


def show_path(path: str) -> str:
    """Show it on one line, so that no part of it can be taken for a line of ours."""
    return escape_hidden(path).replace("\n", "\\n").replace("\t", "\\t")


def show_difference(old: str, new: str) -> str:
    """Show what has changed, in a time that grows with the texts and not faster."""
    longest = max(len(old), len(new))
    if longest <= MAX_COMPARED_CHARS and _is_short(old) and _is_short(new):
        compared = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=1)
        # The first two would name files.
        lines = list(compared)[2:]
    else:
        lines = list(_replaced_lines(old, new))
    shown = "\n".join(f"    {escape_hidden(line)}" for line in lines)
    return excerpt(shown) or "    (the same lines)"


def _is_short(text: str) -> bool:
    return len(text.splitlines()) <= MAX_COMPARED_LINES


def _replaced_lines(old: str, new: str) -> Iterator[str]:
    begin = _common_chars(old, new)
    begin = old.rfind("\n", 0, begin) + 1
    old, new = old[begin:], new[begin:]
    end = _common_chars(old[::-1], new[::-1])
    # Whole lines only.
    common = old[len(old) - end :]
    end = len(common.partition("\n")[2])
    for sign, text in (("-", old[: len(old) - end]), ("+", new[: len(new) - end])):
        hidden = len(text) - _SHOWN_CHARS
        parts = [text]
        if hidden > 0:
            half = _SHOWN_CHARS // 2
            parts = [text[:half], f"[{hidden:,} characters are hidden here]", text[-half:]]
        yield from (f"{sign}{line}" for part in parts for line in part.splitlines())


def _common_chars(one: str, other: str) -> int:
    """Count the characters with which both begin."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _derive_id(source: str, change: KeptChange) -> str:
    # With the content: what was approved is what was shown.
    content = _hash(change.path, change.new)
    return f"change-{hashlib.sha256(f'{source} {content}'.encode()).hexdigest()[:16]}"


def _hash(path: str, state: FileState) -> str:
    return Snapshot({path: state}).digest()


def _to_json(change: KeptChange) -> dict[str, Any]:
    old, new = (state and state.to_json() for state in (change.old, change.new))
    return {"id": change.id, "path": change.path, "old": old, "new": new, "aside": change.aside}


def _from_json(value: dict[str, Any]) -> KeptChange:
    old = value["old"] and FileState.from_json(value["old"])
    new = FileState.from_json(value["new"])
    aside = value.get("aside")
    return KeptChange(id=value["id"], path=value["path"], old=old, new=new, aside=aside)
