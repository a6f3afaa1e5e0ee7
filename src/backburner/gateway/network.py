"""The network of the agent: fetches one public address as text, bounded in size and time."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2

from backburner.core.errors import BadRequest, ConnectionFailed
from backburner.gateway.addresses import IpNetwork
from backburner.gateway.content import MAX_BODY_BYTES, RawResponse, to_page
from backburner.gateway.transport import (
    CheckedTransport,
    Resolve,
    checked_client,
    trusted_certificates,
)
from backburner.ports import WebPage

FETCH_TIMEOUT = timedelta(seconds=20)
MAX_REDIRECTS = 5
MAX_URL_CHARS = 8_000

_HEADERS = {
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
}


class CheckedNetwork:
    """Fetches from public addresses, and from the networks that the operator allows."""

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        resolve: Resolve | None = None,
        within: timedelta = FETCH_TIMEOUT,
    ) -> None:
        self._allow = tuple(allow)
        self._resolve = resolve
        self._within = within
        self._certificates = trusted_certificates()

    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        start = _parse(url)
        try:
            async with asyncio.timeout(self._within.total_seconds()):
                response = await self._follow(start, other_hosts=other_hosts)
                return await asyncio.to_thread(to_page, response)
        except TimeoutError:
            seconds = self._within.total_seconds()
            raise ConnectionFailed(
                f"{start.host} did not respond completely within {seconds:g} seconds."
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            why = str(error) or type(error).__name__
            raise ConnectionFailed(f"{start.host} could not be fetched: {why}") from None

    async def _follow(self, url: httpx2.URL, *, other_hosts: bool) -> RawResponse:
        # One for each fetch, so that no cookie or connection is left for the next.
        transport = CheckedTransport(
            allow=self._allow, resolve=self._resolve, certificates=self._certificates
        )
        async with checked_client(transport, within=self._within) as client:
            for _ in range(MAX_REDIRECTS + 1):
                response = await _get(client, url)
                if isinstance(response, RawResponse):
                    return response
                if not other_hosts and not _is_same_host(url, response):
                    raise ConnectionFailed(
                        f"{url.host} redirects to another host: {response}",
                        hint="Fetch that address instead.",
                        permanent=True,
                    )
                url = response
        raise ConnectionFailed(f"{url.host} redirects more than {MAX_REDIRECTS} times.")


async def _get(client: httpx2.AsyncClient, url: httpx2.URL) -> RawResponse | httpx2.URL:
    """Send one request; return the response, or the target of a redirect."""
    async with client.stream("GET", url, headers=_HEADERS) as response:
        if response.has_redirect_location:
            return _parse(str(_join(url, response.headers["Location"])))
        body, cut = await _read_body(response)
        media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return RawResponse(
            url=str(url),
            host=url.host,
            status=response.status_code,
            media_type=media_type,
            encoding=response.headers.get("Content-Encoding", "").strip().lower(),
            charset=response.charset_encoding,
            body=body,
            cut=cut,
        )


async def _read_body(response: httpx2.Response) -> tuple[bytes, bool]:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            return bytes(body[:MAX_BODY_BYTES]), True
    return bytes(body), False


def _parse(text: str) -> httpx2.URL:
    if len(text) > MAX_URL_CHARS:
        raise BadRequest(f"The address is longer than {MAX_URL_CHARS:,} characters.")
    try:
        url = httpx2.URL(text)
        other = urlsplit(text)
        same = (other.hostname or "", other.port) == (url.host, url.port or other.port)
    except (httpx2.InvalidURL, ValueError):
        raise BadRequest("The address is not valid.", hint="Use http:// or https://.") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadRequest("The address has to begin with http:// or https://.")
    if url.userinfo:
        raise BadRequest("The address contains a user name or password.", hint="Leave it out.")
    if not same:
        # The user approved the host that one parser finds; the other one would be connected to.
        raise BadRequest("The address is ambiguous: parsers disagree on its host.")
    return url


def _join(url: httpx2.URL, location: str) -> httpx2.URL:
    try:
        return url.join(location)
    except (httpx2.InvalidURL, ValueError):
        raise ConnectionFailed(f"{url.host} redirects to an invalid address.") from None


def _is_same_host(here: httpx2.URL, there: httpx2.URL) -> bool:
    """Return whether approval of one covers the other: the same, or the same over https."""
    if here.host != there.host:
        return False
    upgraded = (here.scheme, there.scheme) == ("http", "https")
    same = (here.scheme, here.port) == (there.scheme, there.port)
    return same or (upgraded and here.port is None and there.port is None)
