"""The database as a whole: transactions, each a plain function of its own; what they may do."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError

from backburner.core.errors import Fenced, StoreFailed
from backburner.core.run import Turn
from backburner.store import turns
from backburner.store.dialect import (
    Clock,
    is_connection_lost,
    is_sqlite,
    is_worth_repeating,
    read_clock,
)

T = TypeVar("T")
#: How often a transaction that collided with another is run again.
MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Tx:
    """An open transaction: its connection, the time, and the clock of leases."""

    connection: Connection
    now: datetime
    tick: int


class Database:
    """Runs transactions. `clock` is used where the database has none of its own."""

    def __init__(
        self, engine: Engine, clock: Clock, *, release: Callable[[], None] = lambda: None
    ) -> None:
        self.engine = engine
        self._clock = clock
        #: Gives up whatever was held for as long as the database is open.
        self._release = release
        workers = 1 if is_sqlite(engine) else 8
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="store")

    def run(self, work: Callable[[Tx], T]) -> T:
        """Run one transaction here and now."""
        for attempt in range(1, MOST_TRIES + 1):
            try:
                with self.engine.begin() as connection:
                    now, tick = read_clock(connection, self._clock)
                    return work(Tx(connection, now, tick))
            except DBAPIError as error:
                if not is_worth_repeating(error) or attempt == MOST_TRIES:
                    raise
        raise AssertionError

    async def transact(self, work: Callable[[Tx], T]) -> T:
        """Run one transaction in a thread: one hop, whatever it does."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.run, work)

    def commit(self, turn: Turn, work: Callable[[Tx], None]) -> None:
        """Run the transaction that commits a run, again if its answer is lost."""
        for _ in range(MOST_TRIES):
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
            # Perhaps by itself: an earlier try went through, and only its answer was lost.
            if not self.run(lambda tx: turns.is_committed(tx.connection, turn)):
                raise

    def close(self) -> None:
        self._threads.shutdown()
        self.engine.dispose()
        self._release()
