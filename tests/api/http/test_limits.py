"""How much of a request is read, and how long it may take: with a real server, and without."""

import asyncio
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI, Request
from support.stage.api_stage import Asker
from support.stage.stage import BOUND, Stage

from backburner.api.http import problems
from backburner.api.http.limits import MAX_BODY_BYTES, BodyLimitMiddleware
from backburner.app.http_server import Server, listen, server_config

PATH = "/api/conversations"
SHORT = timedelta(milliseconds=50)
MEGABYTE = 2**20


@asynccontextmanager
async def served(api: FastAPI) -> AsyncIterator[int]:
    listener: socket.socket = listen("127.0.0.1", 0)
    server = Server(server_config(api))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        listener.close()


async def send(
    port: int, head: str, pieces: Callable[[], AsyncIterator[bytes]]
) -> tuple[bytes, int]:
    """Send a request as far as the server takes it; give its answer, and how much it took."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
    sent = 0

    async def push() -> None:
        nonlocal sent
        try:
            async for piece in pieces():
                writer.write(piece)
                await writer.drain()
                sent += len(piece)
        except ConnectionError:
            pass

    async with asyncio.timeout(BOUND):
        pushing = asyncio.create_task(push())
        answer = b""
        try:
            while piece := await reader.read(65536):
                answer += piece
        except ConnectionError:
            pass
        await pushing
    writer.close()
    return answer, sent


async def plain() -> AsyncIterator[bytes]:
    for _ in range(20):
        yield b"x" * MEGABYTE


async def chunked() -> AsyncIterator[bytes]:
    for _ in range(20 * 16):
        yield b"10000\r\n" + b"x" * 65536 + b"\r\n"


@pytest.mark.parametrize(
    ("head", "pieces"),
    [
        (f"Content-Length: {20 * MEGABYTE}\r\n", plain),
        ("Transfer-Encoding: chunked\r\n", chunked),
    ],
)
async def test_twenty_megabytes_are_refused_and_not_gathered(
    ask: Asker, head: str, pieces: Callable[[], AsyncIterator[bytes]]
) -> None:
    head += f"Authorization: Bearer {ask.token}\r\nContent-Type: application/json\r\n"
    async with served(ask.api) as port:
        tracemalloc.start()
        try:
            answer, sent = await send(port, head, pieces)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert b" 413 " in answer.split(b"\r\n", 1)[0]
    assert b"application/problem+json" in answer
    assert b"connection: close" in answer.lower()
    assert sent < 20 * MEGABYTE
    assert peak < 8 * MEGABYTE


async def test_a_body_may_be_as_large_as_the_limit_and_not_a_byte_larger(
    ask: Asker, stage: Stage
) -> None:
    start, end = b'{"content": "Hello."', b"}"
    chat = await stage.chat()
    for more, status in ((0, 202), (1, 413)):
        body = start + b" " * (MAX_BODY_BYTES - len(start) - len(end) + more) + end
        answer = await ask(
            "POST",
            f"{PATH}/{chat.id}/messages",
            content=body,
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == status
    assert stage.said(chat) == ["Hello."]


@pytest.mark.parametrize("length", ["a", "-1", "1e3", "٣", "", "9" * 400])
async def test_a_length_that_is_none_is_refused(ask: Asker, length: str) -> None:
    headers = {"content-length": length.encode(), "content-type": "application/json"}
    answer = await ask("POST", PATH, content=b"{}", headers=headers)

    assert answer.status_code == (413 if length.startswith("9") else 400)


def echo(chunk_timeout: timedelta, body_timeout: timedelta) -> FastAPI:
    api = FastAPI(exception_handlers=problems.HANDLERS)

    @api.post(PATH)
    async def read(request: Request) -> int:
        return len(await request.body())

    api.add_middleware(BodyLimitMiddleware, chunk_timeout=chunk_timeout, body_timeout=body_timeout)
    return api


async def test_a_body_that_stops_coming_ends_its_request() -> None:
    stopped = asyncio.Event()

    async def one_piece() -> AsyncIterator[bytes]:
        yield b"x"
        stopped.set()

    async with served(echo(SHORT, timedelta(minutes=1))) as port:
        answer, _ = await send(port, "Content-Length: 10\r\n", one_piece)

    assert stopped.is_set()
    assert b" 408 " in answer.split(b"\r\n", 1)[0]
    assert b"connection: close" in answer.lower()


async def test_a_body_that_trickles_in_ends_its_request_too() -> None:
    asked = 0

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(SHORT.total_seconds() / 10)
        return {"type": "http.request", "body": b"x", "more_body": True}

    sent = list[Any]()

    async def keep(message: Any) -> None:
        sent.append(message)

    api = echo(chunk_timeout=timedelta(minutes=1), body_timeout=SHORT)
    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": PATH,
        "query_string": b"",
        "headers": [],
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "server": ("localhost", 80),
        "client": None,
        "root_path": "",
    }
    async with asyncio.timeout(BOUND):
        await api(scope, receive, keep)

    assert sent[0]["status"] == 408
    assert asked > 1


async def test_who_waits_for_an_answer_is_not_hurried() -> None:
    """After the body there is nothing more to come, however long the answer takes."""
    api = echo(SHORT, SHORT)

    @api.post("/slow")
    async def slow(request: Request) -> bool:
        await request.body()
        listening = asyncio.ensure_future(request.receive())
        done, _ = await asyncio.wait({listening}, timeout=3 * SHORT.total_seconds())
        listening.cancel()
        return not done

    async with served(api) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
        writer.write(head.encode())
        answer = await reader.read()
        writer.close()

    assert answer.endswith(b"true")


def nested(depth: int) -> str:
    return '{"content": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (nested(40), 400),
        (nested(900), 400),
        (nested(200_000), 400),
        (json.dumps({"content": "a\ud800b"}), 400),
        (json.dumps({"\udfff": "a"}), 400),
        (json.dumps("\udfff"), 400),
        ('{"content": NaN}', 400),
        ('{"content": 1e999}', 400),
        ('{"content": ' + "9" * 5000 + "}", 400),
        ('{"content": "a\\u0000b"}', 400),
        ("{", 422),
        ("", 422),
        ("null", 422),
    ],
)
async def test_what_nobody_could_keep_is_refused_and_not_kept(
    ask: Asker, stage: Stage, body: str, status: int
) -> None:
    chat = await stage.chat()
    answer = await ask(
        "POST",
        f"{PATH}/{chat.id}/messages",
        content=body.encode(),
        headers={"content-type": "application/json"},
    )

    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    assert stage.said(chat) == []


async def test_what_is_not_json_is_not_taken_for_it(ask: Asker, stage: Stage) -> None:
    chat = await stage.chat()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        answer = await ask(
            "POST",
            f"{PATH}/{chat.id}/messages",
            content=b'{"content": "Hello."}',
            headers={"content-type": kind},
        )
        assert (answer.status_code, answer.json()["detail"]) == (
            400,
            "The request body is not JSON.",
        )
    assert stage.said(chat) == []
