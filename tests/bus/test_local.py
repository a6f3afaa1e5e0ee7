"""Hints inside one process: which listener gets which, from any thread, in bounded memory."""

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import closing
from threading import Thread

import pytest
from sqlalchemy import event
from support.doubles.clock import SetClock
from support.stage.make import CONVERSATION, MATE, OTHER, STRANGER, USER

from backburner.bus.local import MAX_PENDING_HINTS, LocalBus, Mailbox
from backburner.core.ids import ConversationId, new_conversation_id
from backburner.ports import EVERYTHING, Bus, Hint, HintKind
from backburner.store.db import Database
from backburner.store.dialect import make_engine
from backburner.store.tx import Tx

WORK = Hint(HintKind.WORK, USER, CONVERSATION)
CHANGED = Hint(HintKind.CHANGED, USER, CONVERSATION)
SOON = 5.0


@pytest.fixture
def bus() -> LocalBus:
    return LocalBus()


async def take(mailbox: Mailbox) -> tuple[Hint, ...]:
    async with asyncio.timeout(SOON):
        return await mailbox.take()


async def test_a_hint_wakes_a_listener(bus: Bus) -> None:
    with bus.listen() as hints:
        async with asyncio.TaskGroup() as tasks:
            taken = tasks.create_task(hints.take())
            await asyncio.sleep(0)
            bus.hint(WORK)

    assert taken.result() == (WORK,)


async def test_the_same_hint_is_taken_once_and_different_ones_in_their_order(bus: LocalBus) -> None:
    with bus.listen() as hints:
        bus.hint(WORK, CHANGED)
        bus.hint(WORK)

        assert await take(hints) == (WORK, CHANGED)

        bus.hint(WORK)

        assert await take(hints) == (WORK,)


async def test_every_listener_gets_a_hint(bus: LocalBus) -> None:
    with bus.listen() as one, bus.listen() as other:
        bus.hint(WORK)

        assert await take(one) == await take(other) == (WORK,)


async def test_a_listener_gets_only_the_kinds_it_listens_for(bus: LocalBus) -> None:
    with bus.listen(HintKind.CANCEL, HintKind.USER_WAITING) as hints:
        cancel, person = Hint(HintKind.CANCEL, USER), Hint(HintKind.USER_WAITING, USER)
        bus.hint(WORK, cancel, CHANGED, person)

        assert await take(hints) == (cancel, person)


async def test_a_listener_gets_nothing_about_other_users_or_conversations(bus: LocalBus) -> None:
    with bus.listen(user=USER) as of_user, bus.listen(conversation=OTHER) as of_other:
        for user in (STRANGER, MATE, USER):
            for conversation in (CONVERSATION, OTHER):
                bus.hint(Hint(HintKind.CHANGED, user, conversation))

        assert {hint.user for hint in await take(of_user)} == {USER}
        assert {hint.conversation for hint in await take(of_other)} == {OTHER}


async def test_a_hint_without_ids_reaches_every_listener(bus: LocalBus) -> None:
    for hint in (Hint(HintKind.WORK), EVERYTHING):
        with bus.listen(HintKind.WORK, user=USER, conversation=CONVERSATION) as hints:
            bus.hint(hint)

            assert await take(hints) == (hint,)


async def test_an_everything_hint_replaces_all_pending_hints(bus: LocalBus) -> None:
    with bus.listen() as hints:
        bus.hint(WORK, EVERYTHING, CHANGED)

        assert await take(hints) == (EVERYTHING,)


async def test_a_cancelled_take_loses_no_hint(bus: LocalBus) -> None:
    with bus.listen() as hints:
        waiting = asyncio.create_task(hints.take())
        await asyncio.sleep(0)
        bus.hint(WORK)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert await take(hints) == (WORK,)


@pytest.fixture
async def _careful_loop() -> AsyncIterator[None]:
    """Make the loop refuse calls that are not thread-safe."""
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    yield
    loop.set_debug(False)


@pytest.mark.usefixtures("_careful_loop")
async def test_hints_from_threads_reach_the_loop(bus: LocalBus) -> None:
    with bus.listen() as hints:
        async with asyncio.TaskGroup() as tasks:
            taken = tasks.create_task(take(hints))
            await asyncio.sleep(0)
            await asyncio.to_thread(bus.hint, WORK)

    assert taken.result() == (WORK,)


async def test_no_hint_from_many_threads_is_lost(bus: LocalBus) -> None:
    every = [Hint(HintKind.WORK, USER, ConversationId(f"c_{n}")) for n in range(MAX_PENDING_HINTS)]

    def hint_each(hints: list[Hint]) -> None:
        for hint in hints:
            bus.hint(hint)

    threads = [Thread(target=hint_each, args=(every[n::8],)) for n in range(8)]
    got: set[Hint] = set()
    with bus.listen() as hints:
        for thread in threads:
            thread.start()
        while len(got) < len(every):
            got.update(await take(hints))
        for thread in threads:
            thread.join()

    assert got == {*every}


@pytest.mark.parametrize("different", [7, 10_000])
async def test_ten_thousand_hints_to_a_slow_listener_do_not_block_and_take_little_memory(
    bus: LocalBus, different: int
) -> None:
    ids = [new_conversation_id() for _ in range(different)]
    with bus.listen() as hints:
        waiting = asyncio.create_task(hints.take())
        await asyncio.sleep(0)
        tracemalloc.start()
        # The loop does not run meanwhile: the listener cannot be slower.
        for n in range(10_000):
            bus.hint(Hint(HintKind.CHANGED, USER, ids[n % different]))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        taken = await waiting

    assert peak < 300 * MAX_PENDING_HINTS  # bytes
    if different > MAX_PENDING_HINTS:
        assert taken == (EVERYTHING,)
    else:
        assert [hint.conversation for hint in taken] == ids


async def test_a_listener_that_stops_gets_no_more_hints(bus: LocalBus) -> None:
    with bus.listen(), bus.listen() as kept:
        with bus.listen() as hints:
            pass
        bus.hint(WORK)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await hints.take()

        assert await take(kept) == (WORK,)

    assert not bus._subscriptions


def test_a_hint_after_the_loop_has_ended_is_ignored(bus: LocalBus) -> None:
    async def give_up(hints: Mailbox) -> None:
        async with asyncio.timeout(0):
            await hints.take()

    listening = bus.listen()
    with pytest.raises(TimeoutError):
        asyncio.run(give_up(listening.__enter__()))

    bus.hint(WORK)


class RecordingBus(LocalBus):
    def __init__(self, happened: list[object]) -> None:
        super().__init__()
        self._happened = happened

    def hint(self, *hints: Hint) -> None:
        self._happened += hints


def test_a_hint_of_a_transaction_is_delivered_after_its_commit(migrated_sqlite_url: str) -> None:
    happened = list[object]()

    def hint_and_fail(tx: Tx) -> float:
        tx.hint(CHANGED)
        return 1 / 0

    with closing(Database(make_engine(migrated_sqlite_url), SetClock())) as database:
        database.bus = RecordingBus(happened)
        event.listen(database.engine, "commit", lambda _: happened.append("commit"))

        with pytest.raises(ZeroDivisionError):
            database.run(hint_and_fail)
        database.run(lambda tx: tx.hint(WORK, WORK))

    assert happened == ["commit", WORK]
