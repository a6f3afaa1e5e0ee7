"""Reading and writing files of the workspace, within bounds. It blocks: call in threads."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from backburner.core.errors import BadRequest, TooLarge
from backburner.core.validation import check_text
from backburner.ports import MAX_SHOWN_CHARS
from backburner.tools.workspace_paths import found, status

MOST_WRITTEN = 400_000
MOST_LINES = 2_000
#: How far into a file one gets.
MOST_PASSED = 200 * 2**20

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_lines(folder: Path, path: str, *, offset: int, limit: int) -> str:
    """Give some lines of a file, and a note where there are more."""
    with _opened(folder, path) as file:
        if b"\0" in file.read(2**13):
            raise BadRequest(f"{path} is not text.", hint="Look at it with run_command.")
        file.seek(0)
        return _excerpt(file, offset, limit)


def write_text(folder: Path, path: str, content: str) -> str:
    """Make or replace a file, wholly or not at all."""
    data = check_text("The content", content, limit=MOST_WRITTEN).encode()
    if len(data) > MOST_WRITTEN:
        raise TooLarge("The content", size=len(data), limit=MOST_WRITTEN)
    with found(folder, path, make=True) as (parent, name):
        before = status(parent, name)
        if before is not None:
            _check_is_file(path, before)
        mode = 0o644 if before is None else before.st_mode & 0o777
        _replace(parent, name, data, mode)
    return f"{'Made' if before is None else 'Replaced'} {path}: {len(data):,} bytes."


def _opened(folder: Path, path: str) -> IO[bytes]:
    with found(folder, path) as (parent, name):
        # Looked at before, because opening alone does something to some devices.
        seen = os.stat(name, dir_fd=parent, follow_symlinks=False)
        _check_is_file(path, seen)
        file = os.fdopen(os.open(name, _READ, dir_fd=parent), "rb")
        try:
            _check_is_file(path, os.fstat(file.fileno()))
        except BadRequest:
            file.close()
            raise
        return file


def _check_is_file(path: str, seen: os.stat_result) -> None:
    if stat.S_ISDIR(seen.st_mode):
        raise BadRequest(f"{path} is a folder.", hint="list_files shows what is in it.")
    if not stat.S_ISREG(seen.st_mode):
        raise BadRequest(f"{path} is not a file, but a device, a pipe or a socket.")


def _excerpt(file: IO[bytes], offset: int, limit: int) -> str:
    kept = bytearray()
    number = 1
    for piece in _pieces(file):
        if number >= offset + limit or len(kept) + len(piece) > MAX_SHOWN_CHARS:
            break
        if number >= offset:
            kept += piece
        number += piece.endswith(b"\n")
    else:
        return _shown(kept) + _note_at_end(file, offset, number)
    if not kept.endswith(b"\n"):
        return (
            f"{_shown(kept)}\n[Line {number} is too long to show whole; run_command can show parts"
            f" of it. The next line has offset {number + 1}.]"
        )
    return f"{_shown(kept)}[There is more, from offset {number} on.]"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines, or parts of lines that are long."""
    while file.tell() < MOST_PASSED and (piece := file.readline(MAX_SHOWN_CHARS)):
        yield piece


def _note_at_end(file: IO[bytes], offset: int, number: int) -> str:
    if file.tell() >= MOST_PASSED:
        return "[What follows is too far into the file to be shown.]"
    if file.tell() == 0:
        return "[The file is empty.]"
    return f"[The file has fewer than {offset} lines.]" if number < offset else ""


def _shown(data: bytes | bytearray) -> str:
    return data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _replace(parent: int, name: str, data: bytes, mode: int) -> None:
    new = f".new-{secrets.token_hex(8)}"
    try:
        with os.fdopen(os.open(new, _WRITE, 0o600, dir_fd=parent), "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        os.replace(new, name, src_dir_fd=parent, dst_dir_fd=parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(new, dir_fd=parent)
        raise
