"""The files of a conversation's messages, as files that commands and file tools can read.

They are written when a tool of the run first asks for them, and removed when the run ends. Commands
in a cage can read the folder and nothing else of what it is in.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from backburner.core.content.attachment import FOLDER, name_in_folder
from backburner.core.content.file import MEGABYTE, FileReference
from backburner.core.errors import NotFound
from backburner.tools.workspace_paths import explain_errors

#: Of one run; the newest count.
MAX_FILES, MAX_BYTES = 100, 200 * MEGABYTE
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class AttachmentFolder:
    """The folder of one run."""

    #: Lists the files of the messages, the newest first.
    find: Callable[[], Awaitable[Sequence[FileReference]]]
    read: Callable[[FileReference], AsyncIterator[bytes]]
    #: Makes an empty folder that nobody else uses.
    make: Callable[[], Path]
    _path: Path | None = None
    _is_open: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open(self) -> Path | None:
        """Write the files, unless that is done; None: the messages have none."""
        async with self._lock:
            if not self._is_open:
                await self._write()
                self._is_open = True
        return self._path

    async def require(self) -> Path:
        path = await self.open()
        if path is None:
            raise NotFound("The messages here have no files.")
        return path

    async def close(self) -> None:
        async with self._lock:
            path, self._path, self._is_open = self._path, None, False
            if path is not None:
                await asyncio.to_thread(_remove, path)

    async def _write(self) -> None:
        found = name_in_folder(select_newest(await self.find()))
        if not found:
            return
        with explain_errors(FOLDER):
            path = await asyncio.to_thread(self.make)
            try:
                for name, file in found.items():
                    await self._copy(path / name, file)
            except BaseException:
                await asyncio.shield(asyncio.to_thread(_remove, path))
                raise
        self._path = path

    async def _copy(self, path: Path, file: FileReference) -> None:
        opened = os.fdopen(await asyncio.to_thread(os.open, path, _NEW, 0o400), "wb")
        try:
            async with aclosing(self.read(file)) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    await asyncio.to_thread(opened.write, piece)
        except NotFound:
            # Its owner has deleted it, perhaps just now.
            await asyncio.to_thread(path.unlink)
            _log.info("attachment.deleted", file=file.digest[:16])
        finally:
            await asyncio.to_thread(opened.close)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def select_newest(files: Sequence[FileReference]) -> Sequence[FileReference]:
    """Select the newest files that fit, oldest first."""
    selected, room = list[FileReference](), MAX_BYTES
    for file in dict.fromkeys(files):
        if len(selected) < MAX_FILES and file.size <= room:
            room -= file.size
            selected.insert(0, file)
    return selected


def split_path(path: str) -> str | None:
    """Return a path in the folder of attachments, from there; None: it is another path."""
    for start in (FOLDER, f"${{{FOLDER[1:]}}}"):
        if path == start or path.startswith(f"{start}/"):
            return path.removeprefix(start).lstrip("/") or "."
    return None
