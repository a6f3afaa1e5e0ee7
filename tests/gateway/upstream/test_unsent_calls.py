"""Calls whose time ended before they were sent: they were surely not made."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from support.mcp_peers.scripted import ERAS, Asked, Era, Reply, reply, scripted
from support.mcp_peers.sessions import NoSignIn, Tokens, servers, session

from backburner.core.errors import CallInDoubt, ConnectionFailed
from backburner.ports import ToolServer

SHORT = timedelta(seconds=0.2)


@dataclass
class SlowTokens(Tokens):
    """A sign-in that takes until it is let go, once it is `slow`."""

    slow: bool = False
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def headers(self) -> Mapping[str, str]:
        if self.slow:
            await self.go_on.wait()
        return await super().headers()

    async def renew(self, refused: Mapping[str, str]) -> Mapping[str, str]:
        await self.go_on.wait()
        return await super().renew(refused)


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_waits_for_its_sign_in_too_long_was_not_made(era: Era) -> None:
    tokens = SlowTokens()
    async with scripted(era) as peer, session(peer.url, sign_in=tokens) as opened:
        await opened.list_tools()
        tokens.slow = True
        with pytest.raises(ConnectionFailed, match=r"was not asked within 0\.2 seconds") as caught:
            await opened.call("send", {}, within=SHORT)
        tokens.go_on.set()

        assert not isinstance(caught.value, CallInDoubt)
        assert peer.calls() == []


async def test_a_call_whose_refused_sign_in_is_renewed_too_long_was_not_made() -> None:
    tokens = SlowTokens()

    def script(asked: Asked) -> Reply | None:
        return reply(status=401) if asked.method == "tools/call" else None

    async with scripted("modern", script) as peer, session(peer.url, sign_in=tokens) as opened:
        with pytest.raises(ConnectionFailed, match="was not asked within") as caught:
            await opened.call("send", {}, within=SHORT)
        tokens.go_on.set()

        assert not isinstance(caught.value, CallInDoubt)
        assert peer.made == 0


async def test_a_call_whose_renewed_sign_in_was_sent_is_in_doubt() -> None:
    def script(asked: Asked) -> Reply | None:
        if asked.method != "tools/call":
            return None
        return reply(status=401) if asked.count == 1 else Reply(hangs=True)

    async with scripted("modern", script) as peer, session(peer.url, sign_in=Tokens()) as opened:
        with pytest.raises(CallInDoubt, match="did not answer within"):
            await opened.call("send", {}, within=SHORT)


async def test_a_call_whose_server_is_looked_up_too_long_was_not_made() -> None:
    silent = asyncio.Event()

    async def resolve(host: str, port: int) -> Sequence[str]:  # noqa: ARG001 (of one kind)
        if silent.is_set():
            await asyncio.Event().wait()
        return ["127.0.0.1"]

    async with scripted("modern") as peer:
        made = servers(resolve=resolve)
        url = f"http://mail.example:{peer.port}/mcp"
        opened = made.open(ToolServer(title="Peer", url=url), NoSignIn())
        await opened.list_tools()
        await peer.stop()
        await peer.start()
        silent.set()
        with pytest.raises(ConnectionFailed, match="was not asked within") as caught:
            await opened.call("send", {}, within=SHORT)
        await opened.close()

        assert not isinstance(caught.value, CallInDoubt)
        assert peer.calls() == []
