"""The transport of a session over HTTP: the SDK's own, over our checked and guarded client."""

import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from backburner import __version__
from backburner.core.errors import BadRequest
from backburner.gateway.addresses import IpNetwork
from backburner.gateway.transport import CheckedTransport, Resolve
from backburner.gateway.upstream.guarded_http import GuardedTransport
from backburner.gateway.upstream.limits import ANSWER_LIMIT, CONNECT_TIMEOUT, IDLE_TIMEOUT

MAX_URL_CHARS = 2_000
#: Other ports below are those of services that are not HTTP.
_WEB_PORTS = frozenset({80, 443})
#: A little above our own limit, whose words are better.
_MAX_EVENT_BYTES = ANSWER_LIMIT.size + 2**20


def check_url(text: str) -> httpx2.URL:
    """Check the address of a server. Raises `BadRequest`; where it leads is checked on connecting.

    Plain http is for networks that the operator allows, which is checked on connecting too.
    """
    if len(text) > MAX_URL_CHARS:
        raise BadRequest(f"The address is longer than {MAX_URL_CHARS:,} characters.")
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError):
        raise BadRequest("The address is not valid.", hint="Use https://.") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadRequest("The address has to begin with https://.")
    if url.userinfo:
        raise BadRequest("The address contains a user name or password.", hint="Leave it out.")
    if url.port is not None and not 1024 <= url.port < 2**16 and url.port not in _WEB_PORTS:
        raise BadRequest(
            f"The port {url.port} is not one for HTTP.", hint="Use 443, or one above 1023."
        )
    return url.copy_with(fragment=None)


def checked_transport(
    url: httpx2.URL,
    *,
    allow: Iterable[IpNetwork],
    resolve: Resolve | None,
    certificates: ssl.SSLContext,
) -> CheckedTransport:
    return CheckedTransport(
        allow=allow, resolve=resolve, certificates=certificates, public=url.scheme == "https"
    )


@asynccontextmanager
async def http_streams(
    url: httpx2.URL, transport: GuardedTransport, *, idle_timeout: timedelta = IDLE_TIMEOUT
) -> AsyncIterator[Any]:
    client = httpx2.AsyncClient(
        transport=transport,
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(CONNECT_TIMEOUT.total_seconds(), read=idle_timeout.total_seconds()),
        headers={"User-Agent": f"Backburner/{__version__}", "Accept-Encoding": "identity"},
    )
    async with (
        client,
        streamable_http_client(
            str(url), http_client=client, max_sse_event_size=_MAX_EVENT_BYTES
        ) as streams,
    ):
        yield streams
