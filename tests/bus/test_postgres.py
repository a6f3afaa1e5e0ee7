"""Hints between processes through a real PostgreSQL, also when connections and servers are lost."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, ExitStack, asynccontextmanager
from datetime import timedelta

import psycopg
import pytest
from support.faults.postgres_proxy import Proxy
from support.programs.programs import Start
from support.stage.make import CONVERSATION, OTHER, USER
from support.stage.until import until
from support.statements import watched

from backburner.bus.postgres import PostgresBus, retry_delay
from backburner.core.ids import ConversationId, UserId
from backburner.ports import EVERYTHING, MAX_ID_CHARS, Bus, Hint, HintKind, Listener
from backburner.store.db import Database
from backburner.store.tx import Tx

WORK = Hint(HintKind.WORK, USER, CONVERSATION)
CHANGED = Hint(HintKind.CHANGED, USER, OTHER)
SOON = 5.0

#: Answers each hint about work with one about a change.
ANSWERS = """
import asyncio, sys
from backburner.bus.postgres import PostgresBus
from backburner.ports import Hint, HintKind

async def answer():
    async with PostgresBus(sys.argv[1]) as bus:
        with bus.listen(HintKind.WORK) as hints:
            while True:
                for hint in await hints.take():
                    bus.hint(Hint(HintKind.CHANGED, hint.user, hint.conversation))

asyncio.run(answer())
"""
#: Sends one hint and exits.
HINTS = """
import asyncio, sys
from backburner.bus.postgres import PostgresBus
from backburner.ports import Hint, HintKind

async def hint():
    async with PostgresBus(sys.argv[1]) as bus:
        bus.hint(Hint(HintKind.WORK, *sys.argv[2:]))

asyncio.run(hint())
"""


async def take(hints: Listener) -> tuple[Hint, ...]:
    async with asyncio.timeout(SOON):
        return await hints.take()


@asynccontextmanager
async def listening(url: str) -> AsyncIterator[tuple[Bus, Listener]]:
    """Open a bus that is listening already."""
    async with PostgresBus(url) as bus:
        with bus.listen() as hints:
            assert await take(hints) == (EVERYTHING,)
            yield bus, hints


def end_connections(url: str, what: str = "LISTEN%") -> int:
    """End the connections of buses to this database whose last query matches."""
    with psycopg.connect(url) as connection:
        ended = connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'backburner bus'"
            " AND query LIKE %s",
            [what],
        )
        return ended.rowcount


def connections(url: str) -> int:
    with psycopg.connect(url) as connection:
        counted = connection.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name = 'backburner bus'"
        ).fetchone()
    assert counted
    return int(counted[0])


async def test_a_hint_reaches_another_process(empty_postgres_url: str, start: Start) -> None:
    async with listening(empty_postgres_url) as (_, hints):
        gone = start("-c", HINTS, empty_postgres_url, USER, CONVERSATION, command=(sys.executable,))

        assert await take(hints) == (WORK,)
        assert (await asyncio.to_thread(gone.end)).code == 0


async def test_a_hint_goes_to_another_process_and_back_within_a_second(
    empty_postgres_url: str, start: Start
) -> None:
    async with listening(empty_postgres_url) as (bus, hints):
        start("-c", ANSWERS, empty_postgres_url, command=(sys.executable,))

        assert await take(hints) == (Hint(HintKind.CHANGED),)  # its answer to EVERYTHING
        for conversation in map(ConversationId, ("c_1", "c_2", "c_3")):
            hint = Hint(HintKind.WORK, USER, conversation)
            async with asyncio.timeout(1):
                bus.hint(hint)

                assert await hints.take() == (hint,)
                assert await hints.take() == (Hint(HintKind.CHANGED, USER, conversation),)


async def test_an_own_hint_is_delivered_at_once_and_only_once(empty_postgres_url: str) -> None:
    async with (
        listening(empty_postgres_url) as (one, to_one),
        listening(empty_postgres_url) as (other, to_other),
    ):
        one.hint(WORK)

        async with asyncio.timeout(0):
            assert await to_one.take() == (WORK,)
        assert await take(to_other) == (WORK,)

        # Sent after the first one came through, so it arrives after it.
        other.hint(CHANGED)

        assert await take(to_one) == (CHANGED,)


async def test_a_hint_of_a_transaction_reaches_others_after_its_commit_and_not_within_it(
    emptied_postgres: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = emptied_postgres.engine.url.set(drivername="postgresql")
    server = url.render_as_string(hide_password=False)

    def hint_and_fail(tx: Tx) -> float:
        tx.hint(CHANGED)
        return 1 / 0

    async with listening(server) as (one, to_one), listening(server) as (_, to_other):
        monkeypatch.setattr(emptied_postgres, "bus", one)
        with watched(emptied_postgres) as statements:
            with pytest.raises(ZeroDivisionError):
                await emptied_postgres.transact(hint_and_fail)
            await emptied_postgres.transact(lambda tx: tx.hint(WORK, WORK))

        # A commit with a notification takes a lock of the whole server until it is on disk.
        assert not [sql for sql, _ in statements if "notify" in sql]
        assert await take(to_one) == await take(to_other) == (WORK,)


async def test_hints_that_come_while_others_are_sent_go_together(empty_postgres_url: str) -> None:
    proxy = Proxy(empty_postgres_url)
    async with (
        proxy.url() as url,
        listening(empty_postgres_url) as (_, to_other),
        PostgresBus(url) as one,
    ):
        one.hint(WORK)
        assert await take(to_other) == (WORK,)
        hints = [Hint(HintKind.CHANGED, USER, ConversationId(f"c_{n}")) for n in range(100)]
        async with proxy.held_up(b"pg_notify") as statements:
            one.hint(CHANGED)
            await until(lambda: statements)
            for hint in hints:
                await asyncio.to_thread(one.hint, hint)

        got = list[Hint]()
        while len(got) < 1 + len(hints):
            got += await take(to_other)
        assert got == [CHANGED, *hints]
        assert len(statements) == 2


async def test_the_longest_ids_fit_into_a_payload(empty_postgres_url: str) -> None:
    user, conversation = UserId("u" * MAX_ID_CHARS), ConversationId("c" * MAX_ID_CHARS)
    hints = tuple(Hint(kind, user, conversation) for kind in HintKind if kind != EVERYTHING.kind)
    async with (
        listening(empty_postgres_url) as (one, _),
        listening(empty_postgres_url) as (_, to_other),
    ):
        one.hint(*hints)

        assert await take(to_other) == hints


async def test_hints_from_threads_reach_others(empty_postgres_url: str) -> None:
    async with (
        listening(empty_postgres_url) as (one, to_one),
        listening(empty_postgres_url) as (_, to_other),
    ):
        await asyncio.to_thread(one.hint, WORK)

        assert await take(to_one) == await take(to_other) == (WORK,)


async def test_a_hint_is_sent_as_ids_only(empty_postgres_url: str) -> None:
    async with (
        await psycopg.AsyncConnection.connect(empty_postgres_url, autocommit=True) as connection,
        PostgresBus(empty_postgres_url) as bus,
    ):
        await connection.execute("LISTEN backburner")
        bus.hint(WORK, Hint(HintKind.USER_WAITING, USER))
        sent = [
            notify.payload.partition(":")[2]
            async for notify in connection.notifies(timeout=SOON, stop_after=2)
        ]

    assert sent == [f"work:{USER}:{CONVERSATION}", f"person:{USER}:"]


async def test_a_payload_that_is_not_understood_is_ignored(empty_postgres_url: str) -> None:
    long = "u" * 7000
    understood = f"x:work:{USER}:"
    async with listening(empty_postgres_url) as (_, hints):
        with psycopg.connect(empty_postgres_url, autocommit=True) as connection:
            for payload in ("", "x", "x:work", "x:later:u:c", "x:work:u c:", f"x:work:{long}:"):
                connection.execute("SELECT pg_notify('backburner', %s)", [payload])
            connection.execute("SELECT pg_notify('backburner', %s)", [understood])

        assert await take(hints) == (Hint(HintKind.WORK, USER),)


async def test_ten_thousand_hints_at_once_reach_others_as_one(empty_postgres_url: str) -> None:
    async with (
        listening(empty_postgres_url) as (one, _),
        listening(empty_postgres_url) as (_, to_other),
    ):
        for n in range(10_000):
            one.hint(Hint(HintKind.CHANGED, USER, ConversationId(f"c_{n}")))

        assert await take(to_other) == (EVERYTHING,)

        one.hint(WORK)

        assert await take(to_other) == (WORK,)


async def test_a_lost_connection_is_replaced_and_listeners_get_everything(
    empty_postgres_url: str,
) -> None:
    async with (
        listening(empty_postgres_url) as (_, hints),
        PostgresBus(empty_postgres_url) as other,
    ):
        for _ in range(2):
            assert await asyncio.to_thread(end_connections, empty_postgres_url) >= 1
            assert await take(hints) == (EVERYTHING,)

            other.hint(WORK)

            assert await take(hints) == (WORK,)


def test_the_retry_delay_doubles_until_a_connection_lasts() -> None:
    delays = [0.0]
    for _ in range(8):
        delays.append(retry_delay(delays[-1], lasted=1))

    assert delays == [0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5]
    assert retry_delay(5, lasted=60) == 0.1


async def test_a_hint_whose_connection_was_lost_is_sent_over_a_new_one(
    empty_postgres_url: str,
) -> None:
    async with (
        PostgresBus(empty_postgres_url) as one,
        listening(empty_postgres_url) as (_, hints),
    ):
        one.hint(WORK)

        assert await take(hints) == (WORK,)
        assert await asyncio.to_thread(end_connections, empty_postgres_url, "%pg_notify%") == 1

        one.hint(CHANGED)

        assert await take(hints) == (CHANGED,)


async def test_the_bus_reconnects_to_a_restarted_server(
    stopped_postgres: Callable[[], AbstractContextManager[str]],
) -> None:
    with ExitStack() as server:
        url = await asyncio.to_thread(server.enter_context, stopped_postgres())
        async with listening(url) as (_, hints), PostgresBus(url) as other:
            other.hint(WORK)

            assert await take(hints) == (WORK,)

            await asyncio.to_thread(server.close)
            other.hint(CHANGED)
            await asyncio.to_thread(server.enter_context, stopped_postgres())

            got = {*await take(hints)}
            assert EVERYTHING in got

            other.hint(WORK)
            while WORK not in got:
                got.update(await take(hints))

            assert got <= {EVERYTHING, CHANGED, WORK}


async def test_a_silent_connection_is_replaced(empty_postgres_url: str) -> None:
    proxy = Proxy(empty_postgres_url)
    quickly = timedelta(seconds=0.2)
    async with (
        proxy.url() as url,
        PostgresBus(url, check_interval=quickly, reply_timeout=quickly) as bus,
        PostgresBus(empty_postgres_url) as other,
    ):
        with bus.listen() as hints:
            assert await take(hints) == (EVERYTHING,)

            proxy.fall_silent()
            proxy.let_new_connections_through()

            assert await take(hints) == (EVERYTHING,)

            other.hint(WORK)

            assert await take(hints) == (WORK,)


async def test_closing_the_bus_does_not_wait_for_a_silent_server(empty_postgres_url: str) -> None:
    proxy = Proxy(empty_postgres_url)
    async with proxy.url() as url, asyncio.timeout(SOON), listening(url) as (bus, hints):
        bus.hint(WORK)

        assert await take(hints) == (WORK,)

        proxy.fall_silent()
        bus.hint(CHANGED)


async def test_hints_do_not_block_without_a_server() -> None:
    async with asyncio.timeout(SOON), PostgresBus("postgresql:///?host=/nowhere") as bus:
        with bus.listen() as hints:
            for n in range(10_000):
                bus.hint(Hint(HintKind.CHANGED, USER, ConversationId(f"c_{n}")))

            assert await take(hints) == (EVERYTHING,)


async def test_closing_the_bus_leaves_no_task_and_no_connection(empty_postgres_url: str) -> None:
    before = asyncio.all_tasks()
    async with listening(empty_postgres_url) as (bus, _):
        bus.hint(WORK)

    assert asyncio.all_tasks() == before
    async with asyncio.timeout(SOON):
        while await asyncio.to_thread(connections, empty_postgres_url):
            pass
    bus.hint(WORK)  # such as from a late thread


async def test_an_error_in_the_context_is_raised_unchanged(empty_postgres_url: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with PostgresBus(empty_postgres_url):
            _ = 1 / 0


async def test_the_bus_can_be_cancelled(empty_postgres_url: str) -> None:
    before = asyncio.all_tasks()

    async def wait() -> None:
        async with listening(empty_postgres_url) as (_, hints):
            started.set()
            await hints.take()

    started = asyncio.Event()
    waiting = asyncio.create_task(wait())
    async with asyncio.timeout(SOON):
        await started.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert asyncio.all_tasks() == before
