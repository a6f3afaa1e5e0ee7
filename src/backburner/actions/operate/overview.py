"""The state of the install for operators: workers, queue, models, database and failures.

Nothing here is content of a user.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.core.retry import Outage
from backburner.core.run import FailureKind
from backburner.ports import (
    DatabaseState,
    DeliveryCounts,
    QueueState,
    TroubleKind,
    TroubleRow,
    Tx,
    WorkerRow,
)

MAX_WORKERS = 200
MAX_FAILURES = 50
#: A worker reports every 30 seconds.
MISSING_AFTER = timedelta(seconds=90)
DELIVERY_PERIOD = timedelta(days=1)

_RUN_WORDS: Mapping[str, str] = {
    FailureKind.TIMEOUT: "A run exceeded its time limit.",
    FailureKind.INCOMPLETE: "An agent ended its run without a valid outcome.",
    FailureKind.CRASHED: "The process of a run ended or was lost.",
    FailureKind.UNAVAILABLE: "The model's provider had trouble for too long.",
    FailureKind.ACCESS_DENIED: "The model's key was refused, or there is no credit left.",
    FailureKind.MODEL: "The model refused a request.",
    FailureKind.TOOL: "A tool kept failing.",
    FailureKind.SIGNED_OUT: "A connection needs its owner to sign in again.",
    FailureKind.ENGINE: "The agent failed.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    at: datetime
    version: str
    #: When this process was started.
    started_at: datetime | None
    queue: QueueState
    #: The last seen first.
    workers: Sequence[WorkerRow]
    outages: Sequence[Outage]
    deliveries: DeliveryCounts
    database: DatabaseState

    def is_missing(self, worker: WorkerRow) -> bool:
        return self.at - worker.seen_at > MISSING_AFTER


@dataclass(frozen=True, slots=True)
class FailureReport:
    row: TroubleRow
    #: Our own words, without any of the user's.
    message: str


async def read_overview(deps: Deps) -> Overview:
    def work(tx: Tx) -> Overview:
        return Overview(
            at=tx.now,
            version=__version__,
            started_at=deps.started_at,
            queue=tx.operations.queue(),
            workers=tx.operations.workers(limit=MAX_WORKERS),
            outages=tx.outages.all(),
            deliveries=tx.operations.deliveries(since=tx.now - DELIVERY_PERIOD),
            database=tx.operations.database(),
        )

    return await deps.store.read(work)


async def list_failures(deps: Deps) -> Sequence[FailureReport]:
    """List what failed last, of all users, newest first."""
    rows, outages = await deps.store.read(
        lambda tx: (tx.operations.troubles(limit=MAX_FAILURES), tx.outages.all())
    )
    denied = [
        TroubleRow(
            kind=TroubleKind.MODEL,
            id=outage.profile,
            user_id=None,
            login=None,
            name="",
            at=outage.since,
            cause=outage.kind.value,
        )
        for outage in outages
        if outage.kind is FailureKind.ACCESS_DENIED
    ]
    newest = sorted([*rows, *denied], key=lambda row: row.at, reverse=True)[:MAX_FAILURES]
    return [FailureReport(row, _describe(row)) for row in newest]


def _describe(row: TroubleRow) -> str:
    match row.kind:
        case TroubleKind.RUN:
            return _RUN_WORDS.get(row.cause, "A run failed.")
        case TroubleKind.DELIVERY:
            return f"A notice could not be sent on {row.cause}."
        case TroubleKind.CONNECTION:
            return "The sign-in of a connection was refused. Its owner has to sign in again."
        case TroubleKind.MODEL:
            return f"The key of the model {row.id} was refused, or there is no credit left."
