"""Calls whose time ended before they were sent: they were not made, and are not made later."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from support.mcp_peers.scripted import ERAS, Asked, Era, Reply, reply, scripted
from support.mcp_peers.sessions import NoSignIn, Pauses, Tokens, servers, session
from support.stage.until import until

from backburner.core.errors import CallInDoubt, ConnectionFailed
from backburner.gateway.upstream.session import DEFAULT_POLICY, UpstreamSession
from backburner.ports import ToolResult, ToolServer

SHORT = timedelta(seconds=0.2)


@dataclass
class SlowTokens(Tokens):
    """A sign-in that takes until it is let go, once it is `slow`."""

    slow: bool = False
    waiting: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def headers(self) -> Mapping[str, str]:
        if self.slow:
            self.waiting.set()
            await self.go_on.wait()
        return await super().headers()

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        await self.go_on.wait()
        return await super().renew(refused)


def requests() -> list[asyncio.Task[object]]:
    """Return the tasks in which the SDK sends requests and waits for their answers."""
    return [each for each in asyncio.all_tasks() if "_run_request_post" in each.get_name()]


async def let_go(go_on: asyncio.Event, era: Era) -> None:
    """End what a request waits for; return when the request has ended too."""
    outlasts_its_call = bool(requests())
    go_on.set()
    # Under the newer protocol, the SDK ends it with its call.
    assert outlasts_its_call or era == "modern"
    await until(lambda: not requests())


async def give_up(opened: UpstreamSession) -> None:
    with pytest.raises(ConnectionFailed, match=r"was not asked within 0\.2 seconds") as caught:
        await opened.call("send", {}, within=SHORT)
    assert not isinstance(caught.value, CallInDoubt)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_waits_for_its_sign_in_too_long_is_never_made(era: Era) -> None:
    tokens = SlowTokens()
    async with scripted(era) as peer, session(peer.url, sign_in=tokens) as opened:
        await opened.list_tools()
        tokens.slow = True
        await give_up(opened)
        await let_go(tokens.go_on, era)

        assert peer.calls() == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_was_given_up_leaves_the_session_as_it_was(era: Era) -> None:
    tokens, pauses = SlowTokens(), Pauses()
    async with (
        scripted(era) as peer,
        session(peer.url, sign_in=tokens, pauses=pauses) as opened,
    ):
        await opened.list_tools()
        tokens.slow = True
        await give_up(opened)
        await let_go(tokens.go_on, era)
        pauses.now += DEFAULT_POLICY.rest.total_seconds()

        assert await opened.call("send", {}) == ToolResult("sent")
        assert peer.made == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_is_cancelled_before_it_is_sent_is_never_made(era: Era) -> None:
    tokens = SlowTokens()
    async with scripted(era) as peer, session(peer.url, sign_in=tokens) as opened:
        await opened.list_tools()
        tokens.slow = True
        call = asyncio.create_task(opened.call("send", {}))
        await tokens.waiting.wait()
        call.cancel()
        with suppress(asyncio.CancelledError):
            await call
        await let_go(tokens.go_on, era)

        assert peer.calls() == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_whose_refused_sign_in_is_renewed_too_long_is_never_made(era: Era) -> None:
    tokens = SlowTokens()

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call" or asked.count > 1:
            return None
        return reply(status=401)

    async with scripted(era, script) as peer, session(peer.url, sign_in=tokens) as opened:
        await give_up(opened)
        await let_go(tokens.go_on, era)

        assert len(peer.calls()) == 1
        assert peer.made == 0


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_whose_renewed_sign_in_was_sent_is_in_doubt(era: Era) -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return reply(status=401) if asked.count == 1 else Reply(hangs=True)

    async with scripted(era, script) as peer, session(peer.url, sign_in=Tokens()) as opened:
        with pytest.raises(CallInDoubt, match="did not answer within"):
            await opened.call("send", {}, within=SHORT)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_in_doubt_is_not_made_again_when_its_sign_in_is_refused_late(era: Era) -> None:
    go_on = asyncio.Event()
    refused = reply(status=401).head

    async def refuse() -> AsyncIterator[bytes]:
        await go_on.wait()
        yield refused

    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call" or asked.count > 1:
            return None
        return Reply(body=refuse())

    async with scripted(era, script) as peer, session(peer.url, sign_in=Tokens()) as opened:
        with pytest.raises(CallInDoubt, match="did not answer within"):
            await opened.call("send", {}, within=SHORT)
        await let_go(go_on, era)

        assert len(peer.calls()) == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_whose_server_is_looked_up_too_long_is_never_made(era: Era) -> None:
    silent, go_on = asyncio.Event(), asyncio.Event()

    async def resolve(host: str, port: int) -> Sequence[str]:  # noqa: ARG001 (of one kind)
        if silent.is_set():
            await go_on.wait()
        return ["127.0.0.1"]

    async with scripted(era) as peer:
        made = servers(resolve=resolve)
        url = f"http://mail.example:{peer.port}/mcp"
        opened = made.open(ToolServer(title="Peer", url=url), NoSignIn())
        await opened.list_tools()
        await peer.stop()
        await peer.start()
        silent.set()
        await give_up(opened)
        await let_go(go_on, era)
        await opened.close()

        assert peer.calls() == []
