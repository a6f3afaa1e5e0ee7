"""Listens and answers, and stops when a signal says so."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from backburner.core.errors import MachineFailed


def listen(host: str, port: int) -> socket.socket:
    """Open the socket before anything else starts, so that a taken port stops the start."""
    address = "127.0.0.1" if host == "localhost" else host
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    # A port that was used a moment ago is free.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it; asyncio sets it only for sockets that it makes itself, and without it
    # every small piece of an answer waits 40 ms for an acknowledgement of the one before.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((address, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise MachineFailed(
            f"Port {port} of {host} cannot be used: {(error.strerror or str(error)).lower()}.",
            hint="Stop what uses it, or choose another with --port; 0 takes any that is free.",
            permanent=True,
        ) from error
    return listener


class Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise them again after a clean stop, and the exit code would be theirs.
        yield


def server_config(api: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        api,
        loop="asyncio",
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def stop_on_signals(stop: Callable[[], None]) -> None:
    """Let the first signal stop everything in peace, and any further one at once."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)

    def stop_once() -> None:
        stop()
        for number in signals:
            loop.remove_signal_handler(number)
            # Not through the loop: it may be what hangs.
            signal.signal(number, lambda *_: os._exit(130))

    for number in signals:
        loop.add_signal_handler(number, stop_once)


async def answers(host: str, port: int) -> bool:
    """Wait until the server answers a request; False if it was stopped before."""
    request = f"GET /health HTTP/1.1\r\nHost: {in_url(host)}\r\nConnection: close\r\n\r\n"
    try:
        # The socket listens already: the request waits there until somebody takes it.
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(request.encode())
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
    except OSError:
        return False
    return b" 200 " in answer


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
