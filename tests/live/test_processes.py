"""Two servers on one database: whatever happens through one is seen through the other."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import httpx2
import pytest
from support.doubles.engine import End, Say, Sleep
from support.faults.outside import Outside
from support.programs.programs import Start
from support.programs.workers import Worker, Workers
from support.requirements import requirement
from support.servers.live import Stream, following
from support.stage.make import USER

from backburner.core.conversation import Conversation
from backburner.live.feed import FEED_POLL_INTERVAL
from backburner.ports import EventKind, Tx

#: How late anything may be seen, in seconds: less than it would be if only a poll found it.
LATEST = FEED_POLL_INTERVAL.total_seconds() / 2
NOTICES = 9
CHANGES = 120


@pytest.fixture
def servers(start: Start, tmp_path: Path, migrated_postgres_url: str) -> tuple[Worker, Worker]:
    programs = Workers(start, tmp_path, migrated_postgres_url)
    return programs.start("--serve"), programs.start("--serve")


@pytest.fixture
def outside(migrated_postgres_url: str) -> Iterator[Outside]:
    with Outside(migrated_postgres_url) as outside:
        yield outside


@pytest.fixture
def token(outside: Outside) -> str:
    return outside.token()


@pytest.fixture
def chat(outside: Outside) -> Conversation:
    return outside.chat()


async def follow(stream: Stream, chat: Conversation) -> dict[str, float]:
    """Read until the answer is stored; return when each thing was seen first.

    A draft can arrive before the change that came before it: it does not wait for the database.
    """
    seen = dict[str, float]()
    drafted = ""
    while "message" not in seen:
        told = await stream.next("change", "draft")
        now = asyncio.get_running_loop().time()
        if told.name == "draft":
            drafted = drafted[: told.data["at"]] + told.data["text"]
            seen.setdefault(f"draft {drafted}", now)
        else:
            assert told.data["conversation"] == chat.id
            seen.setdefault("change", now)
            if told.data["kind"] == "message" and drafted == "One two.":
                seen.setdefault("message", now)
    return seen


@requirement("A-latency")
async def test_what_happens_through_one_is_seen_through_the_other(
    servers: tuple[Worker, Worker], outside: Outside, token: str, chat: Conversation
) -> None:
    one, other = servers
    async with (
        httpx2.AsyncClient(base_url=one.name) as here,
        httpx2.AsyncClient(base_url=other.name) as there,
        following(here, token) as mine,
        following(there, token) as theirs,
    ):
        for stream in (mine, theirs):
            await stream.next("hello")
        script = (Say("One "), Sleep(1.5), Say("two."), Sleep(1.5))
        said_at = asyncio.get_running_loop().time()
        await asyncio.to_thread(outside.say, chat, *script)
        first, second = await asyncio.gather(follow(mine, chat), follow(theirs, chat))

    assert max(first["change"], second["change"]) - said_at < LATEST
    assert first.keys() == second.keys() == {"change", "draft One ", "draft One two.", "message"}
    assert all(abs(first[name] - second[name]) < LATEST for name in first)


@requirement("A-latency")
async def test_a_notice_reaches_whoever_follows_within_a_second(
    servers: tuple[Worker, Worker], outside: Outside, token: str
) -> None:
    async with (
        httpx2.AsyncClient(base_url=servers[0].name) as client,
        following(client, token) as stream,
    ):
        await stream.next("hello")
        done = End({"complete": True, "message": "It is done."})
        late = []
        for _ in range(NOTICES):
            await asyncio.to_thread(outside.task, done, may_send=False)
            while (await stream.next("change")).data["kind"] != "notice":
                pass
            late += await asyncio.to_thread(
                outside.rows,
                "SELECT extract(epoch FROM clock_timestamp() - max(created_at)) FROM notices",
            )

    delays = [float(seconds) for (seconds,) in late]
    assert len(delays) == NOTICES
    assert median(delays) < 1
    assert max(delays) < 10


async def test_nothing_is_missed_or_told_twice_though_a_server_is_killed(
    servers: tuple[Worker, Worker], outside: Outside, token: str
) -> None:
    dies, stays = servers
    numbers = list[int]()
    async with (
        httpx2.AsyncClient(base_url=dies.name) as client,
        following(client, token) as stream,
    ):
        await stream.next("hello")
        changing = asyncio.create_task(asyncio.to_thread(change, outside, CHANGES))
        while len(numbers) < CHANGES // 4:
            numbers.append((await stream.next("change")).number or 0)
        dies.running.process.send_signal(signal.SIGKILL)
        try:
            while True:
                numbers.append((await stream.next("change")).number or 0)
        except (EOFError, httpx2.HTTPError):
            pass
    async with (
        httpx2.AsyncClient(base_url=stays.name) as client,
        following(client, token, after=numbers[-1]) as stream,
    ):
        while len(numbers) < CHANGES:
            told = await stream.next()
            assert told.name == "change"
            numbers.append(told.number or 0)
        await changing
    stored = await asyncio.to_thread(outside.rows, "SELECT number FROM events ORDER BY number")

    assert numbers == [number for (number,) in stored]


def change(outside: Outside, count: int) -> None:
    def work(tx: Tx) -> None:
        tx.changed(USER, None, EventKind.MESSAGE)

    for _ in range(count):
        outside.database.run(work)


async def test_a_server_that_is_told_to_stop_does_not_wait_for_those_who_follow(
    servers: tuple[Worker, Worker], token: str
) -> None:
    server = servers[0]
    clock = asyncio.get_running_loop().time
    async with (
        httpx2.AsyncClient(base_url=server.name) as client,
        following(client, token) as stream,
    ):
        await stream.next("hello")
        since = clock()
        server.running.process.send_signal(signal.SIGTERM)
        assert await stream.is_over()
        took = clock() - since
    ended = await asyncio.to_thread(server.running.end)

    assert took < LATEST
    assert ended.code == 0
