"""What a look at a file shows, and how it differs from the last one."""

import difflib
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from backburner.core.errors import BackburnerError
from backburner.core.validation import check_json
from backburner.ports import ToolResult

#: Of a file that is kept to be compared line by line, in bytes of JSON.
MOST_KEPT = 12_000
MOST_LINES = 500
MOST_CHANGES = 6
LONGEST_LINE = 80
_MISSING = re.compile(r"there is no|no such file|not there|not exist|not found", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen: a text, or why there is none."""

    digest: str
    there: bool = True
    #: Empty where it is too long to be kept.
    text: str = ""
    trouble: str = ""


def look_at(result: ToolResult) -> Look:
    digest = hashlib.sha256(result.text.encode(errors="replace")).hexdigest()
    if not result.failed:
        return Look(digest, text=result.text if _can_be_kept(result.text) else "")
    if _MISSING.search(result.text):
        return Look("", there=False)
    return Look(digest, trouble=" ".join(result.text.split())[:300])


def to_state(look: Look, path: str) -> Mapping[str, Any]:
    return {
        "path": path,
        "digest": look.digest,
        "there": look.there,
        "text": look.text,
        "trouble": look.trouble,
    }


def from_state(state: object, path: str) -> Look | None:
    """Recall the last look at the same file; None: there was none."""
    if not isinstance(state, Mapping) or state.get("path") != path:
        return None
    return Look(
        str(state.get("digest", "")),
        there=state.get("there") is not False,
        text=str(state.get("text", "")),
        trouble=str(state.get("trouble", "")),
    )


def describe(look: Look, path: str) -> str:
    if look.trouble:
        return f"I could not read {path}: {look.trouble}"
    if not look.there:
        return f"{path} is not there yet."
    count = len(look.text.splitlines())
    lines = "one line" if count == 1 else f"{count} lines"
    return f"{path} is there, with {lines}." if look.text else f"{path} is there."


def tell_change(before: Look | None, now: Look, path: str) -> str | None:
    """Say what is new; None: nothing is."""
    if before == now:
        return None
    if before is None:
        # That a file is there is what everybody expects.
        return None if now.there and not now.trouble else describe(now, path)
    if now.trouble:
        return describe(now, path)
    if not now.there:
        return f"{path} is gone."
    if before.trouble:
        return f"I can read {path} again."
    changes = _changes(before.text, now.text) if now.text or before.text else ""
    said = "has changed" if before.there else "is there now"
    return f"{path} {said}: {changes}" if changes else f"{path} {said}."


def _changes(before: str, now: str) -> str:
    """Name the lines that came and went, the first few of them."""
    old, new = before.splitlines()[:MOST_LINES], now.splitlines()[:MOST_LINES]
    diff = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    found = [line for line in diff if line[0] in "+-" and line[1:].strip()]
    # What came is what people look for.
    found.sort(key=lambda line: line[0] == "-")
    said = [f"{line[0]} {_shorten(line[1:].strip())}" for line in found[:MOST_CHANGES]]
    more = len(found) - len(said)
    return ", ".join(said) + (f", and {more} more" if more else "")


def _shorten(line: str) -> str:
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


def _can_be_kept(text: str) -> bool:
    try:
        check_json("The file", text, limit=MOST_KEPT)
    except BackburnerError:
        return False
    return True
