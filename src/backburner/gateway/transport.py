"""HTTP that connects to no address unchecked: for pages, sign-ins and connections alike.

The check is where the connection is made, so no spelling of an address, no redirect and no name
that changes its mind gets past it.
"""

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta

import httpcore2
import httpx2

from backburner import __version__
from backburner.core.errors import NotAllowed
from backburner.gateway.addresses import Address, Network, parse, why_refused

#: Gives the addresses of a host, as text. Raises `OSError` if there are none.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
#: How many seconds one of several addresses has, so that the next gets its turn.
ONE_ADDRESS = 5.0
MOST_CONNECTIONS = 100


class CheckedTransport(httpx2.AsyncHTTPTransport):
    """Refuses, with `NotAllowed`, hosts with an address that is not public nor in `allow`."""

    def __init__(
        self,
        *,
        allow: Iterable[Network] = (),
        resolve: Resolve | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        trusted = certificates or trusted_certificates()
        super().__init__(verify=trusted, trust_env=False)
        # There is no argument for this. If the name changes, it is read before it is set, so that
        # it fails here instead of connecting unchecked.
        unchecked = self._pool
        self._pool = type(unchecked)(
            ssl_context=trusted,
            max_connections=MOST_CONNECTIONS,
            network_backend=_Checked(tuple(allow), resolve or resolve_by_system),
        )


def checked_client(transport: CheckedTransport, *, within: timedelta) -> httpx2.AsyncClient:
    """Make a client that takes nothing from the environment, and follows nothing by itself."""
    return httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=within.total_seconds(),
        headers={"User-Agent": f"Backburner/{__version__}"},
    )


def trusted_certificates() -> ssl.SSLContext:
    """Load those of the system, which takes a while: once is enough."""
    return httpx2.create_ssl_context(trust_env=False)


async def resolve_by_system(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class _Checked(httpcore2.AsyncNetworkBackend):
    def __init__(self, allow: Sequence[Network], resolve: Resolve) -> None:
        self._allow = allow
        self._resolve = resolve
        self._dialler = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the library has it so)
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        addresses = await self._addresses(host, port)
        limit = timeout if len(addresses) == 1 else min(timeout or ONE_ADDRESS, ONE_ADDRESS)
        failed: Exception = httpcore2.ConnectError(f"{host} has no address.")
        for address in addresses:
            try:
                return await self._dialler.connect_tcp(
                    address, port, limit, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failed = error
        raise failed

    async def sleep(self, seconds: float) -> None:
        await self._dialler.sleep(seconds)

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        try:
            found = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise httpcore2.ConnectError(f"There is no host {host}.") from None
        addresses = list(dict.fromkeys(parse(text) for text in found))
        for address in addresses:
            self._check(host, address)
        return [str(address) for address in addresses]

    def _check(self, host: str, address: Address) -> None:
        why = why_refused(address, allow=self._allow)
        if why is not None:
            leads = "" if host == str(address) else f" leads to {address}, which"
            raise NotAllowed(
                f"{host}{leads} is {why}.",
                hint="Only public addresses are connected to, and what the operator allows.",
            )
