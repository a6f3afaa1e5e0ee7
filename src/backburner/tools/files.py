"""Read and write files of the workspace, within bounds. Blocking: call in threads."""

import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from backburner.core.content import image
from backburner.core.content.file import format_size
from backburner.core.errors import BadRequest, NotAllowed, NotFound, TooLarge
from backburner.core.obeyed_files import is_obeyed
from backburner.core.validation import check_text
from backburner.ports import MAX_SHOWN_CHARS, Blob
from backburner.tools.workspace_paths import (
    PASS_FOLDER,
    open_parent,
    open_real_parent,
    stat_entry,
)

MAX_WRITE_BYTES = 400_000
MAX_LINES = 2_000
#: Lines can be read up to this offset.
MAX_OFFSET_BYTES = 200 * 2**20

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read_lines(folder: Path, path: str, *, offset: int, limit: int) -> str:
    """Return some lines of a file, with a note if there are more."""
    with _open(folder, path) as file:
        if b"\0" in file.read(2**13):
            raise BadRequest(f"{path} is not text.", hint="Inspect it with run_command.")
        file.seek(0)
        return _excerpt(file, offset, limit)


def read_image(folder: Path, path: str) -> Blob | None:
    """Read a file that is an image a model may be shown; None: it is another file."""
    with _open(folder, path) as file:
        data = file.read(image.MAX_SHOWN_BYTES + 1)
    kind = image.sniff(data)
    if kind is None:
        return None
    if not image.may_be_shown(data):
        raise BadRequest(
            f"{path} is too large to be shown, or damaged.", hint="Make it smaller with a command."
        )
    return Blob(data, kind, path)


def read_bytes(folder: Path, path: str, *, limit: int) -> bytes:
    with _open(folder, path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise BadRequest(
            f"{path} is too large: the limit is {format_size(limit)}.",
            hint="Pack it, or hand over a part of it.",
        )
    return data


def read_start(folder: Path, path: str, *, limit: int) -> str:
    """Return the start of a text file; empty if there is none, or it leads out of the folder."""
    with suppress(BadRequest, NotAllowed, NotFound), _open(folder, path) as file:
        return file.read(4 * limit).decode(errors="replace")[:limit]
    return ""


class WriteGuard(Protocol):
    """Refuses to write paths, which are given without links."""

    def check_shape(self, path: str) -> None:
        """Refuse a new file or folder for what its folder becomes with it."""

    def check_unguarded(self, path: str) -> None:
        """Refuse a file that is not for this."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    #: Without links, from the workspace.
    path: str
    mode: int
    data: bytes
    is_new: bool


def write_text(
    folder: Path,
    path: str,
    content: str,
    *,
    guard: WriteGuard,
    modes: Mapping[str, int] | None = None,
) -> WrittenFile:
    """Create or replace a file, atomically, unless the guard refuses its path.

    A file that is replaced keeps its mode, or has the one that is given for it.
    """
    data = check_text("The content", content, limit=MAX_WRITE_BYTES).encode()
    if len(data) > MAX_WRITE_BYTES:
        raise TooLarge("The content", size=len(data), limit=MAX_WRITE_BYTES)
    if ".." in path.split("/"):
        raise BadRequest(f"{path} goes up.", hint="Use a path from the workspace, without `..`.")
    with open_real_parent(folder, path, make=guard.check_shape) as (parent, name, real_path):
        if is_obeyed(real_path) and not is_obeyed(path):
            raise NotAllowed(
                # Not where to: names of files are outside text, and this result has no mark.
                f"{path} leads to a file that other programs obey.",
                hint="Write to the path of that file itself.",
            )
        if not is_obeyed(path):
            guard.check_shape(real_path)
            guard.check_unguarded(real_path)
        before = stat_entry(parent, name)
        if before is not None:
            _check_is_file(path, before)
        mode = 0o644 if before is None else before.st_mode & 0o777
        if modes is not None:
            mode = modes.get(real_path, 0o644)
        replace_file(parent, name, data, mode)
    return WrittenFile(real_path, mode, data, before is None)


def _open(folder: Path, path: str) -> IO[bytes]:
    with open_parent(folder, path) as (parent, name):
        # Checked before, because opening some devices has effects.
        _check_is_file(path, os.stat(name, dir_fd=parent, follow_symlinks=False))
        file = os.fdopen(os.open(name, _READ, dir_fd=parent), "rb")
        try:
            _check_is_file(path, os.fstat(file.fileno()))
        except BadRequest:
            file.close()
            raise
        return file


def _check_is_file(path: str, status: os.stat_result) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise BadRequest(f"{path} is a folder.", hint="List it with list_files.")
    if not stat.S_ISREG(status.st_mode):
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
        return _decode(kept) + _note_at_end(file, offset, number)
    if not kept.endswith(b"\n"):
        return (
            f"{_decode(kept)}\n[Line {number} is too long to show whole. Use run_command to read"
            f" parts of it. The next line has offset {number + 1}.]"
        )
    return f"{_decode(kept)}[More lines follow. Continue with offset {number}.]"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    """Yield lines, or parts of lines that are long."""
    while file.tell() < MAX_OFFSET_BYTES and (piece := file.readline(MAX_SHOWN_CHARS)):
        yield piece


def _note_at_end(file: IO[bytes], offset: int, number: int) -> str:
    if file.tell() >= MAX_OFFSET_BYTES:
        return "[The rest is too far into the file to be shown.]"
    if file.tell() == 0:
        return "[The file is empty.]"
    return f"[The file has fewer than {offset} lines.]" if number < offset else ""


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def open_private(file: Path | str, flags: int, folder: int | None = None) -> int:
    """Open a file of ours, also if a command has taken our right to it away."""
    flags |= os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o600, dir_fd=folder)
    except PermissionError:
        os.chmod(file, 0o600, dir_fd=folder)
        return os.open(file, flags, 0o600, dir_fd=folder)


def read_private(file: Path) -> str:
    with os.fdopen(open_private(file, os.O_RDONLY), encoding="ascii") as opened:
        return opened.read()


def regain_rights(path: Path) -> None:
    """Take back our rights to a folder and those above it, up to the first link.

    A command can change the modes of all files of our user, wherever they are.
    """
    opened = os.open("/", PASS_FOLDER)
    try:
        for number, name in enumerate(path.parts[1:], 2):
            _regain_right(opened, name, all_rights=number == len(path.parts))
            below = os.open(name, PASS_FOLDER, dir_fd=opened)
            os.close(opened)
            opened = below
    except OSError:
        # Whoever uses it finds out what is wrong.
        pass
    finally:
        os.close(opened)


def _regain_right(folder: int, name: str, *, all_rights: bool) -> None:
    needed = stat.S_IRWXU if all_rights else stat.S_IXUSR
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if status.st_uid == os.geteuid() and status.st_mode & needed != needed:
        # What we cannot change, we may still be able to use.
        with suppress(OSError):
            mode = stat.S_IMODE(status.st_mode) | stat.S_IRWXU
            os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)


def replace_file(parent: int, name: str, data: bytes, mode: int) -> None:
    """Write a file in full, or leave what was there."""
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
