"""Writes whose results nobody needs, gathered into one statement where the database can do that.

PostgreSQL does all of them in common table expressions of one statement, in one round trip. There
none of them sees what another does, and a row may be changed once. SQLite, which has no round trips
and no writes in such expressions, does each at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    CTE,
    Connection,
    Insert,
    Select,
    Update,
    bindparam,
    exists,
    func,
    select,
    union_all,
)
from sqlalchemy.sql import visitors

#: More rows are written one statement after the other: each number of rows is a statement to keep.
MAX_ROWS = 12

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Write:
    statement: Insert | Update
    #: Several only to insert.
    rows: Sequence[Values]
    #: Raised unless exactly one row is changed.
    otherwise: type[Exception] | None = None

    @property
    def shape(self) -> "_Shape":
        columns = tuple(self.rows[0]) if isinstance(self.statement, Insert) else ()
        return self.statement, len(self.rows), columns, self.otherwise is not None


_Shape = tuple[Insert | Update, int, tuple[str, ...], bool]


@dataclass(slots=True)
class Gathered:
    """Writes that have not been done yet."""

    connection: Connection
    _writes: list[Write] = field(default_factory=list)
    #: The tables, or parts of them, in which rows are to be changed.
    _changed: set[str] = field(default_factory=set)

    def add(self, write: Write, *, apart: str = "") -> None:
        """Add a write, after those that change rows of the same table.

        `apart` names a part of the table whose rows no other write changes.
        """
        if isinstance(write.statement, Update):
            changed = apart or str(write.statement.table)
            if changed in self._changed:
                self.flush()
            self._changed.add(changed)
        self._writes.append(write)

    def flush(self) -> None:
        writes, self._writes = self._writes, []
        self._changed.clear()
        if len(writes) < 2 or sum(len(write.rows) for write in writes) > MAX_ROWS:
            for write in writes:
                execute(self.connection, write)
        else:
            _execute_together(self.connection, writes)


def execute(connection: Connection, write: Write) -> None:
    rows = write.rows if len(write.rows) > 1 else write.rows[0]
    result = connection.execute(write.statement, rows)
    if write.otherwise is not None and result.rowcount != 1:
        raise write.otherwise


def _execute_together(connection: Connection, writes: Sequence[Write]) -> None:
    statement = _combine(tuple(write.shape for write in writes))
    values = {
        _name(place, number, key): value
        for place, write in enumerate(writes)
        for number, row in enumerate(write.rows)
        for key, value in row.items()
    }
    counts = connection.execute(statement, values).one()
    guarded = (write.otherwise for write in writes if write.otherwise is not None)
    # The first column is there for a statement without any guard.
    for count, otherwise in zip(counts[1:], guarded, strict=True):
        if count != 1:
            raise otherwise


@lru_cache(maxsize=256)
def _combine(shapes: tuple[_Shape, ...]) -> Select[Any]:
    """Build one statement that does all; nothing, unless every guarded write changes a row."""
    guards, parts = list[CTE](), list[CTE]()
    for place, (statement, rows, columns, is_guarded) in enumerate(shapes):
        named: Insert | Update
        if isinstance(statement, Insert):
            named = _insert(statement, place, rows, columns, guards)
        else:
            named = _rename(statement, place).where(*(exists().select_from(one) for one in guards))
        part = (named.returning(*named.table.primary_key) if is_guarded else named).cte(f"w{place}")
        parts.append(part)
        if is_guarded:
            guards.append(part)
    counts = [select(func.count()).select_from(one).scalar_subquery() for one in guards]
    return select(func.count(), *counts).add_cte(*parts)


def _insert(
    statement: Insert, place: int, rows: int, columns: tuple[str, ...], guards: Sequence[CTE]
) -> Insert:
    table = statement.table
    selects = [
        select(
            *(bindparam(_name(place, row, name), type_=table.c[name].type) for name in columns)
        ).select_from(*guards)
        for row in range(rows)
    ]
    return statement.from_select(list(columns), union_all(*selects) if rows > 1 else selects[0])


def _rename(statement: Update, place: int) -> Update:
    """Give the parameters names that no other write has."""

    def rename(parameter: Any) -> None:
        if not parameter.unique:
            parameter.key = _name(place, 0, parameter.key)

    renamed: Update = visitors.cloned_traverse(statement, {}, {"bindparam": rename})
    return renamed


def _name(place: int, row: int, key: str) -> str:
    return f"w{place}_{row}_{key}"
