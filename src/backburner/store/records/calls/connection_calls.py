"""Calls that were made on connections, for their owner to look at. Arguments are digests only."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Integer,
    Row,
    bindparam,
    delete,
    exists,
    insert,
    literal,
    select,
)

from backburner.core.connections.call import CallOutcome, ConnectionCall
from backburner.core.ids import CallId, ConnectionId, ConversationId, RunId, UserId
from backburner.store.context import Group
from backburner.store.tables import connection_calls, tool_calls

COPIED = [column.name for column in connection_calls.columns if column.name != "outcome"]
_is_recorded = exists().where(
    connection_calls.c.user_id == tool_calls.c.user_id, connection_calls.c.id == tool_calls.c.id
)


#: A run may end more than once, so what is recorded stays.
_record_of_run = insert(connection_calls).from_select(
    [*COPIED, "outcome"],
    select(*(tool_calls.c[name] for name in COPIED), literal(CallOutcome.UNKNOWN.value)).where(
        tool_calls.c.user_id == bindparam("owner"),
        tool_calls.c.run_id == bindparam("run"),
        tool_calls.c.connection_id.is_not(None),
        tool_calls.c.ended_at.is_not(None),
        tool_calls.c.state == "unknown",
        ~_is_recorded,
    ),
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
