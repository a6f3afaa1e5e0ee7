"""`python -m support.oauth_peer`: both servers, on two ports, which are two origins."""

import asyncio
import logging
import socket
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from support.oauth_peer.apps import Peer


async def serve() -> None:
    logging.disable(logging.CRITICAL)
    listeners = [_listen(), _listen()]
    issuer, server = (f"http://127.0.0.1:{one.getsockname()[1]}" for one in listeners)
    peer = Peer(issuer, f"{server}/mcp")
    apps = peer.authorization_server(), peer.mcp_server()
    async with asyncio.TaskGroup() as tasks:
        for app, listener in zip(apps, listeners, strict=True):
            tasks.create_task(_server(app).serve(sockets=[listener]))
        print(peer.issuer, peer.server, flush=True)  # noqa: T201 (the caller waits for this line)


def _listen() -> socket.socket:
    # Requests wait in the backlog until the servers run.
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)  # noqa: FBT003 (it has no name)
    return listener


def _server(app: ASGIApp) -> uvicorn.Server:
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=1)
    return uvicorn.Server(config)


def main() -> None:
    with suppress(KeyboardInterrupt):
        asyncio.run(serve())


if __name__ == "__main__":
    main()
