"""HTTP that checks every address before it connects: for pages, sign-ins and connections.

The check is made where the connection is, so no spelling of an address, no redirect and no change
of DNS (rebinding) gets past it.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta

import httpcore2
import httpx2

from backburner import __version__
from backburner.core.errors import NotAllowed
from backburner.gateway.addresses import (
    NOT_PUBLIC,
    IpAddress,
    IpNetwork,
    parse,
    why_refused,
)
from backburner.gateway.lookups import Lookups
from backburner.gateway.paced_stream import PacedStream

#: Returns the addresses of a host, as text. Raises `OSError` if there are none.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
#: For connecting to one of several addresses, before the next is tried.
ADDRESS_SECONDS = 5.0
MAX_CONNECTIONS = 100
#: One for the process: its threads are counted.
resolve_by_system = Lookups()


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """Raises `NotAllowed` for hosts with an address that is neither public nor in `allow`.

    Without `public`, for what is not encrypted, it has to be in `allow`.
    """

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        resolve: Resolve | None = None,
        certificates: ssl.SSLContext | None = None,
        public: bool = True,
    ) -> None:
        trusted = certificates or trusted_certificates()
        super().__init__(verify=trusted, trust_env=False)
        # There is no argument for this. The attribute is read before it is set, so that a library
        # that renames it fails here instead of connecting unchecked.
        unchecked = self._pool
        self._pool = type(unchecked)(
            ssl_context=trusted,
            max_connections=MAX_CONNECTIONS,
            network_backend=_CheckedBackend(
                tuple(allow), resolve or resolve_by_system, public=public
            ),
        )


def checked_client(transport: CheckedTransport, *, within: timedelta) -> httpx2.AsyncClient:
    """Make a client that ignores the environment and follows no redirects."""
    return httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=within.total_seconds(),
        headers={"User-Agent": f"Backburner/{__version__}"},
    )


def trusted_certificates() -> ssl.SSLContext:
    """Load the system's certificates. This is slow, so do it once."""
    return httpx2.create_ssl_context(trust_env=False)


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    def __init__(self, allow: Sequence[IpNetwork], resolve: Resolve, *, public: bool) -> None:
        self._allow = allow
        self._public = public
        self._resolve = resolve
        self._dialler = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the library's interface)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses(host, port)
        except TimeoutError:
            raise httpcore2.ConnectTimeout(f"{host} could not be looked up in time.") from None
        limit = timeout if len(addresses) == 1 else min(timeout or ADDRESS_SECONDS, ADDRESS_SECONDS)
        failed: Exception = httpcore2.ConnectError(f"{host} has no address.")
        for address in addresses:
            try:
                stream = await self._dialler.connect_tcp(
                    address, port, limit, local_address, socket_options
                )
                return PacedStream(stream)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed

    async def sleep(self, seconds: float) -> None:
        await self._dialler.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        if not (self._public or self._allow):
            # No address of it could be used, so it is not looked up.
            raise _unencrypted(host)
        try:
            resolved = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"Host not found: {host}.") from None
        addresses = list(dict.fromkeys(parse(text) for text in resolved))
        for address in addresses:
            self._check(host, address)
        return [str(address) for address in addresses]

    def _check(self, host: str, address: IpAddress) -> None:
        why = why_refused(address, allow=self._allow)
        if why is not None:
            via = "" if host == str(address) else f" resolves to {address}, which"
            # No setting allows the others.
            is_private = why == NOT_PUBLIC
            raise NotAllowed(
                f"{host}{via} is {why}.",
                hint="To allow it, put it into private_networks in the settings and restart."
                if is_private
                else "Only public addresses and networks that the operator allows can be used.",
            )
        if not (self._public or any(address in network for network in self._allow)):
            raise _unencrypted(host)


def _unencrypted(host: str) -> NotAllowed:
    return NotAllowed(
        f"Requests to {host} would not be encrypted.",
        hint="Use https; http is for networks that the operator allows.",
    )
