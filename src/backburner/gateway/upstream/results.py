"""Results of calls: each part as text, file or link; a part that is not valid costs that part."""

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from backburner.core.validation import replace_invalid_characters
from backburner.gateway.upstream.limits import MAX_BLOBS, MAX_LINKS, MAX_PARTS, MAX_TEXT_CHARS
from backburner.ports import Blob, ToolResult
from backburner.ports.engine import Link

MAX_NAME_CHARS = 200
MAX_URL_CHARS = 8_000
MAX_UNKNOWN_CHARS = 2_000
Part = Mapping[str, Any]


class _BadPart(Exception):
    pass


@dataclass
class _Content:
    texts: list[str] = field(default_factory=list)
    blobs: list[Blob] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def to_tool_result(result: Part, notes: tuple[str, ...] = ()) -> ToolResult:
    """Read a result as a server sends it; `notes` of ours follow its text."""
    content = _Content()
    listed = result.get("content")
    parts = listed if isinstance(listed, list) else []
    if len(parts) > MAX_PARTS:
        content.notes.append(f"The result was cut after {MAX_PARTS:,} parts.")
    for part in parts[:MAX_PARTS]:
        try:
            _read_part(content, part)
        except _BadPart as bad:
            content.notes.append(f"A part of the result was left out: {bad}.")
    structured = result.get("structuredContent")
    if structured is not None and (not content.texts or not isinstance(structured, dict)):
        content.texts.append(json.dumps(structured, ensure_ascii=False))
    text = "\n".join(content.texts)
    if len(text) > MAX_TEXT_CHARS:
        text = text[:MAX_TEXT_CHARS]
        content.notes.append(f"The text was cut after {MAX_TEXT_CHARS:,} characters.")
    failed = result.get("isError") is True
    all_notes = (f"[{note}]" for note in dict.fromkeys((*content.notes, *notes)))
    return ToolResult(
        text=replace_invalid_characters("\n".join([*filter(None, [text]), *all_notes])),
        failed=failed,
        # The words are those of the server.
        outside=failed,
        blobs=tuple(content.blobs),
        links=tuple(content.links),
        structured=structured if isinstance(structured, dict) else None,
    )


def _read_part(content: _Content, part: object) -> None:
    if not isinstance(part, dict):
        raise _BadPart("it is not an object")
    kind = part.get("type")
    if reader := _READERS.get(kind) if isinstance(kind, str) else None:
        reader(content, part)
    else:
        shown = json.dumps(part, ensure_ascii=False)
        if len(shown) > MAX_UNKNOWN_CHARS:
            raise _BadPart(f"it has the unknown type {str(kind)[:40]!r}")
        content.texts.append(shown)


def _read_text(content: _Content, part: Part) -> None:
    content.texts.append(_text(part, "text"))


def _read_media(content: _Content, part: Part) -> None:
    _add_blob(content, part, data="data", name="")


def _read_resource(content: _Content, part: Part) -> None:
    resource = part.get("resource")
    if not isinstance(resource, dict):
        raise _BadPart("its resource is not an object")
    url = _line(resource, "uri", MAX_URL_CHARS)
    if "blob" in resource:
        name = url.partition("?")[0].rstrip("/").rpartition("/")[2]
        _add_blob(content, resource, data="blob", name=name[:MAX_NAME_CHARS])
    else:
        content.texts.append(f"{url}\n{_text(resource, 'text')}" if url else resource["text"])


def _read_link(content: _Content, part: Part) -> None:
    if len(content.links) >= MAX_LINKS:
        raise _BadPart(f"the result has more than {MAX_LINKS:,} links")
    url = _text(part, "uri")
    if len(url) > MAX_URL_CHARS:
        raise _BadPart(f"its address is longer than {MAX_URL_CHARS:,} characters")
    content.links.append(
        Link(
            url=replace_invalid_characters(url),
            name=_line(part, "title", MAX_NAME_CHARS) or _line(part, "name", MAX_NAME_CHARS),
            description=_line(part, "description", MAX_UNKNOWN_CHARS),
            media_type=_line(part, "mimeType", MAX_NAME_CHARS),
        )
    )


_READERS: Mapping[str, Callable[[_Content, Part], None]] = {
    "text": _read_text,
    "image": _read_media,
    "audio": _read_media,
    "resource": _read_resource,
    "resource_link": _read_link,
}


def _add_blob(content: _Content, part: Part, *, data: str, name: str) -> None:
    if len(content.blobs) >= MAX_BLOBS:
        raise _BadPart(f"the result has more than {MAX_BLOBS:,} files")
    try:
        decoded = base64.b64decode(_text(part, data), validate=True)
    except (binascii.Error, ValueError):
        raise _BadPart("its data is not valid base64") from None
    media_type = _line(part, "mimeType", MAX_NAME_CHARS) or "application/octet-stream"
    content.blobs.append(Blob(decoded, media_type, name))


def _text(part: Part, key: str) -> str:
    value = part.get(key)
    if not isinstance(value, str):
        raise _BadPart(f"it has no {key}")
    return value


def _line(part: Part, key: str, limit: int) -> str:
    value = part.get(key)
    return replace_invalid_characters(value[:limit]) if isinstance(value, str) else ""
