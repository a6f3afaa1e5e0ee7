"""Calls that were made on connections, for their owner to look at. Arguments are digests only."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Integer,
    Row,
    Select,
    and_,
    bindparam,
    case,
    cast,
    delete,
    exists,
    extract,
    func,
    insert,
    literal,
    select,
    type_coerce,
)

from backburner.core.connections.call import (
    MAX_TOLD_CHARS,
    SLOT,
    SLOW_CALL,
    CallCounts,
    CallOutcome,
    ConnectionCall,
    cut_told,
)
from backburner.core.ids import CallId, ConnectionId, ConversationId, RunId, UserId
from backburner.store.context import Group
from backburner.store.dialect import has_row_locks
from backburner.store.tables import connection_calls, tool_calls
from backburner.store.types import MICROSECOND, to_micros

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
#: Whitespace is taken out of it later.
_told = func.substr(tool_calls.c.result, 1, 2 * MAX_TOLD_CHARS).label("told")
_select_page = (
    select(connection_calls, _told)
    .outerjoin(
        tool_calls,
        and_(
            tool_calls.c.user_id == connection_calls.c.user_id,
            tool_calls.c.id == connection_calls.c.id,
            connection_calls.c.outcome == CallOutcome.FAILED.value,
        ),
    )
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


def _micros_on_sqlite(column: Column[datetime]) -> ColumnElement[int]:
    return type_coerce(column, BigInteger())


def _micros_on_postgres(column: Column[datetime]) -> ColumnElement[int]:
    return cast(extract("epoch", column) * 1_000_000, BigInteger())


def _build_count(*, on_postgres: bool) -> Select[Any]:
    calls = connection_calls.c
    micros = _micros_on_postgres if on_postgres else _micros_on_sqlite
    began = micros(calls.started_at)
    took = micros(calls.ended_at) - began
    slot = (began - bindparam("from_micros", type_=BigInteger())) // literal(
        SLOT // MICROSECOND, BigInteger(), literal_execute=True
    )
    counted = (
        select(
            calls.connection_id,
            slot.label("slot"),
            calls.outcome,
            took.label("took"),
        )
        .where(
            calls.user_id == bindparam("owner"),
            calls.connection_id.in_(bindparam("ids", expanding=True)),
            calls.started_at >= bindparam("since"),
        )
        .subquery()
    ).c
    slow = counted.took > literal(SLOW_CALL // MICROSECOND, BigInteger(), literal_execute=True)
    return select(
        counted.connection_id,
        counted.slot,
        func.count().label("calls"),
        _count_where(counted.outcome == CallOutcome.FAILED.value).label("failed"),
        _count_where(counted.outcome == CallOutcome.UNKNOWN.value).label("unknown"),
        _count_where(slow).label("slow"),
        cast(func.sum(counted.took), BigInteger()).label("took"),
    ).group_by(counted.connection_id, counted.slot)


def _count_where(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((condition, 1), else_=0)), 0)


_count_on_sqlite = _build_count(on_postgres=False)
_count_on_postgres = _build_count(on_postgres=True)
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

    def count(
        self, user: UserId, connection_ids: Sequence[ConnectionId], *, since: datetime
    ) -> Mapping[ConnectionId, Sequence[CallCounts]]:
        is_postgres = has_row_locks(self.connection)
        values = {
            "owner": user,
            "ids": list(connection_ids),
            "since": since,
            "from_micros": to_micros(since),
        }
        found = dict[ConnectionId, list[CallCounts]]()
        for row in self._execute(_count_on_postgres if is_postgres else _count_on_sqlite, values):
            counts = CallCounts(
                at=since + SLOT * row.slot,
                calls=row.calls,
                failed=row.failed,
                unknown=row.unknown,
                slow=row.slow,
                took=timedelta(microseconds=row.took),
            )
            found.setdefault(ConnectionId(row.connection_id), []).append(counts)
        return found

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
        told=cut_told(row.told or ""),
    )
