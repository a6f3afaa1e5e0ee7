"""What a failed call means, by what went wrong, in both eras of the protocol.

Each row is a server that does one thing wrong. `single` is what becomes of a call that must not be
made twice, `repeatable` of one that may be, each with how often it was made.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from support.mcp_peers.scripted import (
    ERAS,
    SEND,
    Asked,
    Era,
    Reply,
    Script,
    error,
    events,
    reply,
    result,
    scripted,
    texts,
)
from support.mcp_peers.sessions import SOON, Pauses, Tokens, session

from backburner.core.errors import CallInDoubt, ConnectionFailed, SignedOut
from backburner.gateway.upstream.faults import FAULT_CODE
from backburner.ports import ToolResult

#: Of each attempt, where a server does not answer.
SHORT = timedelta(seconds=0.15)
#: The same, where the next attempt is answered.
LONGER = timedelta(seconds=0.5)


@dataclass(frozen=True)
class Done:
    """The result is this text."""

    text: str
    made: int = 1
    failed: bool = False


@dataclass(frozen=True)
class Raised:
    kind: type[Exception]
    said: str
    made: int = 0


Outcome = Done | Raised


@dataclass(frozen=True)
class Row:
    name: str
    script: Script
    single: Outcome
    repeatable: Outcome
    tokens: Tokens | None = None
    within: timedelta = timedelta(seconds=20)
    idle: timedelta = timedelta(seconds=20)
    tools: Sequence[object] = (SEND,)


def on_call(misbehave: Callable[[Asked], Reply], *, times: int = 100) -> Script:
    """Misbehave in answer to the first calls, and behave afterwards."""
    return lambda asked: (
        misbehave(asked) if asked.method == "tools/call" and asked.count <= times else None
    )


def whole(asked: Asked) -> str:
    content = {"content": [{"type": "text", "text": "sent"}], "resultType": "complete"}
    return json.dumps({"jsonrpc": "2.0", "id": asked.id, "result": content})


def refused(status: int, **headers: str) -> Callable[[Asked], Reply]:
    plain = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: reply("no", status=status, kind="text/plain", headers=plain)


def both(outcome: Outcome) -> tuple[Outcome, Outcome]:
    return outcome, outcome


def doubt(said: str) -> Raised:
    return Raised(CallInDoubt, said, made=1)


#: Says what its results look like.
COUNTING = {
    **SEND,
    "outputSchema": {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "required": ["id"],
    },
}
SENT = Done("sent")
TWICE = Done("sent", made=2)
SCOPES = 'Bearer error="insufficient_scope", scope="mail.send mail.read"'
BUSY = "is busy (503 Service Unavailable)"
ROWS = [
    Row(
        "the tool reports an error",
        on_call(lambda asked: texts(asked, "no such mailbox", is_error=True)),
        *both(Done("no such mailbox", failed=True)),
    ),
    Row(
        "the server reports an error of the protocol",
        on_call(lambda asked: error(asked, -32602, "Unknown tool: send")),
        *both(Done("Unknown tool: send", failed=True, made=0)),
    ),
    Row(
        "the server reports an error of the protocol with the status 400",
        on_call(lambda asked: error(asked, -32602, "bad arguments", status=400)),
        *both(Done("bad arguments", failed=True, made=0)),
    ),
    Row(
        "the server reports an error with a code that the SDK uses itself",
        on_call(lambda asked: error(asked, -32000, "mailbox full")),
        *both(Done("mailbox full", failed=True, made=0)),
    ),
    Row(
        "the server makes up a fault of ours",
        on_call(lambda asked: error(asked, FAULT_CODE, "fault", "0" * 32)),
        *both(Done("fault", failed=True, made=0)),
    ),
    Row(
        "the server does not answer in time",
        on_call(lambda _: Reply(hangs=True, made=True), times=1),
        doubt("did not answer within 0.5 seconds. It is not known whether"),
        TWICE,
        within=LONGER,
    ),
    Row(
        "the server never answers",
        on_call(lambda _: Reply(hangs=True, made=True)),
        doubt("did not answer within"),
        Raised(ConnectionFailed, "did not answer within", made=4),
        within=SHORT,
    ),
    Row(
        "the server sends nothing for too long",
        on_call(lambda _: Reply(hangs=True, made=True), times=1),
        doubt("sent nothing for too long"),
        TWICE,
        idle=LONGER,
    ),
    Row(
        "the answer stops in the middle",
        on_call(
            lambda asked: _made(replace(reply(whole(asked)[:30], length=99), hangs=True)), times=1
        ),
        doubt("sent nothing for too long"),
        TWICE,
        idle=LONGER,
    ),
    Row(
        "the answer stops between events",
        on_call(lambda _: _made(replace(events(cut=True), hangs=True)), times=1),
        doubt("broke off its answer"),
        TWICE,
        idle=LONGER,
    ),
    Row(
        "the server dies while it works",
        on_call(lambda _: Reply(breaks_off=True, made=True), times=1),
        doubt("broke off the connection"),
        TWICE,
    ),
    Row(
        "the answer is cut",
        on_call(
            lambda asked: reply(whole(asked), length=10_000, breaks_off=True, made=True), times=1
        ),
        doubt("broke off the connection"),
        TWICE,
    ),
    Row(
        "the answer is cut between events",
        on_call(lambda _: _made(events(cut=True)), times=1),
        doubt("broke off its answer"),
        TWICE,
    ),
    Row(
        "the answer is cut in the middle of an event",
        on_call(
            lambda asked: reply(
                f"data: {whole(asked)[:30]}",
                kind="text/event-stream",
                length=10_000,
                breaks_off=True,
                made=True,
            ),
            times=1,
        ),
        doubt("broke off its answer"),
        TWICE,
    ),
    Row(
        "the stream of events ends without an answer",
        on_call(lambda _: _made(events()), times=1),
        doubt("broke off its answer"),
        TWICE,
    ),
    Row(
        "an answer with ids is cut and cannot be taken up again",
        on_call(
            lambda _: _made(reply("retry: 1\nid: 1\ndata:\n\n", kind="text/event-stream")), times=1
        ),
        doubt("broke off its answer"),
        TWICE,
    ),
    Row(
        "the token is refused once",
        on_call(refused(401), times=1),
        *both(SENT),
        tokens=Tokens(),
    ),
    Row(
        "every token is refused",
        on_call(refused(401)),
        *both(Raised(SignedOut, "Peer refused our sign-in. Sign in again.")),
        tokens=Tokens(),
    ),
    Row(
        "the token is refused and cannot be renewed",
        on_call(refused(401)),
        *both(Raised(SignedOut, "has withdrawn the sign-in")),
        tokens=Tokens(last=1),
    ),
    Row(
        "a token is refused with an error of JSON-RPC",
        on_call(lambda asked: error(asked, -32001, "Unauthorized", status=401)),
        *both(Raised(SignedOut, "refused our sign-in")),
        tokens=Tokens(),
    ),
    Row(
        "there is no sign-in, and the server wants one",
        on_call(refused(401)),
        *both(Raised(SignedOut, "Peer wants a sign-in.")),
    ),
    Row(
        "scopes are missing",
        on_call(refused(403, WWW_Authenticate=SCOPES)),
        *both(Raised(SignedOut, "wants further permissions. It wants mail.send, mail.read.")),
        tokens=Tokens(),
    ),
    Row(
        "scopes are missing that the server does not name",
        on_call(refused(403, WWW_Authenticate='Bearer error="insufficient_scope"')),
        *both(Raised(SignedOut, "Peer wants further permissions. Sign in again.")),
        tokens=Tokens(),
    ),
    Row(
        "the call is forbidden",
        on_call(refused(403)),
        *both(Done("Peer refused the request (403 Forbidden).", failed=True, made=0)),
    ),
    Row(
        "the call is too large for the server",
        on_call(refused(413)),
        *both(
            Done("Peer refused the request (413 Request Entity Too Large).", failed=True, made=0)
        ),
    ),
    Row(
        "the server does not know the session any more", on_call(refused(404), times=1), *both(SENT)
    ),
    Row(
        "the server limits the rate once",
        on_call(refused(429), times=1),
        *both(SENT),
    ),
    Row("the server is overloaded once", on_call(refused(503), times=1), *both(SENT)),
    Row(
        "the server stays overloaded",
        on_call(refused(503)),
        *both(Raised(ConnectionFailed, BUSY)),
    ),
    Row(
        "the server fails",
        on_call(lambda _: reply("oops", status=500, kind="text/plain", made=True), times=1),
        doubt("failed (500 Internal Server Error)"),
        TWICE,
    ),
    Row(
        "a proxy gets no answer from the server",
        on_call(lambda _: reply(status=504, made=True), times=1),
        doubt("failed (504 Gateway Timeout)"),
        TWICE,
    ),
    Row(
        "the server redirects to another origin",
        on_call(refused(307, Location="http://169.254.169.254/latest/")),
        *both(
            Raised(ConnectionFailed, "redirects to another address, http://169.254.169.254, which")
        ),
    ),
    Row(
        "a page of HTML comes in answer",
        on_call(lambda _: reply("<p>Sign in", kind="text/html", made=True), times=1),
        doubt("answered with something that is not MCP (200, text/html)"),
        TWICE,
    ),
    Row(
        "JSON that is not valid comes in answer",
        on_call(lambda _: reply('{"jsonrpc": "2.0", ', made=True), times=1),
        doubt("answered in a form that is not valid"),
        TWICE,
    ),
    Row(
        "an event that is not valid comes in answer",
        on_call(lambda _: _made(events("{nothing")), times=1),
        doubt("answered in a form that is not valid"),
        TWICE,
    ),
    Row(
        "the answer is packed though we asked for plain text",
        on_call(
            lambda a: reply(whole(a), headers={"Content-Encoding": "gzip"}, made=True), times=1
        ),
        doubt("answered with something that is not MCP (200, packed data)"),
        TWICE,
    ),
    Row(
        "the server accepts the call and answers nothing",
        on_call(lambda _: reply(status=202, made=True), times=1),
        doubt("answered with something that is not MCP (202"),
        TWICE,
    ),
    Row(
        "the answer breaks the output schema of its tool",
        on_call(lambda asked: _structured(asked, {"id": "seven"})),
        *both(Done("sent")),
        tools=[COUNTING],
    ),
    Row(
        "the answer leaves out what the output schema of its tool wants",
        on_call(lambda asked: texts(asked, "sent")),
        *both(Done("sent")),
        tools=[COUNTING],
    ),
]


def _made(given: Reply) -> Reply:
    return replace(given, made=True)


def _structured(asked: Asked, data: Mapping[str, Any]) -> Reply:
    content = [{"type": "text", "text": "sent"}]
    return result(asked, {"content": content, "structuredContent": data, "resultType": "complete"})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("repeatable", [False, True], ids=["single", "repeatable"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_failed_call_means(row: Row, era: Era, *, repeatable: bool) -> None:
    expected = row.repeatable if repeatable else row.single
    tokens = Tokens(last=row.tokens.last) if row.tokens else None
    async with (
        scripted(era, row.script, tools=row.tools) as peer,
        session(peer.url, sign_in=tokens, idle_timeout=row.idle) as opened,
    ):
        await opened.list_tools()
        if isinstance(expected, Raised):
            with pytest.raises(expected.kind) as caught:
                await opened.call("send", {}, repeatable=repeatable, within=row.within)
            assert type(caught.value) is expected.kind
            assert expected.said in str(caught.value)
        else:
            result = await opened.call("send", {}, repeatable=repeatable, within=row.within)
            assert isinstance(result, ToolResult)
            assert (result.text, result.failed) == (expected.text, expected.failed)
        assert peer.made == expected.made


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_is_told_that_a_call_is_given_up_after_our_time_limit(era: Era) -> None:
    hanging = on_call(lambda _: Reply(hangs=True, made=True), times=1)
    async with scripted(era, hanging) as peer, session(peer.url) as opened:
        await opened.list_tools()
        with pytest.raises(CallInDoubt):
            await opened.call("send", {}, within=SHORT)

        async with asyncio.timeout(SOON):
            assert await peer.given_up.get() == peer.calls()[0].id
        assert await opened.call("send", {}) == ToolResult("sent")


@dataclass(frozen=True)
class ConnectRow:
    name: str
    script: Script
    kind: type[ConnectionFailed]
    said: str
    permanent: bool = False
    attempts: int = 1


def on_connect(misbehave: Callable[[Asked], Reply]) -> Script:
    return lambda asked: misbehave(asked) if asked.id is not None else None


CONNECT_ROWS = [
    ConnectRow(
        "every token is refused",
        on_connect(refused(401)),
        SignedOut,
        "refused our sign-in",
        permanent=True,
    ),
    ConnectRow(
        "there is nothing at the address",
        on_connect(refused(404)),
        ConnectionFailed,
        "is no MCP server (404 Not Found)",
        permanent=True,
    ),
    ConnectRow(
        "the owner may not use the server",
        on_connect(refused(403)),
        ConnectionFailed,
        "refused to connect (403 Forbidden)",
        permanent=True,
    ),
    ConnectRow(
        "the address is that of a page",
        on_connect(lambda _: reply("<p>Welcome", kind="text/html")),
        ConnectionFailed,
        "answered with something that is not MCP (200, text/html)",
        permanent=True,
    ),
    ConnectRow(
        "the server refuses the protocol",
        on_connect(lambda asked: error(asked, -32602, "Too old")),
        ConnectionFailed,
        "Too old",
        permanent=True,
    ),
    ConnectRow(
        "the server is overloaded",
        on_connect(refused(503)),
        ConnectionFailed,
        "is busy (503 Service Unavailable)",
        attempts=4,
    ),
    ConnectRow(
        "the server fails",
        on_connect(refused(500)),
        ConnectionFailed,
        "failed (500 Internal Server Error)",
        attempts=4,
    ),
    ConnectRow(
        "the server breaks off",
        on_connect(lambda _: Reply(breaks_off=True)),
        ConnectionFailed,
        "could not be reached",
        attempts=4,
    ),
]


@pytest.mark.parametrize("row", CONNECT_ROWS, ids=lambda row: row.name)
async def test_a_call_is_surely_not_made_if_connecting_failed(row: ConnectRow) -> None:
    pauses = Pauses()
    async with (
        scripted("modern", row.script) as peer,
        session(peer.url, sign_in=Tokens(), pauses=pauses) as opened,
    ):
        with pytest.raises(row.kind) as caught:
            await opened.call("send", {})

        assert type(caught.value) is row.kind
        assert row.said in str(caught.value)
        assert caught.value.permanent is row.permanent
        assert len(pauses.taken) == row.attempts - 1
        assert peer.calls() == []


async def test_an_outage_is_not_taken_for_an_older_server() -> None:
    async with (
        scripted("modern", on_connect(refused(503))) as peer,
        session(peer.url) as opened,
    ):
        with pytest.raises(ConnectionFailed):
            await opened.list_tools()

        assert {each.method for each in peer.asked if each.id is not None} == {"server/discover"}


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_is_down_is_tried_again_and_the_call_was_not_made(era: Era) -> None:
    pauses = Pauses()
    async with scripted(era) as peer, session(peer.url, pauses=pauses) as opened:
        await peer.stop()
        with pytest.raises(ConnectionFailed, match="Peer could not be reached") as caught:
            await opened.call("send", {})

        assert type(caught.value) is ConnectionFailed
        assert not caught.value.permanent
        assert pauses.taken == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_to_a_server_that_went_away_since_the_last_one_is_made_when_it_is_back(
    era: Era,
) -> None:
    async with scripted(era) as peer:
        pauses = Pauses()

        async def come_back(seconds: float) -> None:
            pauses.taken.append(seconds)
            await peer.start()

        pauses.sleep = come_back  # type: ignore[method-assign]
        async with session(peer.url, pauses=pauses) as opened:
            await opened.call("send", {})
            await peer.stop()

            result = await opened.call("send", {})

        assert result == ToolResult("sent")
        assert len(pauses.taken) == 1
        assert peer.made == 2


async def test_a_server_that_never_answers_is_given_up_after_the_time_for_connecting() -> None:
    pauses = Pauses()
    async with (
        scripted("modern", on_connect(lambda _: Reply(hangs=True))) as peer,
        session(peer.url, pauses=pauses, connect_timeout=SHORT) as opened,
    ):
        with pytest.raises(ConnectionFailed, match=r"Peer did not answer within 0\.15 seconds"):
            await opened.call("send", {})

        assert pauses.taken == []
