"""Messages to the demo agent over HTTP, on SQLite: up to the first word, and up to the end."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from _cells import Cell, Measured
from _environments import USER
from _grounds import USERS, Grounds, token
from _processes import crew
from _run_cells import program
from start import BACKBURNER, server

MESSAGE = "what are you working on?"
AT_ONCE = 20
#: How long a background run works beside chats, in seconds.
BACKGROUND_SECONDS = 1.0
#: For one answer, in seconds.
BOUND = 60
ALONE = "chat, 1 client"


class Chat(NamedTuple):
    port: int
    token: str
    conversation: str


class Taken(NamedTuple):
    """Milliseconds from the request to the first word and to the end."""

    first: float
    done: float


def chat_cells(ground: Grounds, opened: ExitStack) -> list[Cell]:
    del opened
    USER.make()
    return [
        Cell(ALONE, partial(_chats, ground, 1)),
        Cell(f"chat, {AT_ONCE} clients", partial(_chats, ground, AT_ONCE), beside=ALONE),
        Cell(
            f"chat, 1 client, {AT_ONCE} background runs",
            partial(_chats_beside_runs, ground),
            beside=ALONE,
        ),
        Cell("chat message", partial(_statements, ground)),
    ]


def _chats(ground: Grounds, clients: int) -> Measured:
    with ground.data("quiet") as data, _up(data) as port:
        taken = asyncio.run(_talk(port, clients, max(1, ground.scale.messages // clients)))
    return _percentiles(taken)


def _chats_beside_runs(ground: Grounds) -> Measured:
    """Talk while all seats but one are taken by runs of other conversations."""
    options = {"seconds": BACKGROUND_SECONDS, "concurrency": AT_ONCE + 1, "tell": "starts"}
    with ground.data("due") as data, crew(program(data=data, serve=True, **options)) as servers:
        (address,) = servers.wait_until_ready()
        servers.take(AT_ONCE)
        taken = asyncio.run(_talk(_port(address), 1, ground.scale.messages))
    return _percentiles(taken)


def _statements(ground: Grounds) -> Measured:
    """Count what one message takes, with nothing else to do."""
    count = ground.scale.messages
    options = {"serve": True, "count": True}
    with ground.data("quiet") as data, crew(program(data=data, **options)) as servers:
        (address,) = servers.wait_until_ready()

        def counted() -> list[int]:
            servers.tell("count")
            return [int(number) for number in servers.take(1)[0].split()]

        async def talk() -> Sequence[float]:
            chats = [await _start(_port(address), user) for user in range(USERS)]
            await _say(chats[0])
            before = counted()
            for number in range(count):
                await _say(chats[number % USERS])
            return [(b - a) / count for a, b in zip(before, counted(), strict=True)]

        transactions, statements = asyncio.run(talk())
    return {"transactions": transactions, "statements": statements}


def _percentiles(taken: Sequence[Taken]) -> Measured:
    return {
        "ms to first word": [one.first for one in taken],
        "ms to done": [one.done for one in taken],
    }


@contextmanager
def _up(data: Path) -> Iterator[int]:
    with server([BACKBURNER], data) as (_, address):
        yield _port(address)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


async def _talk(port: int, clients: int, messages: int) -> list[Taken]:
    """Let each client send one message after the other; users take turns, for they have limits."""
    chats = [await _start(port, user) for user in range(USERS)]
    await asyncio.gather(*(_say(chat) for chat in chats[:clients]))

    async def talk(client: int) -> list[Taken]:
        mine = chats[client::clients]
        return [await _say(mine[number % len(mine)]) for number in range(messages)]

    taken = await asyncio.gather(*(talk(client) for client in range(clients)))
    return [one for of_client in taken for one in of_client]


async def _start(port: int, user: int) -> Chat:
    reader, writer = await _post(port, token(user), "/api/conversations", {})
    answer = await asyncio.wait_for(reader.read(), BOUND)
    writer.close()
    return Chat(port, token(user), json.loads(answer.partition(b"\r\n\r\n")[2])["id"])


async def _say(chat: Chat) -> Taken:
    began, first = time.perf_counter(), 0.0
    path = f"/api/conversations/{chat.conversation}/messages"
    async with asyncio.timeout(BOUND):
        reader, writer = await _post(chat.port, chat.token, path, {"content": MESSAGE})
        async for line in reader:
            if not first and line.startswith(b"event: delta"):
                first = time.perf_counter() - began
            elif line.startswith(b"event: done"):
                break
        done = time.perf_counter() - began
    writer.close()
    if not first:
        raise SystemExit("A chat message was not answered: there were no words.")
    return Taken(first * 1e3, done * 1e3)


async def _post(
    port: int, token: str, path: str, body: object
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    sent = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Content-Type: application/json\r\nAccept: text/event-stream, application/json\r\n"
        f"Connection: close\r\nContent-Length: {len(sent)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode() + sent)
    return reader, writer
