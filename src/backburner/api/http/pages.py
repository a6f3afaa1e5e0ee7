"""Cursor pagination. Cursors are opaque to clients.

A page starts after the last row of the previous page, so rows inserted meanwhile shift nothing.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

from fastapi import Depends, Query
from pydantic import BaseModel, Field

from backburner.actions import browse
from backburner.core.errors import BadRequest
from backburner.ports import PageKey

MAX_PAGE_SIZE = 200
DEFAULT_PAGE_SIZE = 50
MAX_CURSOR_CHARS = 1_000
_MAX_INTEGER = 2**63 - 1

Row = TypeVar("Row")
Item = TypeVar("Item", bound=BaseModel)


Limit = Annotated[int, Query(ge=1, le=MAX_PAGE_SIZE, description="Maximum number of items.")]
Cursor = Annotated[
    str | None,
    Query(max_length=MAX_CURSOR_CHARS, description="`next` of the previous page."),
]


@dataclass(frozen=True, slots=True)
class PageQuery:
    """Query parameters of a list."""

    limit: int = DEFAULT_PAGE_SIZE
    cursor: str | None = None

    def after(self, *types: type) -> PageKey | None:
        """Decode the cursor, whose parts must have exactly these types."""
        if self.cursor is None:
            return None
        padding = b"=" * (-len(self.cursor) % 4)
        try:
            parts = json.loads(urlsafe_b64decode(self.cursor.encode("ascii") + padding))
            if not isinstance(parts, list) or len(parts) != len(types):
                raise _invalid_cursor()
            return tuple(_read_part(part, type_) for part, type_ in zip(parts, types, strict=True))
        except (ValueError, Error, RecursionError):
            raise _invalid_cursor() from None


async def read_page_query(limit: Limit = DEFAULT_PAGE_SIZE, cursor: Cursor = None) -> PageQuery:
    return PageQuery(limit, cursor)


Paging = Annotated[PageQuery, Depends(read_page_query)]
#: The cursor after the first part of an open list, which is shown again with what is new.
DownTo = Annotated[str | None, Query(alias="to", max_length=MAX_CURSOR_CHARS)]


class PageOut(BaseModel, Generic[Item]):
    items: Sequence[Item]
    next: str | None = Field(description="The cursor of the next page; null on the last one.")


def make_page(page: browse.Page[Row], to_item: Callable[[Row], Item]) -> PageOut[Item]:
    return PageOut(items=[to_item(row) for row in page.items], next=write_cursor(page.next_key))


def write_cursor(mark: PageKey | None) -> str | None:
    if mark is None:
        return None
    parts = [part.isoformat() if isinstance(part, datetime) else part for part in mark]
    return urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def _read_part(part: Any, type_: type) -> Any:
    if type_ is datetime and isinstance(part, str):
        time = datetime.fromisoformat(part)
        if time.utcoffset() is not None:
            return time
    elif type_ is int and isinstance(part, int) and not isinstance(part, bool):
        if abs(part) <= _MAX_INTEGER:
            return part
    elif type_ is str and isinstance(part, str) and part.isprintable():
        part.encode()
        return part
    raise _invalid_cursor()


def _invalid_cursor() -> BadRequest:
    return BadRequest("Invalid cursor.", hint="Start again without one.")
