"""Answers that attack: by what no limit counted, or what no reader of them expected."""

import asyncio
import json
import time
import zlib
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from support.mcp_peers.scripted import Asked, Reply, Script, events, reply, result, scripted, texts
from support.mcp_peers.sessions import session
from support.memory_peak import PeakMemory

from backburner.core.errors import CallInDoubt
from backburner.ports import ToolResult

EVENTS = "text/event-stream"
MEGABYTE = 2**20
#: What an answer may need that is not read.
MEMORY_KILOBYTES = 64 * 1024


def to_calls(given: Reply) -> Script:
    """Answer calls, and nothing else."""
    return lambda asked: given if asked.method == "tools/call" else None


async def repeat(piece: bytes, count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield piece


def packed_zeros(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(MEGABYTE)) for _ in range(megabytes)) + packer.flush()


@pytest.mark.parametrize("packed", [False, True])
async def test_the_body_of_a_redirect_is_not_read(*, packed: bool) -> None:
    there = {"Location": "/mcp/"}

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call" or asked.count > 1:
            return None
        if packed:
            zeros = packed_zeros(200)
            return reply(zeros, status=307, headers={**there, "Content-Encoding": "gzip"})
        endless = repeat(bytes(MEGABYTE), 200)
        return reply(endless, status=307, headers=there, length=10**12)

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        await opened.list_tools()
        memory = PeakMemory()

        assert await opened.call("send", {}) == ToolResult("sent")
        assert memory.grown_kilobytes() < MEMORY_KILOBYTES


@pytest.mark.parametrize(
    "problem",
    [
        r'{"code": 1, "message": "\ud800"}',
        r'{"code": 1, "message": "no", "data": "\ud800"}',
        '{"code": 1, "message": "no", "data": NaN}',
        '{"code": 1, "message": "no", "data": 1e999}',
        '{"code": 1, "message": "no", "data": ' + "[" * 900 + "]" * 900 + "}",
        '{"code": 1%s, "message": "no"}' % ("0" * 400),
    ],
    ids=["surrogate", "surrogate in data", "nan", "infinite", "deep", "large"],
)
async def test_an_error_that_cannot_be_written_again_is_a_failed_result(problem: str) -> None:
    given = reply(f'{{"jsonrpc": "2.0", "id": 1, "error": {problem}}}', status=400)
    async with scripted("modern", to_calls(given)) as peer, session(peer.url) as opened:
        answered = await opened.call("send", {})

    assert isinstance(answered, ToolResult)
    assert answered.failed


@pytest.mark.parametrize(
    "head", ["Content-Type: application/json; a=\xe9", "Mcp-Session-Id: \xe9\r\nContent-Type: a/b"]
)
async def test_an_answer_with_a_header_that_is_not_ascii_may_have_been_made(head: str) -> None:
    given = Reply(f"HTTP/1.1 200 OK\r\n{head}\r\nContent-Length: 2\r\n\r\n{{}}".encode("latin-1"))
    async with scripted("modern", to_calls(given)) as peer, session(peer.url) as opened:
        with pytest.raises(CallInDoubt):
            await opened.call("send", {})


@pytest.mark.parametrize("charset", ["utf-16", "punycode", "rot13", "nothing"])
@pytest.mark.parametrize("kind", ["application/json", EVENTS])
async def test_answers_are_utf_8_whatever_they_say(charset: str, kind: str) -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        given = events(_done(asked)) if kind == EVENTS else texts(asked, "sent")
        assert isinstance(given.body, bytes)
        return reply(given.body, kind=f"{kind}; charset={charset}")

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        assert await opened.call("send", {}) == ToolResult("sent")


def _done(asked: Asked) -> dict[str, object]:
    content = {"content": [{"type": "text", "text": "sent"}], "resultType": "complete"}
    return {"jsonrpc": "2.0", "id": asked.id, "result": content}


@pytest.mark.parametrize(
    ("head", "piece"),
    [
        ("Transfer-Encoding: chunked", "1\r\n:\r\n"),
        ("Content-Length: 9999999", "id\n\n"),
    ],
    ids=["chunks", "events"],
)
async def test_many_small_pieces_let_others_run(head: str, piece: str) -> None:
    size = MEGABYTE // 2
    pieces = piece.encode() * (size // len(piece))
    start = f"HTTP/1.1 200 OK\r\nContent-Type: {EVENTS}\r\n{head}\r\n\r\n"
    given = Reply(start.encode() + pieces, breaks_off=True)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async with scripted("modern", to_calls(given)) as peer, session(peer.url) as opened:
        await opened.list_tools()
        running = asyncio.create_task(others())
        with pytest.raises(CallInDoubt):
            await opened.call("send", {})
        running.cancel()

    assert turns > size // 2**14


async def test_a_server_that_only_announces_its_answer_is_given_up() -> None:
    given = Reply(body=repeat(b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000, 100))
    async with scripted("modern", to_calls(given)) as peer, session(peer.url) as opened:
        with pytest.raises(CallInDoubt, match="broke off"):
            await opened.call("send", {}, within=timedelta(seconds=20))


async def test_a_question_with_very_many_parts_is_refused_before_it_is_checked() -> None:
    form = {"mode": "form", "message": "a", "requestedSchema": {"type": "object", "properties": {}}}
    asks = {str(n): {"method": "elicitation/create", "params": form} for n in range(40_000)}

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return result(asked, {"resultType": "input_required", "inputRequests": asks})

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        await opened.list_tools()
        started = time.process_time()
        refused = await opened.call("send", {})
        seconds = time.process_time() - started

    assert isinstance(refused, ToolResult)
    assert refused.failed
    assert "for more than 5 things at once" in refused.text
    # To check all of it takes three seconds.
    assert seconds < 1.5


async def test_the_tools_of_a_page_are_read_one_after_the_other() -> None:
    schema = {"type": "object", "properties": {f"p{n}": {} for n in range(100)}}
    tools = [{"name": f"t{n}", "inputSchema": schema} for n in range(200)]
    async with scripted("modern", tools=tools) as peer, session(peer.url) as opened:
        # The second time, nothing but the page.
        await opened.list_tools()
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                await asyncio.sleep(0)
                turns += 1

        running = asyncio.create_task(others())
        listed = await opened.list_tools()
        running.cancel()

    assert len(listed.tools) == 200
    assert turns > 200


async def test_a_result_of_very_many_parts_is_cut() -> None:
    parts = [{"type": "text", "text": str(n)} for n in range(20_000)]

    def script(asked: Asked) -> Reply | None:
        content = {"content": parts, "resultType": "complete"}
        return result(asked, content) if asked.method == "tools/call" else None

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        cut = await opened.call("send", {})

    assert isinstance(cut, ToolResult)
    assert cut.text.endswith("9999\n[The result was cut after 10,000 parts.]")


@pytest.mark.parametrize("written", ["{}", "0{}", " {} "])
async def test_an_answer_belongs_to_its_request_however_its_number_is_written(written: str) -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return reply(json.dumps({**_done(asked), "id": written.format(asked.id)}))

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        assert await opened.call("send", {}) == ToolResult("sent")
