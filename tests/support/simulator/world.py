"""The simulated world: a database in memory, two clocks, and what is known to be true of it."""

import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, TypeVar

from sqlalchemy.exc import OperationalError

from backburner.core.ids import ConversationId, RunId, UserId
from backburner.core.run import Turn
from backburner.ports import Claim
from backburner.store.attempt import Attempt
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tables import metadata
from backburner.store.tx import Tx

T = TypeVar("T")
START = datetime(2026, 11, 16, 12, tzinfo=UTC)
LEASE = timedelta(seconds=30)
CAP = 2


class Violation(AssertionError):
    """An invariant does not hold."""


class LostAnswer(Exception):
    """Stands for a connection that broke around COMMIT."""


@dataclass
class Worker:
    """A process that claims, works and commits; or forgets everything, or falls silent."""

    name: str
    claim: Claim | None = None
    #: The items of the inbox it has loaded and will serve.
    loaded: tuple[Any, ...] | None = None
    written: list[str] = field(default_factory=list)
    stalled_until: int = 0

    def forget(self) -> None:
        self.claim, self.loaded, self.written = None, None, []


class Clock:
    """Wall time that may jump, and a lease clock that never does."""

    def __init__(self) -> None:
        self.now = START
        self.latest = START
        self.tick = 0

    def __call__(self) -> tuple[datetime, int]:
        return self.now, self.tick

    def pass_by(self, length: timedelta) -> None:
        self.tick += length // timedelta(microseconds=1)
        self.jump(length)

    def jump(self, length: timedelta) -> None:
        self.now += length
        self.latest = max(self.latest, self.now)


class FlakyDatabase(Database):
    """A database whose connection can break just before or just after a COMMIT takes effect."""

    #: When it breaks in the next transactions: "before" or "after".
    breaks: Sequence[str] = ()

    def run(self, work: Callable[[Tx], T], attempt: Attempt | None = None) -> T:
        breaks, self.breaks = next(iter(self.breaks), None), self.breaks[1:]
        if breaks == "before":
            raise OperationalError("COMMIT", {}, LostAnswer(), connection_invalidated=True)
        result = super().run(work, attempt)
        if breaks == "after":
            raise OperationalError("COMMIT", {}, LostAnswer(), connection_invalidated=True)
        return result


class World:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 (it has to be repeatable)
        self.clock = Clock()
        self.step = 0
        engine = make_engine("sqlite://")
        self.db = FlakyDatabase(engine, self.clock)
        self.raw: sqlite3.Connection = engine.raw_connection().driver_connection  # type: ignore[assignment]
        _template().backup(self.raw)
        self.workers = [Worker(f"w{number}") for number in range(3)]
        self.users: list[UserId] = []
        self.conversations: list[tuple[UserId, ConversationId]] = []
        #: Who holds which turn, as those who claimed and those who were told know it.
        self.holders: dict[ConversationId, Turn] = {}
        self.commits: set[tuple[RunId, int]] = set()
        self.given_up: set[RunId] = set()
        self.sent: Counter[str] = Counter()
        self.memory: defaultdict[ConversationId, list[str]] = defaultdict(list)
        #: Conversations whose slots can be told from their schedule alone.
        self.undisturbed: dict[ConversationId, datetime] = {}

    def transact(self, work: Callable[[Tx], T]) -> T:
        self.clock.pass_by(timedelta(milliseconds=1))
        return self.db.run(work)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self.raw.execute(query, values).fetchall()

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def close(self) -> None:
        self.db.close()


@cache
def _template() -> sqlite3.Connection:
    engine = make_engine("sqlite://")
    metadata.create_all(engine)
    return engine.raw_connection().driver_connection  # type: ignore[return-value]
