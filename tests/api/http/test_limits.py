"""Limits on the size and the duration of request bodies, with a real server and without."""

import asyncio
import itertools
import json
import socket
import tracemalloc
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI, Request
from support.stage.api_stage import Asker
from support.stage.stage import BOUND, Stage

from backburner.api.http import problems
from backburner.api.http.limits import BodyLimitMiddleware, BodyLimits
from backburner.app.http_server import HttpServer, listen, server_config

PATH = "/api/conversations"
SHORT = timedelta(milliseconds=50)
MINUTE = timedelta(minutes=1)
MEGABYTE = 2**20


@asynccontextmanager
async def served(api: FastAPI) -> AsyncIterator[int]:
    listener: socket.socket = listen("127.0.0.1", 0)
    server = HttpServer(server_config(api))
    task = asyncio.create_task(server.serve([listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        listener.close()


@dataclass
class Exchange:
    response: bytes = b""
    #: How many bytes of the body the client had sent, in all and when the response came.
    sent: int = 0
    sent_before_response: int = 0

    @property
    def status_line(self) -> bytes:
        return self.response.split(b"\r\n", 1)[0]


async def send(port: int, head: str, chunks: Iterable[bytes]) -> Exchange:
    """Send a request and read the response at the same time, until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
    exchange = Exchange()

    async def push() -> None:
        try:
            for chunk in chunks:
                writer.write(chunk)
                await writer.drain()
                exchange.sent += len(chunk)
        except ConnectionError:
            pass

    async with asyncio.timeout(BOUND):
        pushing = asyncio.create_task(push())
        try:
            while piece := await reader.read(65536):
                exchange.sent_before_response = exchange.sent_before_response or exchange.sent
                exchange.response += piece
        except ConnectionError:
            pass
        pushing.cancel()
        await asyncio.wait({pushing})
    writer.close()
    return exchange


def send_all_then_read(port: int, head: str, chunks: Iterable[bytes]) -> bytes:
    """Send a request as many simple clients do: all of it, before they read anything."""
    with socket.create_connection(("127.0.0.1", port), timeout=BOUND) as client:
        client.sendall(f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n".encode())
        for chunk in chunks:
            client.sendall(chunk)
        response = b""
        while piece := client.recv(65536):
            response += piece
    return response


PLAIN = (f"Content-Length: {20 * MEGABYTE}\r\n", [b"x" * 65536] * 320)
CHUNKED = (
    "Transfer-Encoding: chunked\r\n",
    [*([b"10000\r\n" + b"x" * 65536 + b"\r\n"] * 320), b"0\r\n\r\n"],
)
TWENTY_MEGABYTES = pytest.mark.parametrize(
    ("head", "chunks"), [PLAIN, CHUNKED], ids=["plain", "chunked"]
)


@TWENTY_MEGABYTES
async def test_twenty_megabytes_are_refused_and_not_gathered(
    ask: Asker, head: str, chunks: list[bytes]
) -> None:
    head += f"Authorization: Bearer {ask.token}\r\nContent-Type: application/json\r\n"
    async with served(ask.api) as port:
        tracemalloc.start()
        try:
            exchange = await send(port, head, chunks)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

    assert b" 413 " in exchange.status_line
    assert b"application/problem+json" in exchange.response
    assert b"connection: close" in exchange.response.lower()
    assert exchange.sent_before_response < 20 * MEGABYTE
    assert peak < 8 * MEGABYTE


@TWENTY_MEGABYTES
async def test_a_client_that_sends_everything_before_it_reads_sees_the_refusal(
    ask: Asker, head: str, chunks: list[bytes]
) -> None:
    head += f"Authorization: Bearer {ask.token}\r\nContent-Type: application/json\r\n"
    async with served(ask.api) as port:
        response = await asyncio.to_thread(send_all_then_read, port, head, chunks)

    assert response.startswith(b"HTTP/1.1 413 ")
    assert response.endswith(b"}")


async def test_a_client_that_never_stops_sending_is_cut_off() -> None:
    limits = BodyLimits(linger_bytes=4 * MEGABYTE, linger_timeout=MINUTE)
    async with served(echo(limits)) as port:
        exchange = await send(port, CHUNKED[0], itertools.repeat(CHUNKED[1][0]))

    assert b" 413 " in exchange.status_line
    # The kernel buffers some of it.
    assert exchange.sent < 20 * MEGABYTE


async def test_a_body_may_be_as_large_as_the_limit_and_not_a_byte_larger(
    ask: Asker, stage: Stage
) -> None:
    start, end = b'{"content": "Hello."', b"}"
    chat = await stage.chat()
    for more, status in ((0, 202), (1, 413)):
        body = start + b" " * (BodyLimits().max_bytes - len(start) - len(end) + more) + end
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


def echo(limits: BodyLimits) -> FastAPI:
    api = FastAPI(exception_handlers=problems.HANDLERS)

    @api.post(PATH)
    async def read(request: Request) -> int:
        return len(await request.body())

    api.add_middleware(BodyLimitMiddleware, limits=limits)
    return api


async def test_a_body_that_stops_coming_ends_its_request() -> None:
    async with served(echo(BodyLimits(chunk_timeout=SHORT, linger_chunk_timeout=SHORT))) as port:
        exchange = await send(port, "Content-Length: 10\r\n", [b"x"])

    assert exchange.sent == 1
    assert b" 408 " in exchange.status_line
    assert b"connection: close" in exchange.response.lower()


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

    api = echo(BodyLimits(chunk_timeout=MINUTE, body_timeout=SHORT, linger_timeout=SHORT))
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
    api = echo(BodyLimits(chunk_timeout=SHORT, body_timeout=SHORT))

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
