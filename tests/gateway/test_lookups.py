"""Names of hosts are looked up without holding up anybody else."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from backburner.gateway.lookups import MAX_LOOKUPS, MAX_OF_DOMAIN, Lookups


class NameServer:
    """In place of the system's resolver; names below `silent` are answered when it is let go."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host.endswith((".silent", ".silent2")):
            self.answers.wait(20)
            raise socket.gaierror("timed out")
        return [f"192.0.2.{port}"]


@contextmanager
def name_server() -> Iterator[NameServer]:
    server = NameServer()
    try:
        yield server
    finally:
        server.answers.set()


@contextmanager
def no_more_threads() -> Iterator[None]:
    """Want stacks for which no machine has the addresses."""
    before = threading.stack_size(2**47)
    try:
        yield
    finally:
        threading.stack_size(before)


async def test_a_name_is_looked_up_by_the_system() -> None:
    assert "127.0.0.1" in await Lookups()("localhost", 80)


async def test_a_name_that_does_not_exist_is_an_error_of_the_system() -> None:
    with pytest.raises(socket.gaierror):
        await Lookups()("does-not-exist.invalid", 80)


async def test_names_that_are_not_answered_hold_up_no_other_work() -> None:
    with name_server() as server:
        lookups = Lookups(server)
        slow = [asyncio.create_task(lookups(f"a{n}.b{n}.silent", 1)) for n in range(40)]
        await asyncio.sleep(0)

        async with asyncio.timeout(5):
            await asyncio.to_thread(int)
            assert await lookups("mail.example", 1) == ["192.0.2.1"]

        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)


async def test_a_domain_that_does_not_answer_leaves_room_for_others() -> None:
    with name_server() as server:
        lookups = Lookups(server)
        slow = [asyncio.create_task(lookups(f"a{n}.b.silent", 1)) for n in range(MAX_LOOKUPS)]
        await asyncio.sleep(0)

        with pytest.raises(OSError, match="looked up"):
            await lookups("one.more.b.silent", 1)
        assert await lookups("mail.example", 1) == ["192.0.2.1"]
        assert len(server.asked) == MAX_OF_DOMAIN + 1

        server.answers.set()
        ends = await asyncio.gather(*slow, return_exceptions=True)
        assert all(isinstance(end, OSError) for end in ends)


async def test_there_are_so_many_lookups_and_no_more() -> None:
    with name_server() as server:
        lookups = Lookups(server)
        slow = [asyncio.create_task(lookups(f"a.b{n}.silent2", 1)) for n in range(MAX_LOOKUPS)]
        await asyncio.sleep(0)

        with pytest.raises(OSError, match="looked up"):
            await lookups("mail.example", 1)

        server.answers.set()
        await asyncio.gather(*slow, return_exceptions=True)
        assert await lookups("mail.example", 1) == ["192.0.2.1"]


async def test_those_who_ask_for_one_name_share_its_lookup() -> None:
    with name_server() as server:
        lookups = Lookups(server)
        asking = [asyncio.create_task(lookups("a.silent", 1)) for _ in range(100)]
        await asyncio.sleep(0)
        # Whoever asked first may give up.
        asking[0].cancel()
        server.answers.set()
        ends = await asyncio.gather(*asking, return_exceptions=True)

        assert isinstance(ends[0], asyncio.CancelledError)
        assert all(isinstance(end, OSError) for end in ends[1:])
        assert server.asked == ["a.silent"]


async def test_a_lookup_that_cannot_start_takes_no_room() -> None:
    lookups = Lookups(lambda _host, port: [f"192.0.2.{port}"])

    with no_more_threads():
        for n in range(MAX_OF_DOMAIN):
            with pytest.raises(OSError, match="cannot be looked up now"):
                await lookups(f"h{n}.a.example", 1)

    assert await lookups("mail.a.example", 1) == ["192.0.2.1"]
