"""The install as a whole, as operators see it: workers, queue, database and failures."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from backburner.core.ids import UserId

#: More rows than this are not counted.
MAX_COUNT = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """The report of a worker about itself."""

    name: str
    host: str
    version: str
    started_at: datetime
    seats: int
    seats_used: int
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class WorkerRow:
    report: WorkerReport
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """Work of all users; counts end at `MAX_COUNT`."""

    #: Runs that could be claimed now, and how long the oldest has waited.
    due: int
    oldest_wait: timedelta
    running: int
    #: Runs that were handed back.
    queued: int
    #: Messages and answers of users that no run has served.
    users_waiting: int
    is_paused: bool


@dataclass(frozen=True, slots=True)
class DatabaseState:
    #: sqlite or postgresql.
    kind: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """Deliveries of all users; counts end at `MAX_COUNT`."""

    waiting: int
    #: For good, since a time.
    failed: int


class TroubleKind(StrEnum):
    RUN = "run"  #: A run that failed.
    DELIVERY = "delivery"  #: A notice that could not be sent.
    CONNECTION = "connection"  #: The sign-in of a connection was refused.
    MODEL = "model"  #: The key of a model was refused, or there is no credit left.


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubleRow:
    """Something of a user that failed, without any of its content."""

    kind: TroubleKind
    id: str
    #: Null of trouble of the install.
    user_id: UserId | None
    login: str | None
    name: str
    at: datetime
    #: The kind of failure of a run, the channel of a delivery; empty otherwise.
    cause: str


class Operations(Protocol):
    def report(self, worker: WorkerReport) -> None:
        """Write the row of a worker. One statement."""

    def forget(self, name: str) -> None: ...
    def prune(self, *, before: datetime) -> None:
        """Delete the rows of workers that were last seen before."""

    def workers(self, *, limit: int) -> Sequence[WorkerRow]: ...
    def queue(self) -> QueueState: ...
    def deliveries(self, *, since: datetime) -> DeliveryCounts: ...
    def database(self) -> DatabaseState: ...
    def troubles(self, *, limit: int) -> Sequence[TroubleRow]:
        """List what failed last, newest first."""
