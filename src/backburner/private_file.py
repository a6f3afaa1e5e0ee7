"""Files with secrets: readable by their owner only, and written completely or not at all."""

import fcntl
import glob
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ENDING = ".part"


def write_private_file(path: Path, chunks: Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file with mode 0600; without `overwrite`, raise FileExistsError if it exists."""
    with draft_file(path) as draft:
        with draft.open("r+b") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        if overwrite:
            draft.replace(path)
        else:
            # Unlike a rename, a hard link never replaces an existing file.
            path.hardlink_to(draft)


@contextmanager
def draft_file(path: Path) -> Iterator[Path]:
    """Create an empty file beside `path` with mode 0600, and remove it afterwards.

    It is locked while it is in use, so that drafts of killed processes can be told and removed.
    """
    remove_abandoned(path)
    handle, draft = _create_locked(path)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
        os.close(handle)


def remove_abandoned(path: Path) -> None:
    """Remove the drafts of `path` that no process uses any more."""
    for draft in path.parent.glob(f".{glob.escape(path.name)}.????????{_ENDING}"):
        # It is in use, or gone, or somebody else's.
        with suppress(OSError):
            _remove_unlocked(draft)


def _create_locked(path: Path) -> tuple[int, Path]:
    while True:
        # `mkstemp` creates the file with mode 0600, so no other user can read it at any time.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=_ENDING)
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Another process may have removed it before it was locked.
        if os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _remove_unlocked(draft: Path) -> None:
    handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft.unlink()
    finally:
        os.close(handle)
