"""Text and JSON that came from outside: whether they can be kept, and how large they are.

Both databases have to be able to store what passes here, and every reader to print it.
"""

import json
import math
from collections.abc import Mapping
from typing import Any

from backburner.core.errors import BadRequest, TooLarge

MAX_JSON_DEPTH = 32
MAX_INTEGER = 2**63 - 1
#: Stands for a character that is none.
REPLACEMENT_CHARACTER = "\ufffd"


def check_text(what: str, text: object, *, limit: int) -> str:
    if not isinstance(text, str):
        raise BadRequest(f"{what} must be text, not {type(text).__name__}.")
    if len(text) > limit:
        raise TooLarge(what, size=len(text), limit=limit, unit="characters")
    if "\0" in text or not _is_encodable(text):
        raise BadRequest(f"{what} has characters that are no text.", hint="Send valid Unicode.")
    return text


def replace_invalid_characters(text: str) -> str:
    """Put a mark in the place of whatever could not be kept: an agent cannot be asked again."""
    if not _is_encodable(text):
        # Halves that belong together become one character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\0", REPLACEMENT_CHARACTER)


def check_json(what: str, value: object, *, limit: int) -> None:
    """Refuse what is not plain JSON, is nested absurdly deep, or has more than `limit` bytes."""
    _check_json(what, value, MAX_JSON_DEPTH)
    if (size := json_size(value)) > limit:
        raise TooLarge(what, size=size, limit=limit)


def json_size(value: object) -> int:
    return len(canonical_json(value).encode())


def canonical_json(value: object) -> str:
    """Write JSON in the one way that equal values share."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def check_object(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadRequest(f"{what} must be an object with names and values.")
    return value


def _check_json(what: str, value: object, deeper: int) -> None:
    if deeper == 0:
        raise BadRequest(
            f"{what} is nested more than {MAX_JSON_DEPTH} levels deep.", hint="Flatten it."
        )
    match value:
        case None | bool():
            pass
        case int() | float():
            _check_number(what, value)
        case str():
            check_text(what, value, limit=len(value))
        case list():
            for part in value:
                _check_json(what, part, deeper - 1)
        case dict():
            for key, part in value.items():
                if not isinstance(key, str):
                    raise BadRequest(f"{what} has a name that is not text.")
                check_text(what, key, limit=len(key))
                _check_json(what, part, deeper - 1)
        case _:
            raise BadRequest(f"{what} has a {type(value).__name__}, which JSON does not know.")


def _check_number(what: str, value: float) -> None:
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise BadRequest(f"{what} has a number that is too large.")
    elif not math.isfinite(value):
        raise BadRequest(f"{what} has a number that is not finite.")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
