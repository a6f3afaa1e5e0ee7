"""Results of tools as content: what is kept of them, and what the agent gets.

The agent gets text, and images if its model sees them. Files, and text that is too long, are kept
for the user. Text names all of it, so that a call which is answered from the journal gives the same
again.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from backburner.actions.work import files
from backburner.core.content import image
from backburner.core.content.file import (
    JSON,
    SHORT_DIGEST_CHARS,
    TEXT,
    FileLimits,
    FileOrigin,
    FileReference,
    choose_media_type,
    clean_name,
    format_size,
)
from backburner.core.errors import BackburnerError
from backburner.core.ids import CallId
from backburner.core.run import Turn
from backburner.core.tool_journal import JournalEntry
from backburner.core.tool_policy import RESULT_TOOL
from backburner.core.validation import hidden_characters, replace_invalid_characters
from backburner.ports import Blob, Link, Store, ToolResult

MAX_RESULT_CHARS = 100_000
#: Of one result. More images would fill the context of the model.
MAX_FILES, MAX_SHOWN_IMAGES, MAX_LINKS = 20, 5, 100
#: Sessions have them in base64, and are stored and loaded as a whole.
MAX_SHOWN_TOTAL_BYTES = 5_000_000
MAX_LINK_CHARS = 2000
MAX_LINK_TEXT_CHARS = 300


@dataclass(frozen=True, slots=True)
class KeptResult:
    """A result as the agent gets it, and the files that it names."""

    result: ToolResult
    files: tuple[FileReference, ...] = ()


@dataclass(frozen=True, slots=True)
class _Composed:
    text: str
    media_type: str


@dataclass(frozen=True, slots=True)
class ToolResults:
    """Keeps the results of one run."""

    store: Store
    turn: Turn
    limits: FileLimits

    async def keep(self, call_id: CallId, tool: str, result: ToolResult) -> KeptResult:
        """Keep what is not text of a result, or too much of it, and name it in the text."""
        if is_short_text(result):
            return KeptResult(replace(result, text=replace_invalid_characters(result.text)))
        composed = await asyncio.to_thread(_compose, result)
        origin = FileOrigin(self.turn.conversation_id, self.turn.run_id, call_id)
        text, kept, images = composed.text, list[FileReference](), list[Blob]()
        if len(text) > MAX_RESULT_CHARS:
            text = text[:MAX_RESULT_CHARS]
            text += await self._keep_rest(composed, len(text.encode()), tool, origin, kept)
        for blob in result.blobs[:MAX_FILES]:
            text += await self._keep_blob(blob, origin, kept, images)
        if len(result.blobs) > MAX_FILES:
            text += f"\n[{len(result.blobs) - MAX_FILES} more files were left out.]"
        return KeptResult(_as_seen(result, text.lstrip("\n"), images), tuple(kept))

    async def recall(self, entry: JournalEntry) -> ToolResult:
        """Make the result of an earlier call again."""
        images = list[Blob]()
        for file in entry.files:
            if file.shown:
                data = await files.load_bytes(self.store, self.turn.user_id, file.digest)
                if data is not None:
                    images.append(Blob(data, file.media_type, file.name))
        return ToolResult(entry.result or "", blobs=tuple(images))

    async def _keep_rest(
        self,
        composed: _Composed,
        shown: int,
        tool: str,
        origin: FileOrigin,
        kept: list[FileReference],
    ) -> str:
        length = len(composed.text)
        cut = f"\n[Cut here, after {MAX_RESULT_CHARS:,} of {length:,} characters. "
        name = clean_name(f"{tool}.{'json' if composed.media_type == JSON else 'txt'}")
        data = await asyncio.to_thread(composed.text.encode)
        try:
            file = await self._store(data, composed.media_type, name, origin)
        except BackburnerError as error:
            return f"{cut}The rest was not kept. {error.message}]"
        kept.append(file)
        return (
            f"{cut}The whole text is kept as file {_short(file)}:"
            f" read on with {RESULT_TOOL}, offset {shown}.]"
        )

    async def _keep_blob(
        self,
        blob: Blob,
        origin: FileOrigin,
        kept: list[FileReference],
        images: list[Blob],
    ) -> str:
        """Keep one file, and return the sentence that stands for it in the text."""
        media_type = choose_media_type(blob.data, blob.media_type)
        name = clean_name(blob.name)
        is_image = media_type in image.RASTER_TYPES
        facts = f"{name or 'no name'}, {media_type}, {format_size(len(blob.data))}"
        kind = "Image" if is_image else "File"
        try:
            file = await self._store(blob.data, media_type, name, origin)
        except BackburnerError as error:
            return f"\n[{kind}: {facts}. It was not kept. {error.message}]"
        shown = is_image and await self._may_show(blob.data, images)
        if shown:
            images.append(Blob(blob.data, media_type, name))
        kept.append(replace(file, shown=shown))
        ending = "" if shown else " It is not shown to you; the user can download it."
        return f"\n[{kind}: {facts}, kept as file {_short(file)}.{ending}]"

    async def _may_show(self, data: bytes, images: Sequence[Blob]) -> bool:
        size = sum(len(shown.data) for shown in images) + len(data)
        if len(images) >= MAX_SHOWN_IMAGES or size > MAX_SHOWN_TOTAL_BYTES:
            return False
        return await asyncio.to_thread(image.may_be_shown, data)

    async def _store(
        self, data: bytes, media_type: str, name: str, origin: FileOrigin
    ) -> FileReference:
        return await files.store_file(
            self.store,
            self.turn.user_id,
            data,
            media_type=media_type,
            name=name,
            origin=origin,
            limits=self.limits,
        )


def is_short_text(result: ToolResult) -> bool:
    has_more = bool(result.blobs or result.links or result.structured is not None)
    return not has_more and len(result.text) <= MAX_RESULT_CHARS


def _as_seen(result: ToolResult, text: str, images: Sequence[Blob]) -> ToolResult:
    return replace(result, text=text, blobs=tuple(images), links=(), structured=None)


def _compose(result: ToolResult) -> _Composed:
    """Write text, structured content and links as one text."""
    parts, media_type = [result.text] if result.text else [], TEXT
    if result.structured is not None and not _says_the_same(result.text, result.structured):
        if not parts and not result.links:
            media_type = JSON
        parts.append(_dump(result.structured))
    parts += _describe_links(result.links)
    return _Composed(replace_invalid_characters("\n".join(parts)), media_type)


def _dump(structured: Mapping[str, Any]) -> str:
    try:
        return json.dumps(dict(structured), ensure_ascii=False, default=str)
    except (ValueError, RecursionError):
        return "[The structured content cannot be shown.]"


def _says_the_same(text: str, structured: Mapping[str, Any]) -> bool:
    """Check whether a text is the structured content once more, as servers should send it."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        return bool(json.loads(text) == structured)
    except (ValueError, RecursionError):
        return False


def _describe_links(links: Sequence[Link]) -> Iterable[str]:
    for link in links[:MAX_LINKS]:
        name = _one_line(link.name)
        about = ", ".join(filter(None, (_one_line(link.media_type), _one_line(link.description))))
        target = _one_line(link.url, MAX_LINK_CHARS)
        yield f"[Link: {f'{name}: ' if name else ''}{target}{f' ({about})' if about else ''}]"
    if len(links) > MAX_LINKS:
        yield f"[{len(links) - MAX_LINKS} more links were left out.]"


def _one_line(text: str, limit: int = MAX_LINK_TEXT_CHARS) -> str:
    start = replace_invalid_characters(text[:limit])
    hidden = hidden_characters(start) | {"\n", "\t"}
    return " ".join("".join(" " if char in hidden else char for char in start).split())


def _short(file: FileReference) -> str:
    return file.digest[:SHORT_DIGEST_CHARS]
