"""The writer of a SQLite file: transactions that wait at the same time share a commit.

A file has one writer, and each commit waits for the disk. In a group, each transaction has a
savepoint of its own, so an error undoes only what belongs to it. Nobody gets a result before the
commit. If the database itself fails, each is tried by itself.
"""

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any

import structlog
from sqlalchemy import Connection, Engine

from backburner.store.attempt import Attempt
from backburner.store.tx import Tx

MAX_GROUP_SIZE = 16
#: No further transaction joins a group that is older: the first ones wait for all of it.
MAX_GROUP_SECONDS = 0.02

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A transaction to be run, and its attempt."""

    work: Callable[[Tx], Any]
    attempt: Attempt
    result: "Future[Any]" = field(default_factory=Future)


@dataclass(frozen=True, slots=True)
class _JobResult:
    """A transaction that is done but for the commit."""

    value: Any = None
    tx: Tx | None = None
    error: BaseException | None = None


class FileWriter:
    def __init__(
        self,
        engine: Engine,
        thread: Executor,
        *,
        begin: Callable[[Connection], Tx],
        alone: Callable[[Job], Any],
        tell: Callable[[Tx], None],
    ) -> None:
        self._engine = engine
        #: Runs one thing at a time.
        self._thread = thread
        self._begin = begin
        self._alone = alone
        #: Sends the hints of a transaction that was committed.
        self._tell = tell
        self._waiting = deque[Job]()

    def submit(self, work: Callable[[Tx], Any], attempt: Attempt) -> "Future[Any]":
        job = Job(work, attempt)
        self._waiting.append(job)
        try:
            # Once for each: later ones find nothing if an earlier one has taken several.
            self._thread.submit(self._run_waiting)
        except RuntimeError:
            # The thread has ended, or is about to.
            job.result.cancel()
            raise
        return job.result

    def close(self) -> None:
        """Give up the transactions that still wait."""
        while (job := self._pop()) is not None:
            job.result.cancel()

    def _take(self, taken: list[Job]) -> Job | None:
        """Take the next transaction that somebody still waits for."""
        while (job := self._pop()) is not None:
            if job.result.set_running_or_notify_cancel():
                taken.append(job)
                return job
        return None

    def _pop(self) -> Job | None:
        try:
            return self._waiting.popleft()
        except IndexError:
            # Nothing waits, or another thread was faster.
            return None

    def _run_waiting(self) -> None:
        taken = list[Job]()
        try:
            self._run_group(taken)
        except BaseException as error:  # noqa: BLE001 (nobody may wait for ever)
            for job in taken:
                if not job.result.done():
                    job.result.set_exception(error)

    def _run_group(self, taken: list[Job]) -> None:
        """Take the transactions that wait, and run them under one commit; one by itself."""
        job = self._take(taken)
        if job is None:
            return
        if not self._waiting:
            self._run_alone(job)
            return
        done, until = list[_JobResult](), time.monotonic() + MAX_GROUP_SECONDS
        try:
            with self._engine.connect() as connection, connection.begin():
                while job is not None:
                    done.append(self._run_in_savepoint(connection, job))
                    is_full = len(taken) == MAX_GROUP_SIZE or time.monotonic() > until
                    job = None if is_full else self._take(taken)
        except Exception:  # noqa: BLE001 (each of them finds out by itself)
            _log.info("transactions.tried_one_by_one", transactions=len(taken), exc_info=True)
            for one in taken:
                self._run_alone(one)
            return
        for one, result in zip(taken, done, strict=True):
            self._settle(one, result)

    def _settle(self, job: Job, result: _JobResult) -> None:
        """Give the result of a transaction that was committed to whoever waits for it."""
        try:
            if result.tx is not None:
                self._tell(result.tx)
        except Exception as error:  # noqa: BLE001 (others wait for theirs)
            result = _JobResult(error=error)
        if result.error is not None:
            job.result.set_exception(result.error)
        else:
            job.result.set_result(result.value)

    def _run_in_savepoint(self, connection: Connection, job: Job) -> _JobResult:
        driver: Any = connection.connection.driver_connection
        driver.execute("SAVEPOINT one_of_several")
        try:
            with job.attempt.covers(connection):
                tx = self._begin(connection)
                with tx.gathering():
                    done = _JobResult(job.work(tx), tx)
        except BaseException as error:  # noqa: BLE001 (it is given to whoever waits)
            # Raises if the error has ended the whole transaction.
            driver.execute("ROLLBACK TO one_of_several")
            done = _JobResult(error=error)
        driver.execute("RELEASE one_of_several")
        return done

    def _run_alone(self, job: Job) -> None:
        try:
            value = self._alone(job)
        except BaseException as error:  # noqa: BLE001 (it is given to whoever waits)
            job.result.set_exception(error)
        else:
            job.result.set_result(value)
