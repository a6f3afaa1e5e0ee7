"""Sessions with servers that fail at random, cancelled and closed at any moment."""

import asyncio
from datetime import timedelta
from random import Random

import pytest
from support.mcp_peers.scripted import ERAS, Asked, Era, Reply, events, reply, scripted
from support.mcp_peers.sessions import Left, Tokens, servers

from backburner.core.errors import CallInDoubt, ConnectionFailed, SignedOut
from backburner.ports import ToolResult, ToolServer

SESSIONS = 36
AT_ONCE = 6
FAULTS = (
    Reply(hangs=True),
    Reply(breaks_off=True),
    events(cut=True),
    reply("<p>", kind="text/html"),
    *(reply(status=status) for status in (401, 403, 404, 429, 500, 503)),
)
TYPED = {ToolResult, CallInDoubt, ConnectionFailed, SignedOut, asyncio.CancelledError}


@pytest.mark.parametrize("era", ERAS)
async def test_every_call_ends_in_a_typed_way_and_nothing_is_left(era: Era) -> None:
    chance = Random(7)  # noqa: S311 (not for secrets)

    def script(asked: Asked) -> Reply | None:
        is_fine = asked.id is None or chance.random() < 0.7
        return None if is_fine else chance.choice(FAULTS)

    async def use(url: str) -> list[object]:
        made = servers(connect_timeout=timedelta(seconds=0.2))
        opened = made.open(ToolServer(title="Peer", url=url), Tokens())
        calls = [
            asyncio.create_task(
                opened.call("send", {}, repeatable=repeatable, within=timedelta(seconds=0.1))
            )
            for repeatable in (False, True, False)
        ]
        for _ in range(chance.randrange(200)):
            await asyncio.sleep(0)
        for call in calls:
            if chance.random() < 0.4:
                call.cancel()
        if chance.random() < 0.5:
            await asyncio.wait(calls)
        await opened.close()
        return list(await asyncio.gather(*calls, return_exceptions=True))

    async with scripted(era, script) as peer:
        before = Left.now()
        ended = list[object]()
        for _ in range(SESSIONS // AT_ONCE):
            async with asyncio.timeout(20):
                for results in await asyncio.gather(*(use(peer.url) for _ in range(AT_ONCE))):
                    ended += results
        await Left.nothing_since(before)

    assert {type(each) for each in ended} <= TYPED
    assert len(ended) == 3 * SESSIONS
