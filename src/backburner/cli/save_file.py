"""Keeps what a server sends in a file: all of it or nothing, for its owner alone."""

import os
from collections.abc import Iterable
from pathlib import Path

from backburner.core.errors import BadRequest, Conflict


def keep(pieces: Iterable[bytes], to: Path) -> str:
    """Write a file that was not there; say how it is called and how large it is."""
    part = to.with_name(f"{to.name}.part")
    if to.exists():
        raise _taken(to)
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 (it is a descriptor)
                file.writelines(pieces)
                file.flush()
                os.fsync(file.fileno())
            # Unlike a move, this never replaces what is there.
            to.hardlink_to(part)
        finally:
            part.unlink(missing_ok=True)
    except FileExistsError as error:
        raise _taken(Path(error.filename2 or error.filename)) from None
    except OSError as error:
        raise BadRequest(f"{to} cannot be written: {error.strerror}.") from None
    return f"{to} ({in_words(to.stat().st_size)})"


def in_words(size: int) -> str:
    return f"{size / 2**20:.1f} MB" if size >= 2**20 else f"{max(size // 2**10, 1)} KB"


def _taken(to: Path) -> Conflict:
    return Conflict(f"{to} is there already.", hint="Choose another name.")
