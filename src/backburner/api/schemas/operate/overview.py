"""The state of the install, and what failed last, as operators see them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Self

from pydantic import BaseModel, Field

from backburner.actions.operate.overview import DELIVERY_PERIOD, FailureReport, Overview
from backburner.api.schemas.base import example
from backburner.core.retry import Outage
from backburner.core.run import FailureKind
from backburner.ports import MAX_COUNT, TroubleKind, WorkerRow

_SECOND = timedelta(seconds=1)
_WORKER = {
    "name": "server:4711:0a1b2c3d",
    "host": "server",
    "version": "0.1.0",
    "started_at": "2026-11-16T08:00:00Z",
    "seen_at": "2026-11-16T11:59:45Z",
    "missing": False,
    "draining": False,
    "seats": 5,
    "seats_used": 1,
}


class WorkerOut(BaseModel):
    name: str
    host: str
    version: str
    started_at: datetime
    seen_at: datetime = Field(description="It reports twice a minute while it runs.")
    missing: bool = Field(description="It has not reported for a while, and may be gone.")
    draining: bool = Field(description="It stops, and takes no more work.")
    seats: int
    seats_used: int

    @classmethod
    def of(cls, row: WorkerRow, *, missing: bool) -> Self:
        report = row.report
        return cls(
            name=report.name,
            host=report.host,
            version=report.version,
            started_at=report.started_at,
            seen_at=row.seen_at,
            missing=missing,
            draining=report.is_draining,
            seats=report.seats,
            seats_used=report.seats_used,
        )


class QueueOut(BaseModel):
    due: int = Field(description="Runs that could be claimed now.")
    oldest_wait_seconds: int = Field(description="How long the oldest of them has waited.")
    running: int
    queued: int = Field(description="Runs that were handed back, and go on later.")
    users_waiting: int = Field(description="Messages and answers that no run has served yet.")


class OutageOut(BaseModel):
    profile: str
    kind: FailureKind
    message: str
    since: datetime
    next_try_at: datetime

    @classmethod
    def of(cls, outage: Outage) -> Self:
        return cls(
            profile=outage.profile,
            kind=outage.kind,
            message=outage.message,
            since=outage.since,
            next_try_at=outage.until,
        )


class DeliveryCountsOut(BaseModel):
    waiting: int
    failed: int = Field(description=f"In the last {DELIVERY_PERIOD // _SECOND // 3600} hours.")


class DatabaseOut(BaseModel):
    kind: str = Field(description="`sqlite` or `postgresql`.")
    size_bytes: int


class OverviewOut(BaseModel):
    model_config = example(
        at="2026-11-16T12:00:00Z",
        version="0.1.0",
        started_at="2026-11-16T08:00:00Z",
        uptime_seconds=14_400,
        paused=False,
        database={"kind": "sqlite", "size_bytes": 4_194_304},
        workers=[_WORKER],
        queue={
            "due": 0,
            "oldest_wait_seconds": 0,
            "running": 1,
            "queued": 0,
            "users_waiting": 0,
        },
        outages=[],
        deliveries={"waiting": 0, "failed": 0},
        max_count=MAX_COUNT,
    )

    at: datetime
    version: str = Field(description="Of this server.")
    started_at: datetime | None = Field(description="When this server was started.")
    uptime_seconds: int | None
    paused: bool = Field(description="All background work of all users is paused.")
    database: DatabaseOut
    workers: Sequence[WorkerOut] = Field(description="The last seen first, 200 at most.")
    queue: QueueOut
    outages: Sequence[OutageOut]
    deliveries: DeliveryCountsOut
    max_count: int = Field(description="Counts end here: there may be more.")

    @classmethod
    def of(cls, overview: Overview) -> Self:
        started_at, queue = overview.started_at, overview.queue
        uptime = None if started_at is None else max(overview.at - started_at, timedelta())
        return cls(
            at=overview.at,
            version=overview.version,
            started_at=started_at,
            uptime_seconds=None if uptime is None else uptime // _SECOND,
            paused=queue.is_paused,
            database=DatabaseOut(
                kind=overview.database.kind, size_bytes=overview.database.size_bytes
            ),
            workers=[
                WorkerOut.of(row, missing=overview.is_missing(row)) for row in overview.workers
            ],
            queue=QueueOut(
                due=queue.due,
                oldest_wait_seconds=queue.oldest_wait // _SECOND,
                running=queue.running,
                queued=queue.queued,
                users_waiting=queue.users_waiting,
            ),
            outages=[OutageOut.of(outage) for outage in overview.outages],
            deliveries=DeliveryCountsOut(
                waiting=overview.deliveries.waiting, failed=overview.deliveries.failed
            ),
            max_count=MAX_COUNT,
        )


class FailureReportOut(BaseModel):
    model_config = example(
        kind="run",
        id="r_0123456789abcdefghjkmnpqrs",
        user="u_0123456789abcdefghjkmnpqrs",
        login="ada",
        name="Ada",
        at="2026-11-16T12:00:00Z",
        cause="timeout",
        message="A run exceeded its time limit.",
    )

    kind: TroubleKind
    id: str = Field(description="Of the run, notice or connection; the profile of a model.")
    user: str | None = Field(description="Whose it is; null: of the install.")
    login: str | None
    name: str
    at: datetime
    cause: str = Field(description="The kind of failure of a run, or the channel of a delivery.")
    message: str = Field(description="In our words: nothing of the user's work is in it.")

    @classmethod
    def of(cls, report: FailureReport) -> Self:
        row = report.row
        return cls(
            kind=row.kind,
            id=row.id,
            user=row.user_id,
            login=row.login,
            name=row.name,
            at=row.at,
            cause=row.cause,
            message=report.message,
        )
