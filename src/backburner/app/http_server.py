"""The HTTP server: the listening socket, TLS and stalled connections."""

import asyncio
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from backburner.app.urls import host_in_url
from backburner.core.errors import BadSetting, MachineFailed

#: Time after which a connection whose client reads nothing is closed.
STALL_TIMEOUT = timedelta(seconds=30)


def listen(host: str, port: int) -> socket.socket:
    """Open the socket before anything else starts, so that a used port fails early."""
    address = "127.0.0.1" if host == "localhost" else host
    listener = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    # Allows a restart on a port with connections in TIME_WAIT.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Connections inherit it; asyncio sets it only for sockets that it creates itself, and without
    # it every small chunk of a response waits 40 ms for the acknowledgement of the one before.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((address, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise MachineFailed(
            f"Cannot listen on {host}, port {port}: {(error.strerror or str(error)).lower()}.",
            hint="Stop the program that uses it, or choose another port with --port.",
            permanent=True,
        ) from error
    return listener


class HttpServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn would raise the signal again after a clean stop and so change the exit code.
        yield


def server_config(
    api: FastAPI,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    proxies: Sequence[str] = (),
    stall_timeout: timedelta = STALL_TIMEOUT,
) -> uvicorn.Config:
    if certificate is not None and key is not None:
        check_certificate(certificate, key)
    return uvicorn.Config(
        api,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        loop="asyncio",
        http=protocol_with_stall_timeout(stall_timeout),
        ws="none",
        lifespan="off",
        log_config=None,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        server_header=False,
        timeout_graceful_shutdown=1,
    )


def check_certificate(certificate: Path, key: Path) -> None:
    """Refuse an unusable certificate in one line."""
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Without a password, an encrypted key would prompt for one.
        context.load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        raise BadSetting(
            f"The certificate {certificate} cannot be used with the key {key}.",
            hint="Both must be PEM files, match each other, and the key must not be encrypted.",
        ) from error


def protocol_with_stall_timeout(timeout: timedelta) -> type[asyncio.Protocol]:
    """Make a protocol that aborts a connection once its client has read nothing for this long.

    Otherwise the connection and its buffered data would stay: even closing it waits until all of
    the data is sent.
    """

    class StallTimeoutProtocol(H11Protocol):
        _abort: asyncio.TimerHandle | None = None

        def pause_writing(self) -> None:
            super().pause_writing()
            self._cancel_abort()
            self._abort = self.loop.call_later(timeout.total_seconds(), self.transport.abort)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._cancel_abort()

        def connection_lost(self, exc: Exception | None) -> None:
            self._cancel_abort()
            super().connection_lost(exc)

        def _cancel_abort(self) -> None:
            if self._abort is not None:
                self._abort.cancel()
                self._abort = None

    return StallTimeoutProtocol


async def wait_until_healthy(host: str, port: int, *, encrypted: bool = False) -> bool:
    """Wait until the server responds to a request; False if it was stopped before."""
    request = f"GET /health HTTP/1.1\r\nHost: {host_in_url(host)}\r\nConnection: close\r\n\r\n"
    try:
        # The socket is already listening, so the request waits until it is accepted.
        reader, writer = await asyncio.open_connection(
            host, port, ssl=_unverified() if encrypted else None
        )
        writer.write(request.encode())
        response = await reader.readline()
        writer.close()
        await writer.wait_closed()
    except OSError:
        return False
    return b" 200 " in response


def _unverified() -> ssl.SSLContext:
    # The request goes to this process itself, by an address that the certificate need not contain.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
