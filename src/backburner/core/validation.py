"""Checks of untrusted text and JSON: type, size, depth and characters.

Text and JSON that pass can be stored in both databases and printed by every client.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from backburner.core.errors import BadRequest, TooLarge

MAX_MESSAGE_CHARS = 100_000
MAX_JSON_DEPTH = 32
MAX_INTEGER = 2**63 - 1
REPLACEMENT_CHARACTER = "\ufffd"
#: Control, format, private and unassigned characters, surrogates, and separators of lines: they
#: hide or reorder what is beside them.
_UNPRINTABLE_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
#: Default_Ignorable_Code_Point of Unicode: letters and marks among them are drawn as nothing.
_IGNORABLE = """
    00AD 034F 061C 115F-1160 17B4-17B5 180B-180F 200B-200F 202A-202E 2060-206F 3164 FE00-FE0F FEFF
    FFA0 FFF0-FFF8 1BCA0-1BCA3 1D173-1D17A E0000-E0FFF
"""
#: Symbols and letters that are blank: of Braille, hieroglyphs and music.
_BLANK = "2800 13441-13442 1D159"
#: Where an emoji may begin.
_SYMBOLS = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
#: What chooses the style of an emoji and joins it to the next: it is seen with them.
_EMOJI_PARTS = re.compile(
    f"(?<=[{_SYMBOLS}])\ufe0f|(?<=[#*0-9])\ufe0f(?=\u20e3)"
    f"|(?<=[{_SYMBOLS}\ufe0f])\u200d(?=[{_SYMBOLS}])"
)


def check_text(label: str, text: object, *, limit: int) -> str:
    if not isinstance(text, str):
        raise BadRequest(f"{label} must be text, not {type(text).__name__}.")
    if len(text) > limit:
        raise TooLarge(label, size=len(text), limit=limit, unit="characters")
    if "\0" in text or not _is_encodable(text):
        raise BadRequest(f"{label} has invalid characters.", hint="Send valid Unicode.")
    return text


def check_message(text: str) -> str:
    return check_text("The message", text, limit=MAX_MESSAGE_CHARS)


def check_chat_message(text: str) -> None:
    if not check_message(text).strip():
        raise BadRequest("The message is empty.", hint="Write a text.")


def normalize_title(text: str) -> str:
    """Write titles that look the same in the same way."""
    return unicodedata.normalize("NFC", " ".join(text.split()))


def replace_invalid_characters(text: str) -> str:
    """Replace characters that cannot be stored: agent output cannot be sent back as invalid."""
    if not _is_encodable(text):
        # Surrogates that form a pair become one character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", REPLACEMENT_CHARACTER)


def escape_hidden(text: str) -> str:
    """Replace characters that cannot be seen by their codes; lines and tabs stay."""
    return _escape(text, hidden_characters(text))


def hidden_characters(text: str) -> frozenset[str]:
    """Return the characters of a text that cannot be seen, apart from lines, tabs and emoji.

    For names, and for texts of others and of agents that somebody has to agree to.
    """
    return frozenset(filter(is_hidden, set(_EMOJI_PARTS.sub("", text)) - {"\n", "\t"}))


def is_hidden(char: str) -> bool:
    """Say whether a character is drawn as nothing, or moves or changes those beside it."""
    return char in _DRAWN_AS_NOTHING or _is_unprintable(char)


def escape_unprintable(text: str) -> str:
    """Replace characters that could control a terminal by their codes; lines and tabs stay."""
    return _escape(text, unprintable_characters(text))


def unprintable_characters(text: str) -> frozenset[str]:
    """Return the characters of a text that could control a terminal or reorder what it shows.

    What people write to each other keeps the others, which some scripts are written with.
    """
    return frozenset(filter(_is_unprintable, set(text) - {"\n", "\t"}))


def _is_unprintable(char: str) -> bool:
    return unicodedata.category(char) in _UNPRINTABLE_CATEGORIES


def _escape(text: str, characters: Iterable[str]) -> str:
    return text.translate({ord(char): _code(char) for char in characters})


def _characters(ranges: str) -> Iterator[str]:
    for each in ranges.split():
        first, _, last = each.partition("-")
        yield from map(chr, range(int(first, 16), int(last or first, 16) + 1))


_DRAWN_AS_NOTHING = frozenset(_characters(_IGNORABLE + _BLANK))


def _code(char: str) -> str:
    return f"\\u{ord(char):04x}" if char <= "\uffff" else f"\\U{ord(char):08x}"


def check_json(label: str, value: object, *, limit: int) -> None:
    """Refuse values that are not plain JSON, too deep, or larger than `limit` bytes."""
    _check_json(label, value, MAX_JSON_DEPTH)
    if (size := json_size(value)) > limit:
        raise TooLarge(label, size=size, limit=limit)


def json_size(value: object) -> int:
    return len(canonical_json(value).encode())


def canonical_json(value: object) -> str:
    """Write JSON so that equal values give equal text."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def check_object(label: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadRequest(f"{label} must be a JSON object.")
    return value


def _check_json(label: str, value: object, levels: int) -> None:
    if levels == 0:
        raise BadRequest(
            f"{label} is nested more than {MAX_JSON_DEPTH} levels deep.", hint="Flatten it."
        )
    match value:
        case None | bool():
            pass
        case int() | float():
            _check_number(label, value)
        case str():
            check_text(label, value, limit=len(value))
        case list():
            for part in value:
                _check_json(label, part, levels - 1)
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    raise BadRequest(f"{label} has a key that is not text.")
                check_text(label, key, limit=len(key))
                _check_json(label, part, levels - 1)
        case _:
            raise BadRequest(f"{label} has a {type(value).__name__}, which is not JSON.")


def _check_number(label: str, value: float) -> None:
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise BadRequest(f"{label} has a number that is too large.")
    elif not math.isfinite(value):
        raise BadRequest(f"{label} has a number that is not finite.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
