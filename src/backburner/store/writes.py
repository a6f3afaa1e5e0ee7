"""Writes whose results nobody needs, gathered into one statement where the database can do that.

PostgreSQL does all of them in common table expressions of one statement, in one round trip. Rows of
the same statement are passed as one list of records, so that a statement is planned once, however
many rows it is given. None of them sees what another does, and a row may be changed once. SQLite,
which has no round trips and no writes in such expressions, does each at once.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, cast

from sqlalchemy import (
    CTE,
    JSON,
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Insert,
    Select,
    Text,
    Update,
    bindparam,
    column,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.sql import visitors
from sqlalchemy.sql.elements import BinaryExpression
from sqlalchemy.types import TypeEngine

from backburner.core.ids import ConversationId, UserId
from backburner.ports import EventKind
from backburner.store.compiled import IS_KEPT
from backburner.store.types import MICROSECOND, Time

Values = Mapping[str, Any]
#: Kinds of events and the conversations in which they happened, by user.
NewEvents = Mapping[UserId, Sequence[tuple[ConversationId | None, EventKind]]]
#: Selects what to insert from rows that are given, by joining them with a table. Not for SQLite.
Source = Callable[[FromClause], Select[Any]]
_Types = tuple[tuple[str, TypeEngine[Any]], ...]


class FollowerFound(Exception):
    """Something was scheduled after a conversation, just before that was locked."""


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a transaction: its events, and conversations that nothing may be scheduled after.

    By the snapshot of its last statement: that of the statement which locked them is older than
    their locks.
    """

    events: NewEvents = field(default_factory=dict)
    now: datetime | None = None
    unfollowed: Sequence[tuple[UserId, ConversationId]] = ()


_NO_ENDING = Ending()


@dataclass(frozen=True, slots=True)
class Write:
    statement: Insert | Update
    #: Several only to insert.
    rows: Sequence[Values]
    #: Raised unless exactly one row is changed.
    otherwise: type[Exception] | None = None
    source: Source | None = None


@dataclass(slots=True)
class Gathered:
    """Writes that have not been done yet."""

    connection: Connection
    _writes: list[Write] = field(default_factory=list)
    #: The tables, or parts of them, in which rows of a user are to be changed or inserted.
    _changed: set[tuple[str, Any]] = field(default_factory=set)
    _inserted: set[tuple[str, Any]] = field(default_factory=set)

    def add(self, write: Write, *, apart: str = "") -> None:
        """Add a write, after those whose rows of the same table and user it may change.

        `apart` names a part of the table whose rows no other write changes.
        """
        table, row = str(write.statement.table), write.rows[0]
        if isinstance(write.statement, Insert):
            self._inserted.add((table, row.get("user_id")))
        else:
            owner = row.get("owner")
            if (apart or table, owner) in self._changed or (table, owner) in self._inserted:
                self.flush()
            self._changed.add((apart or table, owner))
        self._writes.append(write)

    def flush(self, ending: Ending = _NO_ENDING) -> None:
        """Write all of it, and the end of the transaction."""
        writes, self._writes = self._writes, []
        self._changed.clear()
        self._inserted.clear()
        if len(writes) > 1 or ending.events or ending.unfollowed:
            _execute_together(self.connection, writes, ending)
        elif writes:
            execute(self.connection, writes[0])


def execute(connection: Connection, write: Write) -> None:
    if write.source is not None:
        _execute_together(connection, [write], _NO_ENDING)
        return
    rows = write.rows if len(write.rows) > 1 else write.rows[0]
    result = connection.execute(write.statement, rows)
    if write.otherwise is not None and result.rowcount != 1:
        raise write.otherwise


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a statement: one write, or all rows of equal ones."""

    statement: Insert | Update
    #: The columns or parameters of its records; none: it has parameters of its own.
    types: _Types
    is_guarded: bool
    source: Source | None
    #: Tells writes apart that cannot be one part.
    number: int = 0


def _execute_together(connection: Connection, writes: Sequence[Write], ending: Ending) -> None:
    parts = _sort(writes)
    statement = _combine(
        tuple(parts), has_events=bool(ending.events), has_unfollowed=bool(ending.unfollowed)
    )
    values = _event_values(ending.events, ending.now) if ending.events else {}
    if ending.unfollowed:
        keys = [{"user_id": user, "id": one} for user, one in ending.unfollowed]
        values |= {"unfollowed": json.dumps(keys), "unfollowed_count": len(keys)}
    for place, (part, equal) in enumerate(parts.items()):
        rows = [row for write in equal for row in write.rows]
        if not part.types:
            values |= {_name(place, key): value for key, value in rows[0].items()}
            continue
        values[_name(place, "rows")] = json.dumps(rows, default=_to_json)
        if part.is_guarded or part.source or not isinstance(part.statement, Insert):
            values[_name(place, "count")] = len(rows)
    followers, *counts = connection.execute(statement, values).one()
    if followers:
        raise FollowerFound
    guarded = [equal for part, equal in parts.items() if part.is_guarded]
    for count, equal in zip(counts, guarded, strict=True):
        if count != len(equal) and equal[0].otherwise is not None:
            raise equal[0].otherwise


def _sort(writes: Sequence[Write]) -> dict[_Part, list[Write]]:
    parts = dict[_Part, list[Write]]()
    for number, write in enumerate(writes):
        statement, is_guarded = write.statement, write.otherwise is not None
        types = (
            _column_types(statement, tuple(write.rows[0]))
            if isinstance(statement, Insert)
            else _parameter_types(statement)
        )
        part = _Part(statement, types, is_guarded, write.source, 0 if types else number)
        parts.setdefault(part, []).append(write)
    return parts


@lru_cache(maxsize=256)
def _column_types(statement: Insert, columns: tuple[str, ...]) -> _Types:
    return tuple((name, statement.table.c[name].type) for name in columns)


@lru_cache(maxsize=256)
def _parameter_types(statement: Update) -> _Types:
    """Find the parameters of an update, with the types of what they are compared with or set to.

    Empty: one of them is a list.
    """
    types = dict[str, TypeEngine[Any]]()
    for element in visitors.iterate(statement.whereclause):
        if isinstance(element, BinaryExpression) and isinstance(element.right, BindParameter):
            if element.right.expanding:
                return ()
            if not element.right.unique:
                types[element.right.key] = element.left.type
    for target, value in (statement._values or {}).items():  # noqa: SLF001 (there is no other way)
        if isinstance(value, BindParameter) and not value.unique:
            name = target if isinstance(target, str) else target.name
            types[value.key] = statement.table.c[name].type
    return tuple((name, type_) for name, type_ in types.items())


def _event_values(events: NewEvents, now: datetime | None) -> dict[str, Any]:
    rows = [
        {"user_id": user, "conversation_id": conversation_id, "kind": kind, "before": before}
        for user, noted in events.items()
        for before, (conversation_id, kind) in enumerate(reversed(noted))
    ]
    return {"event_rows": json.dumps(rows), "event_users": len(events), "event_time": now}


#: The numbers of each user are counted back from the last one taken, and nobody who has just been
#: deleted gets any. Users are in order, to avoid deadlocks; the limit says that there are few.
_EVENTS = {
    "noted": text(
        "SELECT * FROM json_to_recordset(CAST(:event_rows AS json))"
        ' AS n(user_id text COLLATE "C", conversation_id text, kind text, before bigint)'
    ),
    "counted": text(
        "SELECT user_id, count(*) FROM noted GROUP BY user_id ORDER BY user_id"
        " LIMIT CAST(:event_users AS bigint)"
    ),
    "taken": text(
        "INSERT INTO counters AS c (user_id, name, last)"
        " SELECT users.id, 'events', counted.count FROM counted"
        " JOIN users ON users.id = counted.user_id ORDER BY users.id"
        " ON CONFLICT (user_id, name) DO UPDATE SET last = c.last + excluded.last"
        " RETURNING user_id, last"
    ),
    "happened": text(
        "INSERT INTO events (user_id, number, conversation_id, kind, created_at)"
        " SELECT user_id, last - before, conversation_id, kind, CAST(:event_time AS timestamptz)"
        " FROM noted JOIN taken USING (user_id)"
    ).bindparams(bindparam("event_time", type_=Time)),
}


_FOLLOWERS = text(
    "SELECT count(*) AS count FROM"
    " (SELECT * FROM json_to_recordset(CAST(:unfollowed AS json))"
    ' AS n(user_id text COLLATE "C", id text COLLATE "C")'
    " LIMIT CAST(:unfollowed_count AS bigint)) AS r"
    " JOIN conversations AS f ON f.user_id = r.user_id AND f.after_id = r.id"
)


@lru_cache(maxsize=256)
def _combine(parts: tuple[_Part, ...], *, has_events: bool, has_unfollowed: bool) -> Select[Any]:
    """Build one statement that does all; nothing, unless every guarded write changes its row."""
    guards, made = dict[CTE, ColumnElement[bool]](), list[CTE]()
    for place, part in enumerate(parts):
        statement = _build(part, place, list(guards.values()))
        if part.is_guarded:
            statement = statement.returning(*statement.table.primary_key)
        cte = statement.cte(f"w{place}")
        made.append(cte)
        if part.is_guarded:
            expected = bindparam(_name(place, "count"), type_=BigInteger())
            guards[cte] = _count(cte) == expected
    if has_events:
        made += [statement.columns().cte(name) for name, statement in _EVENTS.items()]
    followers = (
        _FOLLOWERS.columns(column("count", BigInteger())).scalar_subquery()
        if has_unfollowed
        else literal_column("0")
    )
    counts = select(followers.label("followers"), *(_count(one) for one in guards))
    return counts.add_cte(*made).execution_options(**{IS_KEPT: True})


def _build(part: _Part, place: int, conditions: Sequence[ColumnElement[bool]]) -> Any:
    statement = part.statement
    if isinstance(statement, Insert) and part.source is not None:
        selected = part.source(_few_records(part, place))
        names = [column.name for column in selected.selected_columns]
        return statement.from_select(names, selected.where(*conditions))
    if isinstance(statement, Insert):
        records = _records(part, place)
        columns = [records.c[name] for name, _ in part.types]
        return statement.from_select(
            [name for name, _ in part.types], select(*columns).where(*conditions)
        )
    if part.types:
        rows = _few_records(part, place)
        return _with_parameters(statement, lambda key: rows.c[key]).where(*conditions)
    return _with_parameters(statement, lambda key: _name(place, key)).where(*conditions)


def _with_parameters(statement: Update, find: Callable[[str], Any]) -> Update:
    """Replace the parameters of a statement by columns, or by parameters of other names."""

    def replace(element: Any, **_: Any) -> Any:
        if not isinstance(element, BindParameter) or element.unique:
            return None
        found = find(element.key)
        if not isinstance(found, str):
            return found
        renamed = element._clone()  # noqa: SLF001 (there is no other way)
        renamed.key = found
        return renamed

    return cast("Update", visitors.replacement_traverse(statement, {}, replace))


def _few_records(part: _Part, place: int) -> FromClause:
    """Read the rows of a part, to be joined with a table.

    For all that PostgreSQL knows there may be many, and it would scan the table for them.
    """
    limit: BindParameter[int] = bindparam(_name(place, "count"), type_=BigInteger())
    return select(_records(part, place)).limit(limit).subquery(f"r{place}")


def _records(part: _Part, place: int) -> FromClause:
    """Read the rows of a part from its parameter."""
    rows = bindparam(_name(place, "rows"), type_=Text()).cast(JSON)
    columns = (column(name, type_) for name, type_ in part.types)
    return func.json_to_recordset(rows).table_valued(*columns).render_derived(with_types=True)


def _count(cte: CTE) -> Any:
    return select(func.count()).select_from(cte).scalar_subquery()


def _to_json(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value // MICROSECOND
    raise TypeError(f"{value!r} cannot be written.")


def _name(place: int, key: str) -> str:
    return f"w{place}_{key}"
