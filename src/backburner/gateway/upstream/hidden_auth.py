"""Refused sign-ins that a server reports as an ordinary result of a tool.

Conservative: a tool may well report the 401 of a page that it fetched, and whoever is asked to sign
in again for nothing stops trusting the question.
"""

import re
from collections.abc import Mapping
from typing import Any

from backburner.ports import ToolResult

#: Longer texts are about something else.
MAX_CHARS = 300
_WORDS = r"(?:(?:access|auth(?:entication|orization)?|bearer|oauth)\s+)?token"
_REFUSED = re.compile(
    rf"""
    ^\W*(?:error\b\W*|http\b\W*|status(?:\s+code)?\b\W*|mcp\s+error\b\W*|api\s+error\b\W*)*
    (?:
        401\b(?:\W+(?:unauthori[sz]ed|invalid\s+token|invalid_token|authentication\s+required)\b|\W*$)
      | unauthori[sz]ed\W*(?:401\W*)?$
      | (?:error\W+)?invalid_token\b
      | (?:the\s+|your\s+)?{_WORDS}\s+(?:has\s+|is\s+|was\s+)?(?:expired|invalid|revoked)\b
      | (?:invalid|expired|revoked)\s+(?:or\s+(?:invalid|expired|revoked)\s+)?{_WORDS}
        (?=\W*$|[.,;:!(])
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_refused_sign_in(result: ToolResult, arguments: Mapping[str, Any]) -> bool:
    """Say whether a failed result can only mean that the server refuses our sign-in."""
    return (
        result.failed
        and not (result.blobs or result.links)
        and says_refused(result.text)
        and not _names_address(arguments)
    )


def says_refused(text: str) -> bool:
    return len(text) <= MAX_CHARS and "://" not in text and bool(_REFUSED.search(text))


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
