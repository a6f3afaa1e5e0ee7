"""The end of a tool call: its result in the journal, and for a call on a connection its record and
the last use of that connection.

PostgreSQL does all of it in one statement, by its own clock: the agent waits for it.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import bindparam, case, func, insert, or_, select, text, update

from backburner.core.connections.call import CallOutcome
from backburner.store.context import Context
from backburner.store.dialect import has_row_locks
from backburner.store.records.calls.connection_calls import COPIED
from backburner.store.records.connections import USE_INTERVAL, Connections
from backburner.store.tables import connection_calls, connections, tool_calls
from backburner.store.types import Time

NEW_VALUES = {
    "state": "done",
    "result": bindparam("new_result"),
    "failed": bindparam("has_failed"),
    "files": bindparam("new_files"),
}
_update = (
    update(tool_calls)
    .where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.id == bindparam("call_id"),
        tool_calls.c.epoch == bindparam("held_epoch"),
        tool_calls.c.state == "started",
    )
    .values(NEW_VALUES)
)
_update_at = _update.values(ended_at=bindparam("at")).returning(tool_calls)
_record = insert(connection_calls)

_now = func.coalesce(bindparam("at", type_=Time), func.clock_timestamp())
_ended = _update.values(ended_at=_now).returning(tool_calls).cte("ended")
_outcome = case((_ended.c.failed, CallOutcome.FAILED.value), else_=CallOutcome.DONE.value)
_recorded = insert(connection_calls).from_select(
    [*COPIED, "outcome"],
    select(*(_ended.c[name] for name in COPIED), _outcome).where(
        _ended.c.connection_id.is_not(None)
    ),
)
_interval = text(f"interval '{USE_INTERVAL.total_seconds()} seconds'")
_used = (
    update(connections)
    .where(
        connections.c.user_id == _ended.c.user_id,
        connections.c.id == _ended.c.connection_id,
        or_(
            connections.c.last_used_at.is_(None),
            connections.c.last_used_at <= _ended.c.ended_at.op("-")(_interval),
            connections.c.last_error != "",
        ),
    )
    .values(last_used_at=_ended.c.ended_at, last_error="", last_error_at=None)
)
_end = select(_ended.c.id).add_cte(_recorded.cte("recorded"))
_end_with_use = _end.add_cte(_used.cte("used"))


def write(tx: Context, values: Mapping[str, Any], *, worked: bool) -> bool:
    """Store the end of a call; False: it had not begun, or had ended before."""
    if has_row_locks(tx.connection):
        statement = _end_with_use if worked else _end
        given = {**values, "at": tx.known_time}
        return tx.connection.execute(statement, given).first() is not None
    row = tx.connection.execute(_update_at, {**values, "at": tx.now}).one_or_none()
    if row is not None and row.connection_id is not None:
        outcome = CallOutcome.FAILED if row.failed else CallOutcome.DONE
        copied = {name: getattr(row, name) for name in COPIED}
        tx.connection.execute(_record, {**copied, "outcome": outcome.value})
        if worked:
            Connections(tx).note_use(row.user_id, row.connection_id, at=tx.now)
    return row is not None
