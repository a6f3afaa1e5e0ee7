"""JSON as clients read it: some allow comments and a comma at the end of a list."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from backburner.core.errors import BadRequest

#: Text, a comment, or a comma with nothing but blanks and comments before the closing bracket.
#: Nothing is tried in a second way, or again from the next character: files come from strangers.
_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
    r"|//[^\n]*+"
    r"|/\*.*?(?:\*/|\Z)"
    r"|,(?=(?>\s|//[^\n]*+|/\*.*?\*/)*+[\]}])",
    re.DOTALL,
)


def read_json(text: str, label: str) -> Any:
    """Read JSON with or without comments; no name may stand twice in one object."""
    plain = text.removeprefix("\ufeff")
    try:
        return _read(plain)
    except _SameName as error:
        raise BadRequest(
            f"{label} has the name {error.name[:80]!r} twice in one place.",
            hint="Remove one of them.",
        ) from None
    except RecursionError:
        raise BadRequest(f"{label} is nested too deeply.") from None
    except ValueError as error:
        raise BadRequest(f"{label} is not JSON: {_describe(error)}.") from None


class _SameName(Exception):
    def __init__(self, name: str) -> None:
        self.name = name


def _read(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except ValueError:
        without = _TOKEN.sub(_blank, text)
        return json.loads(without, object_pairs_hook=_unique)


def _blank(match: re.Match[str]) -> str:
    token = match[0]
    # The line stays the same, for messages.
    return token if token.startswith('"') else "\n" * token.count("\n") or " "


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = Counter(name for name, _ in pairs)
        raise _SameName(next(name for name, count in names.items() if count > 1))
    return found


def _describe(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.lower()} in line {error.lineno}"
    return "it has a number that is too long"
