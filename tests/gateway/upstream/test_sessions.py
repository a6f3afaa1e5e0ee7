"""The life of a session: many calls at once, retries, rest, and its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest
from support.mcp_peers.scripted import ERAS, Asked, Era, Reply, error, reply, scripted, texts
from support.mcp_peers.sdk import serving
from support.mcp_peers.sessions import Left, NoSignIn, Pauses, Tokens, servers, session
from support.stage.until import until

from backburner.core.connections.connection import MAX_CALL_TIMEOUT
from backburner.core.errors import CallInDoubt, ConnectionFailed
from backburner.gateway.upstream.faults import Faults
from backburner.gateway.upstream.limits import IDLE_TIMEOUT, MAX_SERVER_REQUESTS
from backburner.gateway.upstream.wire import Wire
from backburner.ports import ToolResult, ToolServer


async def test_nothing_is_connected_before_it_is_used() -> None:
    async with scripted("modern") as peer:
        async with session(peer.url):
            pass

        assert peer.connections == 0


@pytest.mark.parametrize("era", ERAS)
async def test_calls_can_be_made_at_the_same_time_and_get_their_own_results(era: Era) -> None:
    async with serving(era) as url, session(url) as opened:
        results = await asyncio.gather(
            *(opened.call("echo", {"text": f"call {number}"}) for number in range(30))
        )

    assert results == [ToolResult(f"call {number}") for number in range(30)]


@pytest.mark.parametrize("era", ERAS)
async def test_the_first_calls_share_one_connection_to_the_server(era: Era) -> None:
    async with scripted(era) as peer, session(peer.url) as opened:
        await asyncio.gather(*(opened.call("send", {}) for _ in range(5)))

        first = "server/discover" if era == "modern" else "initialize"
        assert len([each for each in peer.asked if each.method == first]) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_one_session_stays_open_for_all_calls(era: Era) -> None:
    async with scripted(era) as peer:
        async with session(peer.url) as opened:
            for _ in range(3):
                await opened.call("send", {})
            ids = {each.headers.get("mcp-session-id") for each in peer.calls()}

        assert ids == {None if era == "modern" else "session-1"}
        assert [each.method for each in peer.asked].count("DELETE") == (era == "legacy")


@pytest.mark.parametrize("status", [404, 400])
async def test_a_lost_session_is_opened_again_and_the_call_is_made_once(status: int) -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call" or asked.headers["mcp-session-id"] != "session-1":
            return None
        return reply("No valid session ID provided", status=status, kind="text/plain")

    async with scripted("legacy", script) as peer, session(peer.url) as opened:
        assert await opened.call("send", {}) == ToolResult("sent")

        assert peer.made == 1
        assert [each.headers["mcp-session-id"] for each in peer.calls()] == [
            "session-1",
            "session-2",
        ]


async def test_pauses_between_retries_grow_and_are_not_alike() -> None:
    def busy(asked: Asked) -> Reply | None:
        return reply(status=503) if asked.method == "tools/call" else None

    pauses, chances = Pauses(), iter([0.0, 0.5, 1.0])
    async with scripted("modern", busy) as peer:
        made = servers(pauses=pauses)
        made._policy = _with_chance(made._policy, lambda: next(chances))
        opened = made.open(ToolServer(title="Peer", url=peer.url), NoSignIn())
        with pytest.raises(ConnectionFailed, match="is busy"):
            await opened.call("send", {})
        await opened.close()

    assert pauses.taken == [0.25, 0.75, 2.0]


def _with_chance(policy: Any, chance: Any) -> Any:
    from dataclasses import replace  # noqa: PLC0415

    return replace(policy, chance=chance)


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 0.5),
        (
            {
                "Retry-After": "Wed, 18 Nov 2026 20:00:09 GMT",
                "Date": "Wed, 18 Nov 2026 20:00:00 GMT",
            },
            9.0,
        ),
        ({"Retry-After": "Wed, 18 Nov 2026 20:00:09 GMT"}, 0.5),
        ({"Retry-After": "soon"}, 0.5),
        ({"Retry-After": "-5"}, 0.5),
    ],
)
async def test_the_time_that_a_server_asks_for_is_waited(
    headers: dict[str, str], taken: float
) -> None:
    def busy(asked: Asked) -> Reply | None:
        if asked.method != "tools/call" or asked.count > 1:
            return None
        return reply(status=429, headers=headers)

    pauses = Pauses()
    async with scripted("modern", busy) as peer, session(peer.url, pauses=pauses) as opened:
        assert await opened.call("send", {}) == ToolResult("sent")

    assert pauses.taken == [taken]


async def test_a_server_that_asks_for_too_long_a_time_is_left_alone() -> None:
    def busy(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return reply(status=429, headers={"Retry-After": "3600"})

    pauses = Pauses()
    async with scripted("modern", busy) as peer, session(peer.url, pauses=pauses) as opened:
        with pytest.raises(ConnectionFailed) as caught:
            await opened.call("send", {})

        assert caught.value.retry_after == timedelta(hours=1)
        assert pauses.taken == []
        assert len(peer.calls()) == 1


async def test_after_a_server_could_not_be_reached_it_is_left_alone_for_a_while() -> None:
    pauses = Pauses()
    async with scripted("modern") as peer, session(peer.url, pauses=pauses) as opened:
        await peer.stop()
        with pytest.raises(ConnectionFailed):
            await opened.call("send", {})
        await peer.start()
        with pytest.raises(ConnectionFailed, match="could not be reached"):
            await opened.call("send", {})
        assert peer.made == 0

        pauses.now += 61
        assert await opened.call("send", {}) == ToolResult("sent")


async def test_a_call_in_doubt_does_not_stop_the_next_call() -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method == "tools/call" and asked.count == 1:
            return Reply(breaks_off=True, made=True)
        return None

    async with scripted("modern", script) as peer, session(peer.url) as opened:
        with pytest.raises(CallInDoubt):
            await opened.call("send", {})

        assert await opened.call("send", {}) == ToolResult("sent")


async def test_what_a_server_says_of_its_tools_makes_no_call_repeatable() -> None:
    hints = {"readOnlyHint": True, "idempotentHint": True}
    tool = {"name": "send", "inputSchema": {"type": "object"}, "annotations": hints}

    def script(asked: Asked) -> Reply | None:
        return Reply(breaks_off=True, made=True) if asked.method == "tools/call" else None

    async with scripted("modern", script, tools=[tool]) as peer, session(peer.url) as opened:
        await opened.list_tools()
        with pytest.raises(CallInDoubt):
            await opened.call("send", {})

        assert peer.made == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_session_that_is_closed_in_the_middle_of_calls_leaves_nothing(era: Era) -> None:
    def script(asked: Asked) -> Reply | None:
        return Reply(hangs=True) if asked.method == "tools/call" else None

    async with scripted(era, script) as peer:
        before = Left.now()
        opened = servers().open(ToolServer(title="Peer", url=peer.url), NoSignIn())
        calls = [asyncio.create_task(opened.call("send", {})) for _ in range(3)]
        await until(lambda: len(peer.calls()) == 3)
        await opened.close()
        ended = await asyncio.gather(*calls, return_exceptions=True)
        await Left.nothing_since(before)

    assert {type(each) for each in ended} <= {CallInDoubt, ConnectionFailed}


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_session_that_is_closed_while_it_connects_leaves_nothing(
    *, is_cancelled: bool
) -> None:
    async with scripted("modern", lambda _: Reply(hangs=True)) as peer:
        before = Left.now()
        opened = servers().open(ToolServer(title="Peer", url=peer.url), NoSignIn())
        call = asyncio.create_task(opened.call("send", {}))
        await until(lambda: peer.asked)
        if is_cancelled:
            call.cancel()
        async with asyncio.timeout(5):
            await opened.close()
        (ended,) = await asyncio.gather(call, return_exceptions=True)
        await Left.nothing_since(before)

    assert type(ended) is (asyncio.CancelledError if is_cancelled else ConnectionFailed)


@pytest.mark.parametrize("turns", range(8))
async def test_a_session_can_be_closed_at_any_moment_of_its_first_call(turns: int) -> None:
    async with scripted("modern", lambda _: Reply(hangs=True)) as peer:
        before = Left.now()
        opened = servers().open(ToolServer(title="Peer", url=peer.url), NoSignIn())
        call = asyncio.create_task(opened.call("send", {}))
        for _ in range(turns):
            await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await opened.close()
            (ended,) = await asyncio.gather(call, return_exceptions=True)
        await Left.nothing_since(before)

    assert type(ended) is ConnectionFailed


async def test_a_server_that_does_not_let_go_is_left_after_a_while() -> None:
    def script(asked: Asked) -> Reply | None:
        return Reply(hangs=True) if asked.method == "DELETE" else None

    async with scripted("legacy", script) as peer, session(peer.url) as opened:
        await opened.call("send", {})
        async with asyncio.timeout(5):
            await opened.close()


async def test_an_answer_that_comes_too_late_is_not_kept() -> None:
    late = asyncio.Event()

    async def body(text: bytes) -> AsyncIterator[bytes]:
        await late.wait()
        yield text

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        given = texts(asked, "late")
        assert isinstance(given.body, bytes)
        return Reply(given.head, body(given.body))

    async with scripted("legacy", script) as peer, session(peer.url) as opened:
        with pytest.raises(CallInDoubt):
            await opened.call("send", {}, within=timedelta(seconds=0.1))
        live = opened._live
        assert live is not None
        late.set()
        await opened.list_tools()

        assert live.wire._results == {}


async def test_requests_of_a_server_are_answered_up_to_a_limit() -> None:
    wire = Wire(nullcontext((None, None)), Faults())
    ping = SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=1, method="ping"))

    passed = [await wire.received(ping) for _ in range(MAX_SERVER_REQUESTS + 5)]

    assert passed == [ping] * MAX_SERVER_REQUESTS + [None] * 5


async def test_a_closed_session_makes_no_call() -> None:
    async with scripted("modern") as peer, session(peer.url) as opened:
        await opened.close()
        with pytest.raises(ConnectionFailed, match="The session with Peer is closed"):
            await opened.call("send", {})

        assert peer.asked == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_cancelled_ends_at_once_and_the_session_lives_on(era: Era) -> None:
    def script(asked: Asked) -> Reply | None:
        hangs = asked.method == "tools/call" and asked.count == 1
        return Reply(hangs=True) if hangs else None

    async with scripted(era, script) as peer, session(peer.url) as opened:
        call = asyncio.create_task(opened.call("send", {}))
        await until(peer.calls)
        call.cancel()
        await asyncio.wait([call], timeout=2)
        assert call.cancelled()

        assert await opened.call("send", {}) == ToolResult("sent")


async def test_the_sessions_of_two_users_share_nothing() -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        given = texts(asked, asked.headers.get("cookie", "no cookie"))
        head = given.head.replace(b"\r\n\r\n", b"\r\nSet-Cookie: user=secret\r\n\r\n")
        return Reply(head, given.body, made=True)

    async with scripted("legacy", script) as peer:
        made = servers()
        server = ToolServer(title="Peer", url=peer.url)
        one, two = made.open(server, Tokens(1)), made.open(server, Tokens(2))
        said = [await opened.call("send", {}) for opened in (one, two)]
        for opened in (one, two):
            await opened.close()
        tokens = [each.headers["authorization"] for each in peer.calls()]
        ids = [each.headers["mcp-session-id"] for each in peer.calls()]

    assert said == [ToolResult("no cookie")] * 2
    assert tokens == ["Bearer token-1", "Bearer token-2"]
    assert ids == ["session-1", "session-2"]


async def test_arguments_reach_the_server_as_they_are() -> None:
    arguments = {"text": "ü\u202e\0", "deep": {"list": [1, 2.5, None, True]}, "": ""}

    async with scripted("modern") as peer, session(peer.url) as opened:
        await opened.call("send", arguments)

        assert peer.calls()[0].params["arguments"] == arguments


async def test_an_error_about_a_session_of_another_kind_does_not_repeat_a_call() -> None:
    words = "The training session was booked, but not the room."

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return replace(error(asked, -32602, words, status=400), made=True)

    async with scripted("legacy", script) as peer, session(peer.url) as opened:
        result = await opened.call("send", {})

        assert (result, peer.made) == (ToolResult(words, failed=True, outside=True), 1)


def test_a_connection_may_be_silent_for_as_long_as_a_call_may_take() -> None:
    assert IDLE_TIMEOUT > MAX_CALL_TIMEOUT
