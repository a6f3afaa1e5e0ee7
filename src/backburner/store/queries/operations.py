"""The state of the install as a whole, for operators.

Each statement reads the start of an index that has few rows, and counts end at a limit.
"""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Row,
    Text,
    bindparam,
    delete,
    exists,
    func,
    literal,
    literal_column,
    select,
    text,
    union_all,
)

from backburner.core.ids import UserId
from backburner.ports import (
    MAX_COUNT,
    DatabaseState,
    DeliveryCounts,
    QueueState,
    TroubleKind,
    TroubleRow,
    WorkerReport,
    WorkerRow,
)
from backburner.store.context import Group
from backburner.store.dialect import database_size, upsert
from backburner.store.queries import gauges
from backburner.store.tables import (
    PAUSED,
    connections,
    deliveries,
    inbox,
    install,
    is_queued,
    is_running,
    is_unsent,
    is_unserved,
    runs,
    users,
    workers,
)

_limit: BindParameter[Any] = bindparam("limit")
_select_workers = (
    # Those that were seen last, whatever is left of others.
    select(workers).order_by(workers.c.seen_at.desc(), workers.c.name).limit(_limit)
)
_delete_worker = delete(workers).where(workers.c.name == bindparam("worker"))
_delete_unseen = delete(workers).where(workers.c.seen_at < bindparam("before"))


def _count(column: Any, *conditions: Any) -> Any:
    rows = select(column).where(*conditions).limit(MAX_COUNT).subquery()
    return select(func.count()).select_from(rows).scalar_subquery()


_oldest: ColumnElement[Any] = literal_column("at")
_count_claimable = [
    select(func.count(), func.min(rows.c.at))
    for rows in (
        gauges.due.order_by(_oldest).limit(MAX_COUNT).subquery(),
        gauges.resumable.order_by(_oldest).limit(MAX_COUNT).subquery(),
        # In the order of its index: their times have none.
        gauges.waiting.limit(MAX_COUNT).subquery(),
    )
]
_select_counts = select(
    _count(runs.c.id, is_running).label("running"),
    _count(runs.c.id, is_queued).label("queued"),
    _count(inbox.c.conversation_id, is_unserved, inbox.c.from_person).label("users_waiting"),
    exists().where(install.c.key == PAUSED).label("is_paused"),
)
_has_failed = text("deliveries.state = 'failed'")
_select_deliveries = select(
    _count(deliveries.c.number, is_unsent).label("waiting"),
    _count(
        deliveries.c.number,
        _has_failed,
        deliveries.c.not_before >= bindparam("since", type_=deliveries.c.not_before.type),
    ).label("failed"),
)


def _newest(kind: TroubleKind, of: Any, *columns: Any, where: Any, at: Any) -> Any:
    names = ("id", "user_id", "at", "cause")
    labelled = (column.label(name) for name, column in zip(names, columns, strict=True))
    newest = (
        select(literal(kind.value, Text).label("kind"), *labelled)
        .select_from(of)
        .where(where, at.is_not(None))
        .order_by(at.desc())
        .limit(_limit)
        .subquery()
    )
    return select(newest, users.c.login, users.c.name).join(
        users, users.c.id == newest.c.user_id, isouter=True
    )


_select_troubles = union_all(
    _newest(
        TroubleKind.RUN,
        runs,
        *(runs.c.id, runs.c.user_id, runs.c.ended_at, func.coalesce(runs.c.failure_kind, "")),
        where=text("runs.status = 'failure'"),
        at=runs.c.ended_at,
    ),
    _newest(
        TroubleKind.DELIVERY,
        deliveries,
        *(deliveries.c.notice_id, deliveries.c.user_id),
        *(deliveries.c.not_before, deliveries.c.channel),
        where=_has_failed,
        at=deliveries.c.not_before,
    ),
    _newest(
        TroubleKind.CONNECTION,
        connections,
        *(connections.c.id, connections.c.user_id),
        *(connections.c.last_error_at, literal("", Text)),
        where=text("connections.state = 'signed_out'"),
        at=connections.c.last_error_at,
    ),
)


class Operations(Group):
    def report(self, worker: WorkerReport) -> None:
        row = asdict(worker)
        row["draining"] = row.pop("is_draining")
        upsert(self.connection, workers, {**row, "seen_at": self.tx.now})

    def forget(self, name: str) -> None:
        self._execute(_delete_worker, {"worker": name})

    def prune(self, *, before: datetime) -> None:
        self._execute(_delete_unseen, {"before": before})

    def workers(self, *, limit: int) -> Sequence[WorkerRow]:
        rows = self._execute(_select_workers, {"limit": limit})
        return [_to_worker(row) for row in rows]

    def queue(self) -> QueueState:
        row = self._execute(_select_counts).one()
        claimable = [
            self._execute(statement, {"now": self.tx.now}).one() for statement in _count_claimable
        ]
        now = self.tx.now
        oldest_at = min((since for _, since in claimable if since is not None), default=now)
        return QueueState(
            due=min(MAX_COUNT, sum(count for count, _ in claimable)),
            oldest_wait=max(now - oldest_at, timedelta()),
            running=row.running,
            queued=row.queued,
            users_waiting=row.users_waiting,
            is_paused=bool(row.is_paused),
        )

    def deliveries(self, *, since: datetime) -> DeliveryCounts:
        row = self._execute(_select_deliveries, {"since": since}).one()
        return DeliveryCounts(row.waiting, row.failed)

    def database(self) -> DatabaseState:
        return DatabaseState(self.connection.dialect.name, database_size(self.connection))

    def troubles(self, *, limit: int) -> Sequence[TroubleRow]:
        rows = self._execute(_select_troubles, {"limit": limit})
        newest = sorted(map(_to_trouble, rows), key=lambda row: (row.at, row.id), reverse=True)
        return newest[:limit]


def _to_worker(row: Row[Any]) -> WorkerRow:
    report = WorkerReport(
        name=row.name,
        host=row.host,
        version=row.version,
        started_at=row.started_at,
        seats=row.seats,
        seats_used=row.seats_used,
        is_draining=row.draining,
    )
    return WorkerRow(report, row.seen_at)


def _to_trouble(row: Row[Any]) -> TroubleRow:
    return TroubleRow(
        kind=TroubleKind(row.kind),
        id=row.id,
        user_id=UserId(row.user_id),
        login=row.login,
        name=row.name or "",
        at=row.at,
        cause=row.cause,
    )
