"""The log of what changed: in the order in which it can be seen, whoever else writes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from threading import Barrier, Event, Thread

import pytest
from sqlalchemy import delete, text
from support.doubles.clock import SetClock
from support.people.users import add_user
from support.stage.make import STRANGER, USER

from backburner.core.ids import ConversationId, UserId
from backburner.ports import EventKind
from backburner.store import tables
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tx import Tx

HERE = ConversationId("c_here")
WRITERS, EACH = 6, 40


@pytest.fixture
def known(database: Database) -> Database:
    for user in (USER, STRANGER):
        add(database, user)
    return database


def add(database: Database, user: UserId) -> None:
    database.run(lambda tx: add_user(tx, user))


def change(database: Database, user: UserId = USER, *kinds: EventKind) -> None:
    database.run(lambda tx: tx.changed(user, HERE, *(kinds or (EventKind.MESSAGE,))))


def numbers(database: Database, after: int = 0, user: UserId = USER) -> list[int]:
    found = database.run(lambda tx: tx.events.after(user, after, limit=10_000))
    return [one.number for one in found]


@pytest.fixture
def several(migrated_postgres_url: str) -> Iterator[list[Database]]:
    """Connect several processes to one server, as far as it can tell."""
    made = [Database(make_engine(migrated_postgres_url), SetClock()) for _ in range(WRITERS + 1)]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def test_changes_are_read_in_order_each_once_and_by_their_owner_only(known: Database) -> None:
    change(known, USER, EventKind.MESSAGE, EventKind.RUN, EventKind.MESSAGE)
    change(known, STRANGER)
    found = known.run(lambda tx: tx.events.after(USER, 0, limit=10))

    assert [(one.kind, one.conversation) for one in found] == [("message", HERE), ("run", HERE)]
    assert numbers(known) == sorted(numbers(known))
    assert numbers(known, after=found[0].number) == [found[1].number]
    assert known.run(lambda tx: tx.events.latest(USER)) == found[1].number
    assert len(numbers(known, user=STRANGER)) == 1
    assert not known.run(lambda tx: tx.events.has_all_since(STRANGER, found[1].number))


def test_each_users_changes_are_counted_by_themselves(known: Database) -> None:
    change(known, USER, EventKind.MESSAGE, EventKind.RUN)
    change(known, STRANGER)
    change(known, USER)

    assert numbers(known) == [1, 2, 3]
    assert numbers(known, user=STRANGER) == [1]


def test_nothing_is_noted_by_a_transaction_that_fails(known: Database) -> None:
    def fail(tx: Tx) -> None:
        tx.changed(USER, HERE, EventKind.MESSAGE)
        raise LookupError

    with pytest.raises(LookupError):
        known.run(fail)

    assert numbers(known) == []


def test_nothing_is_noted_for_a_user_who_is_deleted_in_the_same_transaction(
    known: Database,
) -> None:
    def erase(tx: Tx) -> None:
        tx.changed(USER, HERE, EventKind.CONVERSATION)
        tx.connection.execute(delete(tables.users).where(tables.users.c.id == USER))

    known.run(erase)

    assert numbers(known) == []


def test_whoever_has_seen_a_number_has_seen_all_smaller_ones(several: list[Database]) -> None:
    reader, *writers = several
    add(reader, USER)
    start, is_over = Barrier(WRITERS + 1), Event()

    def write(database: Database) -> None:
        start.wait(10)
        for _ in range(EACH):
            change(database, USER, EventKind.MESSAGE, EventKind.RUN)

    def read() -> list[int]:
        """Read on from the last number, as a client does that comes again and again."""
        seen = list[int]()
        start.wait(10)
        while True:
            was_over = is_over.is_set()
            seen += numbers(reader, after=seen[-1] if seen else 0)
            if was_over:
                return seen

    with ThreadPoolExecutor(WRITERS + 1) as threads:
        reading = threads.submit(read)
        writing = [threads.submit(write, database) for database in writers]
        for one in writing:
            one.result(60)
        is_over.set()
        seen = reading.result(60)

    assert seen == numbers(reader)
    assert len(seen) == WRITERS * EACH * 2


def test_a_number_is_taken_only_when_all_before_it_can_be_seen(several: list[Database]) -> None:
    reader, first, second = several[:3]
    add(reader, USER)
    add(reader, STRANGER)
    has_number, may_commit = Event(), Event()

    def slow(tx: Tx) -> None:
        tx.changed(USER, HERE, EventKind.RUN)
        tx.write_events()
        tx.events.noted.clear()
        has_number.set()
        assert may_commit.wait(20)

    writing = Thread(target=first.run, args=(slow,))
    writing.start()
    assert has_number.wait(20)
    waiting = Thread(target=change, args=(second,))
    waiting.start()
    until_it_waits = text(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'transactionid' AND NOT granted"
    )
    while not reader.run(lambda tx: tx.connection.execute(until_it_waits).scalar_one()):
        assert waiting.is_alive()
    # Others do not wait.
    change(reader, STRANGER)
    seen_before = numbers(reader)
    may_commit.set()
    for thread in (writing, waiting):
        thread.join(20)

    assert seen_before == []
    assert len(numbers(reader)) == 2


def test_old_changes_are_forgotten_but_the_last_of_each_user(
    migrated_sqlite_url: str, clock: SetClock
) -> None:
    with closing(Database(make_engine(migrated_sqlite_url), clock)) as database:
        for user in (USER, STRANGER):
            add(database, user)
        for _ in range(3):
            change(database, USER)
        change(database, STRANGER)
        first, *_, last = numbers(database)
        clock.now += timedelta(days=8)
        before = clock.now - timedelta(days=7)

        assert database.run(lambda tx: tx.events.prune(before=before, limit=1)) == 1
        assert database.run(lambda tx: tx.events.prune(before=before, limit=10)) == 1
        assert numbers(database) == [last]
        assert len(numbers(database, user=STRANGER)) == 1
        assert not database.run(lambda tx: tx.events.has_all_since(USER, first))
        assert database.run(lambda tx: tx.events.has_all_since(USER, last))


def test_everybody_is_told_when_everything_is_switched_off(known: Database) -> None:
    known.run(lambda tx: tx.users.pause_everything(None, paused=True))

    found = known.run(
        lambda tx: [*tx.events.after(USER, 0, limit=9), *tx.events.after(STRANGER, 0, limit=9)]
    )
    assert [(one.kind, one.conversation) for one in found] == [("user", None)] * 2
