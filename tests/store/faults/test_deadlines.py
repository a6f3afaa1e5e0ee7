"""A database that stands still: a transaction ends at its deadline, and the next one works."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta

import psycopg
import pytest
from sqlalchemy import text
from support.doubles.clock import SetClock
from support.faults.limits import few_files_can_be_opened
from support.faults.postgres_proxy import Proxy
from support.people.users import add_user
from support.stage.make import USER
from support.stage.until import until

from backburner.core.errors import StoreFailed
from backburner.store.db import Database
from backburner.store.dialect import THREADS, make_engine
from backburner.store.failures import NO_ANSWER
from backburner.store.tx import Tx

SHORT = timedelta(milliseconds=300)


@pytest.fixture
def proxy(migrated_postgres_url: str) -> Proxy:
    return Proxy(migrated_postgres_url)


@pytest.fixture
async def database(proxy: Proxy) -> AsyncIterator[Database]:
    """Open a database behind the proxy, with connections in its pool."""
    async with proxy.url() as url:
        with closing(Database(make_engine(url), SetClock())) as database:
            await asyncio.gather(*(database.transact(ask, within=SHORT * 10) for _ in range(3)))
            yield database


@pytest.fixture
async def impatient(proxy: Proxy) -> AsyncIterator[Database]:
    """Open a database whose new connections have as little time as the driver can give them."""
    async with proxy.url() as url:
        engine = make_engine(f"{url}?connect_timeout=2")
        with closing(Database(engine, SetClock())) as database:
            assert await database.transact(ask) == 1
            engine.dispose()
            yield database


def ask(tx: Tx) -> int:
    found: int = tx.connection.execute(text("SELECT 1")).scalar_one()
    return found


@pytest.mark.parametrize("only_reads", [False, True])
async def test_a_silent_connection_is_cut_and_all_old_ones_are_replaced(
    database: Database, proxy: Proxy, *, only_reads: bool
) -> None:
    run = database.read if only_reads else database.transact
    proxy.fall_silent()
    proxy.let_new_connections_through()
    with pytest.raises(StoreFailed, match=NO_ANSWER):
        await run(ask, within=SHORT)

    async with asyncio.timeout(20):
        assert await run(ask) == 1
    assert database.errors == {"no_answer": 1}


async def test_a_lock_of_a_silent_transaction_is_given_to_whoever_waits_for_it(
    database: Database,
) -> None:
    await database.transact(lambda tx: add_user(tx, USER))
    is_locked, is_over = threading.Event(), threading.Event()

    def lock_and_fall_silent(tx: Tx) -> None:
        tx.users.lock(USER)
        is_locked.set()
        is_over.wait(30)

    silent = asyncio.create_task(database.transact(lock_and_fall_silent))
    try:
        await until(is_locked.is_set)
        await database.transact(lambda tx: tx.users.lock(USER))
    finally:
        is_over.set()
    with pytest.raises(StoreFailed, match=NO_ANSWER):
        await silent


async def test_transactions_that_wait_leave_room_for_urgent_ones(
    database: Database, migrated_postgres_url: str
) -> None:
    read = text("SELECT count(*) FROM install")
    with psycopg.connect(migrated_postgres_url) as holder:
        holder.execute("LOCK TABLE install")
        waiting = asyncio.gather(
            *(
                database.transact(lambda tx: tx.connection.execute(read).scalar_one())
                for _ in range(2 * THREADS)
            )
        )
        async with asyncio.timeout(5):
            assert await database.transact(ask, within=timedelta(seconds=3)) == 1
        assert not waiting.done()
    assert await waiting == [0] * 2 * THREADS


async def test_a_transaction_that_waits_for_the_time_holds_up_no_other(
    database: Database, proxy: Proxy
) -> None:
    proxy.fall_silent()
    proxy.let_new_connections_through()
    waiting = asyncio.create_task(database.transact(lambda tx: tx.now))
    # The first takes the silent connection that was used last.
    await asyncio.sleep(0)
    others = [database.transact(lambda tx: tx.now, within=SHORT) for _ in range(3)]

    failed = await asyncio.gather(*others, return_exceptions=True)
    async with asyncio.timeout(20):
        assert await database.transact(lambda tx: tx.tick, within=SHORT * 10)
    assert StoreFailed in map(type, failed)
    waiting.cancel()


async def test_a_silent_database_is_closed_all_the_same(database: Database, proxy: Proxy) -> None:
    proxy.fall_silent()
    asking = asyncio.create_task(database.transact(ask))
    await asyncio.sleep(0)

    async with asyncio.timeout(20):
        assert await asyncio.to_thread(database.close)
        with pytest.raises(StoreFailed):
            await asking


async def test_a_transaction_that_was_given_up_never_begins(
    database: Database, migrated_postgres_url: str
) -> None:
    with psycopg.connect(migrated_postgres_url) as holder:
        holder.execute("LOCK TABLE install")
        add = text("INSERT INTO install (key, value) VALUES ('late', '')")
        with pytest.raises(StoreFailed, match=NO_ANSWER):
            await database.transact(lambda tx: tx.connection.execute(add), within=SHORT)

    count = text("SELECT count(*) FROM install")
    assert await database.transact(lambda tx: tx.connection.execute(count).scalar_one()) == 0


@pytest.mark.parametrize("broken", ["SELECT * FROM nothing", "SELECT nonsense("])
async def test_an_unexpected_error_of_the_database_is_a_failure_of_the_store(
    database: Database, broken: str
) -> None:
    with pytest.raises(StoreFailed, match=r"^The database failed\."):
        await database.transact(lambda tx: tx.connection.execute(text(broken)))
    assert await database.transact(ask) == 1


@pytest.mark.parametrize("spare", [0, 1])
async def test_a_process_without_free_file_handles_says_so_and_recovers(
    migrated_postgres_url: str, spare: int
) -> None:
    with closing(Database(make_engine(migrated_postgres_url), SetClock())) as database:
        with (
            few_files_can_be_opened(spare),
            pytest.raises(StoreFailed, match="no free file handles"),
        ):
            await database.transact(ask)

        assert await database.transact(ask) == 1


async def test_a_transaction_whose_caller_was_cancelled_keeps_its_deadline(
    database: Database, proxy: Proxy
) -> None:
    began = threading.Event()

    def begin_and_ask(tx: Tx) -> int:
        began.set()
        return ask(tx)

    proxy.fall_silent()
    asking = asyncio.create_task(database.transact(begin_and_ask, within=SHORT))
    assert await asyncio.to_thread(began.wait, 10)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    await until(lambda: not database._underway)


async def test_connections_that_fall_silent_after_their_sign_in_keep_no_thread(
    impatient: Database, proxy: Proxy
) -> None:
    proxy.only_sign_in()
    asked = [impatient.transact(ask, within=timedelta(seconds=11)) for _ in range(THREADS)]
    failed = await asyncio.gather(*asked, return_exceptions=True)
    assert {str(each) for each in failed} == {NO_ANSWER}

    proxy.let_new_connections_through()
    async with asyncio.timeout(10):
        assert await impatient.transact(ask) == 1
