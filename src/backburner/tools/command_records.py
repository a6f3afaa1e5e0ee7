"""Records of commands under way: what was there before each, so that it outlives this process.

A record is locked by the process that runs its command. One that nobody has locked was left behind:
nobody has compared the files since. Blocking: call in threads.
"""

import fcntl
import json
import os
import secrets
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from backburner.core.errors import Conflict
from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import RunKind, Turn
from backburner.tools.files import open_private, read_private, regain_rights, replace_file
from backburner.tools.obeyed_scan import Snapshot
from backburner.tools.workspace_paths import explain_errors, stat_entry

RECORDS = "command-*.json"
#: Empty files, named by the states that the user has approved while commands run.
APPROVED = "approved-"
#: Named by their content: files that are obeyed rarely change between two commands.
_SNAPSHOTS = "before-*.json"
_LOCK = ".lock"
#: A record whose command was interrupted: whoever looks at it has locked it.
_LEFT = "left-"
#: Of writes that never ended.
_UNFINISHED = ".new-*"
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


class CommandRecord:
    """The record of one command, locked until this is released, or its process ends."""

    def __init__(self, file: Path, descriptor: int, before: Snapshot | None = None) -> None:
        self.file = file
        #: Of a command of ours.
        self.before = before or Snapshot()
        #: Runs by itself once nobody refers to this: a cancelled call forgets it.
        self.release = weakref.finalize(self, os.close, descriptor)

    def read(self) -> tuple[Turn, str, Snapshot, Path | None]:
        """Return whose command it was, its line, what was there before it, and its folder.

        None stands for the private workspace.
        """
        value = json.loads(read_private(self.file))
        user, conversation, run, epoch, kind = value["turn"]
        turn = Turn(UserId(user), ConversationId(conversation), RunId(run), epoch, RunKind(kind))
        before = read_private(self.file.with_name(value["before"]))
        folder = Path(value["folder"]) if "folder" in value else None
        return turn, value["line"], Snapshot.from_json(before), folder

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)
        _left_mark(self.file).unlink(missing_ok=True)
        self.release()


class FolderInUse(Conflict):
    """Other commands run in the folder that this one must not run beside."""


def record_command(
    kept: Path,
    scan: Callable[[], Snapshot],
    turn: Turn,
    line: str,
    *,
    network: bool = False,
    folder: str | None = None,
    signed_in: bool = False,
) -> CommandRecord:
    """Write the record of a command, and wait until it is on the disk.

    While other commands run, what was there before the first of them counts: what is there now may
    be theirs. Programs of a command with the network would obey it too, so it runs apart from those
    without; and programs with a sign-in run apart from both. `folder` is where it runs, unless in
    the private workspace.
    """
    with lock_records(kept) as records:
        running = _find_running(kept)
        if any(other.get("network", False) != network for other in running):
            raise _run_apart(network=network)
        if any(other.get("signed_in", False) != signed_in for other in running):
            raise FolderInUse(
                "Another command runs in this folder, and a program with a sign-in cannot run at"
                " the same time.",
                hint="Run it again when the other has ended.",
            )
        name = running[0]["before"] if running else None
        if name is not None:
            before = Snapshot.from_json(read_private(kept / name))
        else:
            for file in _list(kept, f"{APPROVED}*"):
                file.unlink(missing_ok=True)
            before = scan()
            name = f"before-{before.digest()}.json"
        if stat_entry(records, name) is None:
            _remove_unused(kept)
            replace_file(records, name, before.to_json().encode(), 0o600)
        content = {"turn": _to_list(turn), "line": line, "before": name, "network": network}
        content |= {"folder": folder} if folder else {}
        content |= {"signed_in": True} if signed_in else {}
        file = kept / f"command-{secrets.token_hex(8)}.json"
        record = _write(file, json.dumps(content), before)
        os.fsync(records)
    return record


def find_baseline(kept: Path) -> Snapshot | None:
    """Return what was there before the commands that run now, if there are any."""
    running = _find_running(kept)
    return Snapshot.from_json(read_private(kept / running[0]["before"])) if running else None


def left_behind(kept: Path) -> Sequence[CommandRecord]:
    """Find the records that no process has locked, and lock them."""
    if not _list(kept, RECORDS):
        return ()
    with lock_records(kept):
        found = (_try_to_lock(file) for file in sorted(_list(kept, RECORDS)))
        records = [record for record in found if record is not None]
        for record in records:
            _left_mark(record.file).touch(mode=0o600)
        return records


def _list(kept: Path, pattern: str) -> Sequence[Path]:
    """Find files by their names; where nobody may look, that is an error and not an empty list."""
    try:
        files = list(kept.iterdir())
    except FileNotFoundError:
        return ()
    except PermissionError:
        regain_rights(kept)
        files = list(kept.iterdir())
    return [file for file in files if fnmatch(file.name, pattern)]


def _left_mark(file: Path) -> Path:
    return file.with_name(f"{_LEFT}{file.stem}")


@contextmanager
def lock_records(kept: Path) -> Iterator[int]:
    """Keep others from beginning and ending commands, and from looking for them, meanwhile."""
    with explain_errors("the data folder"), ExitStack() as opened:
        regain_rights(kept)
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(kept, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, folder)
        lock = open_private(_LOCK, os.O_RDWR | os.O_CREAT, folder)
        opened.callback(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _find_running(kept: Path) -> Sequence[Mapping[str, Any]]:
    """Return the records of the commands that run now; they share a snapshot."""
    found = []
    for file in _list(kept, RECORDS):
        with suppress(FileNotFoundError, ValueError, LookupError):
            if not _left_mark(file).exists() and _try_to_lock(file) is None:
                found.append(json.loads(read_private(file)))
    return found


def _run_apart(*, network: bool) -> FolderInUse:
    here, other = ("without", "with it") if network else ("with", "without it")
    return FolderInUse(
        f"A command {here} the network runs in this folder, and one {other} cannot run at the same"
        " time.",
        hint="Run it again when the other has ended.",
    )


def _write(file: Path, content: str, before: Snapshot) -> CommandRecord:
    descriptor = os.open(file, _CREATE, 0o600)
    record = CommandRecord(file, descriptor, before)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with os.fdopen(descriptor, "wb", closefd=False) as opened:
            opened.write(content.encode())
        os.fsync(descriptor)
    except OSError:
        record.remove()
        raise
    return record


def _try_to_lock(file: Path) -> CommandRecord | None:
    with suppress(FileNotFoundError, BlockingIOError):
        # To write, or some network file systems do not lock it.
        descriptor = open_private(file, os.O_RDWR)
        record = CommandRecord(file, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its command may have ended just now.
        return record if os.fstat(descriptor).st_nlink else None
    return None


def _remove_unused(kept: Path) -> None:
    """Remove the snapshots that no record refers to, before a new one is written."""
    records = ""
    for file in _list(kept, RECORDS):
        # Commands end at any time.
        with suppress(FileNotFoundError):
            records += read_private(file)
    for file in (*_list(kept, _SNAPSHOTS), *_list(kept, _UNFINISHED)):
        if file.name not in records:
            file.unlink(missing_ok=True)


def _to_list(turn: Turn) -> list[str | int]:
    return [turn.user_id, turn.conversation_id, turn.run_id, turn.epoch, turn.kind.value]
