"""The database: runs transactions, each a plain function of a `Tx`."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import Turn
from backburner.ports import Bus
from backburner.store.dialect import Clock, is_connection_lost, is_retryable, is_sqlite
from backburner.store.tx import Tx

T = TypeVar("T")
#: Attempts at a transaction that conflicts with others.
MAX_TRIES = 3


class Database:
    """Runs transactions, and sends their hints over `bus` once they commit."""

    def __init__(
        self, engine: Engine, clock: Clock, *, release: Callable[[], None] = lambda: None
    ) -> None:
        self.engine = engine
        self.bus: Bus | None = None
        self.clock = clock
        #: Releases the locks that are held while the database is open.
        self._release = release
        workers = 1 if is_sqlite(engine) else 8
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="store")

    def run(self, work: Callable[[Tx], T]) -> T:
        """Run one transaction in this thread."""
        for attempt in range(1, MAX_TRIES + 1):
            try:
                return self._run_once(work)
            except DBAPIError as error:
                if not is_retryable(error) or attempt == MAX_TRIES:
                    raise
        raise AssertionError

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """Run one transaction in a thread of the store."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, self.run, work)
        except DBAPIError as error:
            if is_connection_lost(error):
                raise StoreFailed("The database does not answer.") from error
            raise

    def _run_once(self, work: Callable[[Tx], T]) -> T:
        with self.engine.begin() as connection:
            tx = Tx(connection, self.clock)
            result = work(tx)
            tx.write_events()
            if self.bus and (notify := self.bus.statement(tx.hints)):
                connection.exec_driver_sql(notify.sql, notify.parameters)
        if self.bus:
            self.bus.committed(*tx.hints)
            self.bus.hint(*tx.mentions)
        return result

    async def commit(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        """Run the transaction that gives up a turn in a thread; it takes effect once."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, self.commit_here, turn, work)

    def commit_here(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        """Run the transaction that gives up a turn, and retry if its answer is lost."""
        for _ in range(MAX_TRIES):
            try:
                self._commit_once(turn, work)
            except DBAPIError as error:
                if not is_connection_lost(error):
                    raise
            else:
                return
        raise StoreFailed("The database was lost while a run was being committed.")

    def _commit_once(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        try:
            self.run(work)
        except Fenced:
            # An earlier attempt may have committed, and only its answer was lost.
            if not self.run(lambda tx: tx.turns.is_committed(turn)):
                raise

    def close(self) -> None:
        self._threads.shutdown()
        self.engine.dispose()
        self._release()
