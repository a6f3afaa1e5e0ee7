"""Listens and answers, and stops when a signal says so."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from backburner.app.patience import ends_when_stalled
from backburner.core.errors import BadSetting, MachineFailed

#: How long a client may leave what it is sent where it is.
LONGEST_STALL = timedelta(seconds=30)


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


def check_certificate(certificate: Path, key: Path) -> None:
    """Refuse a certificate that cannot be used in one line; an encrypted key would ask."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise BadSetting(
            f"The certificate {certificate} cannot be used with the key {key}.",
            hint="They are PEM files that belong together, and the key is not encrypted.",
        ) from error


def server_config(
    api: FastAPI,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: Sequence[str] = (),
    stalled: timedelta = LONGEST_STALL,
) -> uvicorn.Config:
    if certificate is not None and key is not None:
        check_certificate(certificate, key)
    return uvicorn.Config(
        api,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        loop="asyncio",
        http=ends_when_stalled(stalled),
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
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


async def answers(host: str, port: int, *, encrypted: bool = False) -> bool:
    """Wait until the server answers a request; False if it was stopped before."""
    request = f"GET /health HTTP/1.1\r\nHost: {in_url(host)}\r\nConnection: close\r\n\r\n"
    try:
        # The socket listens already: the request waits there until somebody takes it.
        reader, writer = await asyncio.open_connection(
            host, port, ssl=_unchecked() if encrypted else None
        )
        writer.write(request.encode())
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
    except OSError:
        return False
    return b" 200 " in answer


def _unchecked() -> ssl.SSLContext:
    # We ask ourselves, under a name that the certificate need not have.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host
