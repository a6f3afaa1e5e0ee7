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
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from backburner.app.urls import host_in_url
from backburner.core.errors import BadSetting, MachineFailed

#: Time after which a connection whose client reads nothing is closed.
STALL_TIMEOUT = timedelta(seconds=30)
#: Time for the headers of a request, from the start of the connection or of the request.
HEADER_TIMEOUT = timedelta(seconds=10)


def listen(host: str, port: int, *, option: str = "--port") -> socket.socket:
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
            hint=f"Stop the program that uses it, or choose another port with {option}.",
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
    header_timeout: timedelta = HEADER_TIMEOUT,
) -> uvicorn.Config:
    if certificate is not None and key is not None:
        check_certificate(certificate, key)
    return uvicorn.Config(
        api,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        loop="asyncio",
        http=protocol_with_timeouts(stall_timeout, header_timeout),
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


def protocol_with_timeouts(stall: timedelta, headers: timedelta) -> type[asyncio.Protocol]:
    class Protocol(TimeoutProtocol):
        stall_timeout = stall
        header_timeout = headers

    return Protocol


class TimeoutProtocol(H11Protocol):
    """Aborts a connection whose client does nothing for too long.

    A client that reads nothing would keep its connection and the buffered data: even closing it
    waits until all of the data is sent. One that never finishes its headers needs no credential.
    """

    stall_timeout = STALL_TIMEOUT
    header_timeout = HEADER_TIMEOUT
    _stalled: asyncio.TimerHandle | None = None
    _headers: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_headers()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # Part of the next request may be there already; without, the connection is idle.
        if self.conn.trailing_data[0]:
            self._expect_headers()

    def pause_writing(self) -> None:
        super().pause_writing()
        _cancel(self._stalled)
        self._stalled = self._abort_in(self.stall_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        _cancel(self._stalled)

    def connection_lost(self, exc: Exception | None) -> None:
        _cancel(self._stalled)
        _cancel(self._headers)
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        """Wait for the headers of a request, unless one is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            _cancel(self._headers)
            self._headers = None
        elif self._headers is None:
            self._headers = self._abort_in(self.header_timeout)

    def _abort_in(self, timeout: timedelta) -> asyncio.TimerHandle:
        return self.loop.call_later(timeout.total_seconds(), self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


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
