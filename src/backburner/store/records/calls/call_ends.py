"""The ends of tool calls: their results in the journal, and for those on a connection its record
and its last use.

PostgreSQL does all of it in one statement, by its own clock: the agent waits for it.
"""

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Select,
    Text,
    Update,
    bindparam,
    case,
    column,
    func,
    insert,
    or_,
    select,
    text,
    update,
)

from backburner.core.connections.call import CallOutcome
from backburner.core.ids import CallId
from backburner.ports import CallEnd
from backburner.store.context import Context
from backburner.store.dialect import has_row_locks
from backburner.store.mapping import dump_references
from backburner.store.records.calls.connection_calls import COPIED
from backburner.store.records.connections import USE_INTERVAL, Connections
from backburner.store.tables import connection_calls, connections, tool_calls
from backburner.store.types import Time

_update = update(tool_calls).where(
    tool_calls.c.user_id == bindparam("owner"),
    tool_calls.c.epoch == bindparam("held_epoch"),
    tool_calls.c.state == "started",
)
_update_one = (
    _update.where(tool_calls.c.id == bindparam("call_id"))
    .values(
        state="done",
        result=bindparam("new_result"),
        failed=bindparam("has_failed"),
        files=bindparam("new_files"),
        ended_at=bindparam("at"),
    )
    .returning(tool_calls)
)
_copy = insert(connection_calls)

_interval = text(f"interval '{USE_INTERVAL.total_seconds()} seconds'")


def _record_ends(ends: Update, *, worked: bool) -> Select[tuple[str]]:
    """Build the statement that ends calls, copies them to the record, and notes the last use."""
    ended = ends.returning(tool_calls).cte("ended")
    outcome = case((ended.c.failed, CallOutcome.FAILED.value), else_=CallOutcome.DONE.value)
    copied = insert(connection_calls).from_select(
        [*COPIED, "outcome"],
        select(*(ended.c[name] for name in COPIED), outcome).where(
            ended.c.connection_id.is_not(None)
        ),
    )
    used = (
        update(connections)
        .where(
            connections.c.user_id == ended.c.user_id,
            connections.c.id == ended.c.connection_id,
            or_(
                connections.c.last_used_at.is_(None),
                connections.c.last_used_at <= ended.c.ended_at.op("-")(_interval),
                connections.c.last_error != "",
            ),
        )
        .values(last_used_at=ended.c.ended_at, last_error="", last_error_at=None)
    )
    statement = select(ended.c.id).add_cte(copied.cte("recorded"))
    return statement.add_cte(used.cte("used")) if worked else statement


_rows = (
    func.json_to_recordset(bindparam("rows", type_=Text()).cast(JSON))
    .table_valued(
        column("id", Text()),
        column("result", Text()),
        column("failed", Boolean()),
        column("files", Text()),
    )
    .render_derived(with_types=True)
)
#: For all that PostgreSQL knows there may be many, and it would scan the table for them.
_few_rows = select(_rows).limit(bindparam("count", type_=BigInteger())).subquery("given")
_update_all = _update.where(tool_calls.c.id == _few_rows.c.id).values(
    state="done",
    result=_few_rows.c.result,
    failed=_few_rows.c.failed,
    files=_few_rows.c.files,
    ended_at=func.coalesce(bindparam("at", type_=Time), func.clock_timestamp()),
)
_end = _record_ends(_update_all, worked=False)
_end_with_use = _record_ends(_update_all, worked=True)


def write(
    tx: Context, held: Mapping[str, Any], ends: Sequence[CallEnd], *, worked: bool
) -> Container[CallId]:
    """Store the ends of calls, and return which of them had begun and not ended before."""
    if not has_row_locks(tx.connection):
        return {end.call_id for end in ends if _write_one(tx, held, end, worked=worked)}
    rows = [
        {
            "id": end.call_id,
            "result": end.result,
            "failed": end.failed,
            "files": dump_references(end.files),
        }
        for end in ends
    ]
    given = {**held, "rows": json.dumps(rows), "count": len(rows), "at": tx.known_time}
    ended = tx.connection.execute(_end_with_use if worked else _end, given)
    return {CallId(row.id) for row in ended}


def _write_one(tx: Context, held: Mapping[str, Any], end: CallEnd, *, worked: bool) -> bool:
    values = {
        **held,
        "call_id": end.call_id,
        "new_result": end.result,
        "has_failed": end.failed,
        "new_files": dump_references(end.files),
        "at": tx.now,
    }
    row = tx.connection.execute(_update_one, values).one_or_none()
    if row is not None and row.connection_id is not None:
        outcome = CallOutcome.FAILED if row.failed else CallOutcome.DONE
        copied = {name: getattr(row, name) for name in COPIED}
        tx.connection.execute(_copy, {**copied, "outcome": outcome.value})
        if worked:
            Connections(tx).note_use(row.user_id, row.connection_id, at=tx.now)
    return row is not None
