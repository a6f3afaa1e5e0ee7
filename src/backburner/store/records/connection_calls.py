"""Calls that were made on connections, for their owner to look at. Arguments are digests only."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Insert,
    Integer,
    Row,
    and_,
    bindparam,
    case,
    delete,
    exists,
    insert,
    select,
)

from backburner.core.connections.call import CallOutcome, ConnectionCall
from backburner.core.ids import CallId, ConnectionId, ConversationId, RunId, UserId
from backburner.store.context import Group
from backburner.store.tables import connection_calls, tool_calls

_copied = [column.name for column in connection_calls.columns if column.name != "outcome"]
_outcome = case(
    (tool_calls.c.state == "unknown", CallOutcome.UNKNOWN.value),
    (tool_calls.c.failed, CallOutcome.FAILED.value),
    else_=CallOutcome.DONE.value,
)
_is_recorded = exists().where(
    connection_calls.c.user_id == tool_calls.c.user_id, connection_calls.c.id == tool_calls.c.id
)


def _record(which: ColumnElement[bool]) -> Insert:
    ended = select(*(tool_calls.c[name] for name in _copied), _outcome).where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.connection_id.is_not(None),
        tool_calls.c.ended_at.is_not(None),
        which,
        ~_is_recorded,
    )
    return insert(connection_calls).from_select([*_copied, "outcome"], ended)


_record_one = _record(tool_calls.c.id == bindparam("call_id"))
_record_of_run = _record(
    and_(tool_calls.c.run_id == bindparam("run"), tool_calls.c.state == "unknown")
)
_select_page = (
    select(connection_calls)
    .where(
        connection_calls.c.user_id == bindparam("owner"),
        connection_calls.c.id < bindparam("before"),
    )
    .order_by(connection_calls.c.id.desc())
    .limit(bindparam("limit", type_=Integer()))
)
_select_page_of_one = _select_page.where(
    connection_calls.c.connection_id == bindparam("connection_id")
)
_select_old = (
    select(connection_calls.c.user_id, connection_calls.c.id)
    .where(connection_calls.c.started_at < bindparam("begun_before"))
    .order_by(connection_calls.c.started_at)
    .limit(bindparam("limit", type_=Integer()))
)
_delete = delete(connection_calls).where(
    connection_calls.c.user_id == bindparam("owner"), connection_calls.c.id == bindparam("call_id")
)
#: Comes after every id.
_END = "~"


class ConnectionCalls(Group):
    def record(self, user: UserId, call_id: CallId) -> None:
        """Record a call from its entry in the journal."""
        self._execute(_record_one, {"owner": user, "call_id": call_id})

    def record_unknown(self, user: UserId, run_id: RunId) -> None:
        """Record the calls of a run of which nobody knows whether they were made."""
        self._execute(_record_of_run, {"owner": user, "run": run_id})

    def page(
        self,
        user: UserId,
        connection_id: ConnectionId | None = None,
        *,
        before: str = "",
        limit: int,
    ) -> Sequence[ConnectionCall]:
        """List calls, newest first, of one connection or of all."""
        values = {"owner": user, "before": before or _END, "limit": limit}
        if connection_id is None:
            return [_to_call(row) for row in self._execute(_select_page, values)]
        rows = self._execute(_select_page_of_one, {**values, "connection_id": connection_id})
        return [_to_call(row) for row in rows]

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete calls that began before a time."""
        old = self._execute(_select_old, {"begun_before": before, "limit": limit}).all()
        for row in old:
            self._execute(_delete, {"owner": row.user_id, "call_id": row.id})
        return len(old)


def _to_call(row: Row[Any]) -> ConnectionCall:
    return ConnectionCall(
        id=CallId(row.id),
        connection_id=ConnectionId(row.connection_id),
        server=row.server,
        tool=row.tool,
        conversation_id=ConversationId(row.conversation_id),
        run_id=RunId(row.run_id),
        digest=row.digest,
        outcome=CallOutcome(row.outcome),
        started_at=row.started_at,
        ended_at=row.ended_at,
    )
