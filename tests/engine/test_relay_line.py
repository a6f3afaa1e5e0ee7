"""The socket between Claude Code and the relay: small pieces are not delayed."""

import socket
from datetime import timedelta

import httpx2

from backburner.engine.claude.relay import Relay


async def test_the_relay_sends_small_pieces_of_a_response_at_once() -> None:
    relay = Relay(address="http://127.0.0.1:9", headers={}, stall=timedelta(seconds=5))
    line = await relay.open()
    async with httpx2.AsyncClient(trust_env=False) as client:
        # After the first response it listens.
        assert (await client.get(line.address)).status_code == 404

    assert relay._server is not None
    (listener,) = (found for server in relay._server.servers for found in server.sockets)
    assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    await relay.close()
