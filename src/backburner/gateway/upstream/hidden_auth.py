"""Refused sign-ins that a server reports as an ordinary result of a tool.

Conservative: a tool may well report the 401 of a page that it fetched, and whoever is asked to sign
in again for nothing stops trusting the question. A result that did not fail may be a mail that
somebody has sent for this purpose, so it decides nothing, and only has the sign-in looked into.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any

from backburner.ports import ToolResult

#: Longer texts are about something else.
MAX_CHARS = 300
_KIND = r"(?:access|auth(?:entication|orization)?|bearer|oauth)"
_WORDS = rf"(?:{_KIND}\s+)?token"
_BAD = r"(?:expired|invalid|revoked)"
_REFUSED = re.compile(
    rf"""
    ^\W*(?:error\b\W*|http\b\W*|status(?:\s+code)?\b\W*|mcp\s+error\b\W*|api\s+error\b\W*)*
    (?:
        401\b(?:\W+(?:unauthori[sz]ed|invalid\s+token|invalid_token|authentication\s+required)\b|\W*$)
      | unauthori[sz]ed\W*(?:401\W*)?$
      | (?:error\W+)?invalid_token\b
      | (?:the\s+|your\s+)?{_WORDS}\s+(?:has\s+|is\s+|was\s+)?{_BAD}\b
      | {_BAD}\s+(?:or\s+{_BAD}\s+)?{_WORDS}
        (?=\W*$|[.,;:!(])
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: Of texts that say nothing else, all words but these.
_SAYS_REFUSED = (
    rf"(?:unauthori[sz]ed|unauthenticated|not authenticated|invalid_token|authentication required"
    rf"|{_WORDS} {_BAD}|{_BAD} (?:{_BAD} )?{_WORDS})"
)
_NOTHING_ELSE = re.compile(rf"{_SAYS_REFUSED}(?: {_SAYS_REFUSED})*")
_FILLERS = frozenset(
    {
        *("401", "a", "an", "api", "been", "code", "description", "detail", "error"),
        *("error_description", "errors", "false", "has", "http", "is", "mcp", "message", "ok"),
        *("or", "result", "status", "status_code", "statuscode", "success", "the", "was", "your"),
    }
)


class Refusal(Enum):
    """Whether a result is that of a refused sign-in."""

    NONE = auto()
    POSSIBLE = auto()  #: It reads like one, and may be the words of anybody.
    CERTAIN = auto()  #: It can mean nothing else.


def find_refusal(result: ToolResult, arguments: Mapping[str, Any]) -> Refusal:
    if result.blobs or result.links or _names_address(arguments):
        return Refusal.NONE
    if result.failed and says_refused(result.text):
        return Refusal.CERTAIN
    return Refusal.POSSIBLE if says_nothing_else(result.text) else Refusal.NONE


def says_refused(text: str) -> bool:
    return _is_short(text) and bool(_REFUSED.search(text))


def says_nothing_else(text: str) -> bool:
    """Return whether a text, or the JSON in it, is a refusal from the first word to the last."""
    words = re.findall(r"\w+", text.lower()) if _is_short(text) else []
    return bool(_NOTHING_ELSE.fullmatch(" ".join(word for word in words if word not in _FILLERS)))


def _is_short(text: str) -> bool:
    return len(text) <= MAX_CHARS and "://" not in text


def _names_address(value: object) -> bool:
    match value:
        case str():
            return "://" in value or "www." in value
        case Mapping():
            return any(map(_names_address, value.values()))
        case list() | tuple():
            return any(map(_names_address, value))
        case _:
            return False
