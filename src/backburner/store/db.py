"""The database: runs transactions, each a plain function of a `Tx`, that write or only read.

On PostgreSQL every transaction has a deadline on this side of the connection: a server that stands
still, or a line that swallows everything, ends neither by the timeouts of the server nor of TCP.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import Turn
from backburner.ports import LONG_DEADLINE, RUN_DEADLINE, URGENT_DEADLINE, Bus
from backburner.store.attempt import Attempt
from backburner.store.commit_groups import CommitGroups, RunCommit
from backburner.store.dialect import (
    READERS,
    THREADS,
    URGENT_READERS,
    URGENT_THREADS,
    Clock,
    is_in_memory,
    is_sqlite,
    make_reading_engine,
    make_single_engine,
)
from backburner.store.failures import (
    DISK_FULL,
    LOCKED,
    NO_ANSWER,
    NO_HANDLES,
    explain,
    is_connection_lost,
    is_refused_write,
    is_retryable,
    no_handles,
)
from backburner.store.file_writer import FileWriter
from backburner.store.tx import Tx
from backburner.store.writes import FollowerFound

T = TypeVar("T")
#: Attempts at a transaction that conflicts with others.
MAX_TRIES = 3
#: When the database is closed, for transactions to end, and then for threads that were cut off.
CLOSE_GRACE_SECONDS, CUT_GRACE_SECONDS = 1.0, 1.0


class Database:
    """Runs transactions, and sends their hints over `bus` once they commit."""

    def __init__(
        self, engine: Engine, clock: Clock, *, release: Callable[[], None] = lambda: None
    ) -> None:
        self.engine = engine
        #: Of transactions that only read.
        self.reading = make_reading_engine(engine)
        self._single = self.reading if is_sqlite(engine) else make_single_engine(engine)
        self.bus: Bus | None = None
        #: Failed transactions, by what failed.
        self.errors = Counter[str]()
        #: The last time, of the monotonic clock, at which a transaction found the disk full.
        self.disk_full_at: float | None = None
        self.clock = clock
        #: Releases the locks that are held while the database is open.
        self._release = release
        self._is_file = is_sqlite(engine)
        self._threads = ThreadPoolExecutor(
            1 if self._is_file else THREADS, thread_name_prefix="store"
        )
        self._urgent_threads = (
            self._threads
            if self._is_file
            else ThreadPoolExecutor(URGENT_THREADS, thread_name_prefix="store-urgent")
        )
        # Readers of a file do not wait for its writer, nor it for them.
        self._reading_threads = (
            ThreadPoolExecutor(READERS, thread_name_prefix="store-read")
            if self._is_file and not is_in_memory(engine)
            else self._threads
        )
        self._urgent_reading_threads = (
            ThreadPoolExecutor(URGENT_READERS, thread_name_prefix="store-look")
            if self._reading_threads is not self._threads
            else self._urgent_threads
        )
        self._underway: dict[Future[Any], Attempt] = {}
        self._groups = CommitGroups(together=self._commit_together, alone=self._commit_alone)
        self._writer = FileWriter(
            engine,
            self._threads,
            begin=self._begin,
            alone=lambda job: self.run(job.work, job.attempt),
            tell=self._send_hints,
        )

    def run(self, work: Callable[[Tx], T], attempt: Attempt | None = None) -> T:
        """Run one transaction in this thread."""
        return self._run_on(self.engine, work, attempt)

    def read_here(
        self, work: Callable[[Tx], T], attempt: Attempt | None = None, *, single: bool = False
    ) -> T:
        """Run one transaction that only reads in this thread."""
        try:
            return self._run_on(self._single if single else self.reading, work, attempt)
        except DBAPIError as error:
            if is_refused_write(error):
                raise AssertionError("A read cannot write: use `transact`.") from error
            raise

    def _run_on(self, engine: Engine, work: Callable[[Tx], T], attempt: Attempt | None) -> T:
        attempt = attempt or Attempt()
        for count in range(1, MAX_TRIES + 1):
            try:
                return self._run_once(work, attempt, engine)
            except DBAPIError as error:
                if not is_retryable(error) or count == MAX_TRIES:
                    raise
        raise AssertionError

    async def transact(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        """Run one transaction in a thread of the store; after `within` its connection is cut."""
        if self._is_file:
            return await self._wait_for(lambda attempt: self._writer.submit(work, attempt), within)
        threads = self._urgent_threads if within <= URGENT_DEADLINE else self._threads
        engine = self._single if single else self.engine
        return await self._in_thread(
            threads, within, lambda attempt: self._run_on(engine, work, attempt)
        )

    async def read(
        self, work: Callable[[Tx], T], *, within: timedelta = LONG_DEADLINE, single: bool = False
    ) -> T:
        """Run one transaction that only reads in a thread; it sees what was committed before it."""
        is_urgent = within <= URGENT_DEADLINE
        threads = self._urgent_reading_threads if is_urgent else self._reading_threads
        return await self._in_thread(
            threads, within, lambda attempt: self.read_here(work, attempt, single=single)
        )

    async def commit(self, turn: Turn, work: Callable[[Tx], None], *, alone: bool = False) -> None:
        """Run the transaction that gives up a turn in a thread; it takes effect once.

        Unless it has to be `alone`, it may be one transaction with the commits of other runs.
        """
        if self._is_file:
            await self._commit_to_file(turn, work)
            return
        commit = RunCommit(turn, work, is_simple=not alone)
        await (self._commit_alone(commit) if alone else self._groups.commit(commit))

    async def _commit_to_file(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        try:
            await self.transact(work)
        except Fenced:
            if not await self.transact(lambda tx: tx.turns.is_committed(turn)):
                raise

    async def _commit_alone(self, commit: RunCommit) -> None:
        def hold_and_work(tx: Tx) -> None:
            # Unless others have locked it, one statement reads all there is to know.
            tx.turns.hold_all([commit.turn], briefly=False)
            commit.work(tx)

        def commit_it(attempt: Attempt) -> None:
            if commit.is_simple:
                with suppress(FollowerFound):
                    self.commit_here(commit.turn, hold_and_work, attempt)
                    return
            self.commit_here(commit.turn, commit.work, attempt)

        await self._in_thread(self._threads, RUN_DEADLINE, commit_it)

    async def _commit_together(self, group: Sequence[RunCommit]) -> Sequence[RunCommit]:
        return await self._in_thread(
            self._threads, RUN_DEADLINE, lambda attempt: self.commit_group_here(group, attempt)
        )

    async def _in_thread(
        self, threads: ThreadPoolExecutor, within: timedelta, call: Callable[[Attempt], T]
    ) -> T:
        return await self._wait_for(lambda attempt: threads.submit(call, attempt), within)

    async def _wait_for(self, submit: "Callable[[Attempt], Future[T]]", within: timedelta) -> T:
        attempt = Attempt()
        job = submit(attempt)
        self._underway[job] = attempt
        job.add_done_callback(self._forget)
        try:
            # A file has no connection to cut, and no deadline.
            async with asyncio.timeout(None if self._is_file else within.total_seconds()) as limit:
                return await asyncio.wrap_future(job)
        except TimeoutError as error:
            if not limit.expired():
                raise
            self._cut_off(attempt)
            raise self._count(StoreFailed(NO_ANSWER)) from error
        except asyncio.CancelledError:
            # Its thread works on, within the same deadline.
            if (deadline := limit.when()) is not None and not job.done():
                asyncio.get_running_loop().call_at(deadline, self._cut_off_abandoned, job, attempt)
            raise
        except OSError as error:
            if error.errno not in NO_HANDLES:
                raise
            raise self._count(no_handles()) from error
        except SQLAlchemyError as error:
            failure = explain(error)
            if failure is None:
                raise
            raise self._count(failure) from error

    def _cut_off(self, attempt: Attempt) -> None:
        attempt.expire()
        # Idle connections are as silent, probably: new ones take their place.
        self.engine.dispose()

    def _cut_off_abandoned(self, job: "Future[Any]", attempt: Attempt) -> None:
        if not job.done():
            self._cut_off(attempt)

    def _count(self, failure: StoreFailed) -> StoreFailed:
        kinds = {NO_ANSWER: "no_answer", DISK_FULL: "disk_full", LOCKED: "locked"}
        self.errors[kinds.get(failure.message, "failed")] += 1
        if failure.message == DISK_FULL:
            self.disk_full_at = time.monotonic()
        return failure

    def _forget(self, job: "Future[Any]") -> None:
        self._underway.pop(job, None)

    def _run_once(self, work: Callable[[Tx], T], attempt: Attempt, engine: Engine) -> T:
        with engine.connect() as connection, attempt.covers(connection), connection.begin():
            tx = self._begin(connection)
            with tx.gathering():
                result = work(tx)
        self._send_hints(tx)
        return result

    def _begin(self, connection: Connection) -> Tx:
        return Tx(connection, self.clock)

    def _send_hints(self, tx: Tx) -> None:
        if self.bus:
            # If the process dies before this, the others find what changed when they poll.
            self.bus.hint(*tx.hints, *tx.mentions)

    def commit_here(
        self, turn: Turn, work: Callable[[Tx], None], attempt: Attempt | None = None
    ) -> None:
        """Run the transaction that gives up a turn, and retry if its answer is lost."""
        for _ in range(MAX_TRIES):
            try:
                self._commit_once(turn, work, attempt)
            except DBAPIError as error:
                if not is_connection_lost(error):
                    raise
                failure = explain(error)
            else:
                return
        raise failure or StoreFailed(NO_ANSWER)

    def commit_group_here(
        self, group: Sequence[RunCommit], attempt: Attempt | None = None
    ) -> Sequence[RunCommit]:
        """Run one transaction for several turns; returns those whose rows are locked."""

        def work(tx: Tx) -> Sequence[RunCommit]:
            held = tx.turns.hold_all([commit.turn for commit in group])
            for commit in group:
                if commit.turn in held:
                    commit.work(tx)
            return [commit for commit in group if commit.turn not in held]

        return self.run(work, attempt)

    def _commit_once(self, turn: Turn, work: Callable[[Tx], None], attempt: Attempt | None) -> None:
        try:
            self.run(work, attempt)
        except Fenced:
            # An earlier attempt may have committed, and only its answer was lost.
            if not self.run(lambda tx: tx.turns.is_committed(turn), attempt):
                raise

    def close(self) -> bool:
        """Close all connections; False: a thread is left that does not end."""
        left = wait(tuple(self._underway), CLOSE_GRACE_SECONDS).not_done
        for job in left:
            if attempt := self._underway.get(job):
                attempt.expire()
        left = wait(left, CUT_GRACE_SECONDS).not_done
        for threads in (
            self._threads,
            self._urgent_threads,
            self._reading_threads,
            self._urgent_reading_threads,
        ):
            threads.shutdown(wait=not left, cancel_futures=True)
        self._writer.close()
        # Readers first: the last connection to a file moves its log into it.
        self.reading.dispose()
        self.engine.dispose()
        self._release()
        return not left
