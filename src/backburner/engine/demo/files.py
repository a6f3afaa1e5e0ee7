"""Snapshots of a watched file, and how two of them differ."""

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backburner.core.errors import BackburnerError
from backburner.core.validation import check_json
from backburner.ports import ToolResult

#: Of a text that is stored for the next comparison, as JSON.
MAX_STORED_BYTES = 12_000
MAX_COMPARED_LINES = 500
MAX_SHOWN_CHANGES = 6
MAX_LINE_CHARS = 80
_MISSING = re.compile(r"there is no|no such file|not there|not exist|not found", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    digest: str
    exists: bool = True
    #: Empty if it is too long to be stored.
    text: str = ""
    #: Why the file could not be read.
    problem: str = ""


def take_snapshot(result: ToolResult) -> FileSnapshot:
    """Read the result of `read_file`."""
    digest = hashlib.sha256(result.text.encode(errors="replace")).hexdigest()
    if not result.failed:
        return FileSnapshot(digest, text=result.text if _can_be_stored(result.text) else "")
    if _MISSING.search(result.text):
        return FileSnapshot("", exists=False)
    return FileSnapshot(digest, problem=" ".join(result.text.split())[:300])


def to_state(snapshot: FileSnapshot, path: str) -> Mapping[str, Any]:
    return {
        "path": path,
        "digest": snapshot.digest,
        "exists": snapshot.exists,
        "text": snapshot.text,
        "problem": snapshot.problem,
    }


def from_state(state: object, path: str) -> FileSnapshot | None:
    """Return the last snapshot of the same file, if there is one."""
    if not isinstance(state, Mapping) or state.get("path") != path:
        return None
    return FileSnapshot(
        str(state.get("digest", "")),
        exists=state.get("exists") is not False,
        text=str(state.get("text", "")),
        problem=str(state.get("problem", "")),
    )


def describe(snapshot: FileSnapshot, path: str) -> str:
    if snapshot.problem:
        return f"I could not read {path}: {snapshot.problem}"
    if not snapshot.exists:
        return f"{path} does not exist yet."
    count = len(snapshot.text.splitlines())
    lines = "one line" if count == 1 else f"{count} lines"
    return f"{path} exists, with {lines}." if snapshot.text else f"{path} exists."


def describe_change(before: FileSnapshot | None, now: FileSnapshot, path: str) -> str | None:
    """Describe what is new, or return None if nothing is."""
    if before == now:
        return None
    if before is None:
        # An existing file is no news.
        return None if now.exists and not now.problem else describe(now, path)
    if now.problem:
        return describe(now, path)
    if not now.exists:
        return f"{path} was deleted."
    if before.problem:
        return f"I can read {path} again."
    changes = _changes(before.text, now.text) if now.text or before.text else ""
    event = "has changed" if before.exists else "was created"
    return f"{path} {event}: {changes}" if changes else f"{path} {event}."


def _changes(before: str, now: str) -> str:
    """List the first added and removed lines."""
    old, new = before.splitlines()[:MAX_COMPARED_LINES], now.splitlines()[:MAX_COMPARED_LINES]
    diff = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    changed = [line for line in diff if line[0] in "+-" and line[1:].strip()]
    # Added lines first: they matter most.
    changed.sort(key=lambda line: line[0] == "-")
    shown = [f"{line[0]} {_shorten(line[1:].strip())}" for line in changed[:MAX_SHOWN_CHANGES]]
    more = len(changed) - len(shown)
    return ", ".join(shown) + (f", and {more} more" if more else "")


def _shorten(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else f"{line[:MAX_LINE_CHARS]}…"


def _can_be_stored(text: str) -> bool:
    try:
        check_json("The file", text, limit=MAX_STORED_BYTES)
    except BackburnerError:
        return False
    return True
