"""Pages: how many, and from where on. Where one ends is told as a cursor that means nothing else.

Rows that come in while somebody turns pages shift nothing: a page begins after the row that the
last one ended with, not at a count.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Query
from pydantic import BaseModel, Field

from backburner.actions import browse
from backburner.core.errors import BadRequest
from backburner.ports import PageKey

MOST = 200
USUAL = 50
_LARGEST = 2**63 - 1

T = TypeVar("T")
Shown = TypeVar("Shown", bound=BaseModel)

Limit = Annotated[int, Query(ge=1, le=MOST, description="The most that a page may have.")]
Cursor = Annotated[
    str | None, Query(max_length=1_000, description="What the page before gave as `next`.")
]


class Page(BaseModel, Generic[Shown]):
    items: Sequence[Shown]
    next: str | None = Field(description="The cursor of the next page; null: this is the last.")


def show(page: browse.Page[T], each: Callable[[T], Shown]) -> Page[Shown]:
    return Page(items=[each(item) for item in page.items], next=write(page.mark))


def write(mark: PageKey | None) -> str | None:
    if mark is None:
        return None
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in mark]
    return urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def read(cursor: str | None, *kinds: type) -> PageKey | None:
    """Read a cursor that has parts of just these kinds; anything else was never given out."""
    if cursor is None:
        return None
    try:
        parts = json.loads(urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4)))
        if not isinstance(parts, list) or len(parts) != len(kinds):
            raise _unknown()
        return tuple(_part(part, kind) for part, kind in zip(parts, kinds, strict=True))
    except (ValueError, Error, RecursionError):
        raise _unknown() from None


def _part(part: Any, kind: type) -> Any:
    if kind is datetime and isinstance(part, str):
        moment = datetime.fromisoformat(part)
        if moment.utcoffset() is not None:
            return moment
    elif kind is int and isinstance(part, int) and not isinstance(part, bool):
        if abs(part) <= _LARGEST:
            return part
    elif kind is str and isinstance(part, str) and part.isprintable():
        part.encode()
        return part
    raise _unknown()


def _unknown() -> BadRequest:
    return BadRequest("There is no such cursor.", hint="Begin again without one.")
