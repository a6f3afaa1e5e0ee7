"""The network for the agent: one public address, as text, bounded in size and time."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from urllib.parse import urlsplit

import httpx2

from backburner.core.errors import BadRequest, ConnectionFailed
from backburner.gateway.addresses import Network
from backburner.gateway.content import MOST_READ, Answer, read
from backburner.gateway.transport import (
    CheckedTransport,
    Resolve,
    checked_client,
    trusted_certificates,
)
from backburner.ports import WebPage

WITHIN = timedelta(seconds=20)
MOST_REDIRECTS = 5
LONGEST_URL = 8_000

_ASKED_FOR = {
    "Accept": "text/html, text/*;q=0.9, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
}


class CheckedNetwork:
    """Fetches from public addresses, and from the networks that the operator allows."""

    def __init__(
        self,
        *,
        allow: Iterable[Network] = (),
        resolve: Resolve | None = None,
        within: timedelta = WITHIN,
    ) -> None:
        self._allow = tuple(allow)
        self._resolve = resolve
        self._within = within
        self._certificates = trusted_certificates()

    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        """Get what an address gives, as text."""
        start = _parse(url)
        try:
            async with asyncio.timeout(self._within.total_seconds()):
                answer = await self._follow(start, other_hosts=other_hosts)
                return await asyncio.to_thread(read, answer)
        except TimeoutError:
            seconds = self._within.total_seconds()
            raise ConnectionFailed(
                f"{start.host} did not give all of it within {seconds:g} seconds."
            ) from None
        except httpx2.HTTPError as error:
            why = str(error) or type(error).__name__
            raise ConnectionFailed(f"{start.host} could not be read: {why}") from None

    async def _follow(self, url: httpx2.URL, *, other_hosts: bool) -> Answer:
        # Of its own, so that nothing, such as a cookie, is left for the next.
        transport = CheckedTransport(
            allow=self._allow, resolve=self._resolve, certificates=self._certificates
        )
        async with checked_client(transport, within=self._within) as client:
            for _ in range(MOST_REDIRECTS + 1):
                answer = await _get(client, url)
                if isinstance(answer, Answer):
                    return answer
                if not other_hosts and not _is_same_place(url, answer):
                    raise ConnectionFailed(
                        f"{url.host} points to another place: {answer}",
                        hint="Fetch that address itself if it is what you want.",
                        permanent=True,
                    )
                url = answer
        raise ConnectionFailed(f"{url.host} points from one address to the next without end.")


async def _get(client: httpx2.AsyncClient, url: httpx2.URL) -> Answer | httpx2.URL:
    """Ask once. Give the answer, or where it points."""
    async with client.stream("GET", url, headers=_ASKED_FOR) as response:
        if response.has_redirect_location:
            return _parse(str(_joined(url, response.headers["Location"])))
        body, cut = await _take(response)
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        return Answer(
            url=str(url),
            host=url.host,
            status=response.status_code,
            kind=kind,
            encoding=response.headers.get("Content-Encoding", "").strip().lower(),
            charset=response.charset_encoding,
            body=body,
            cut=cut,
        )


async def _take(response: httpx2.Response) -> tuple[bytes, bool]:
    taken = bytearray()
    async for chunk in response.aiter_raw():
        taken += chunk
        if len(taken) > MOST_READ:
            return bytes(taken[:MOST_READ]), True
    return bytes(taken), False


def _parse(text: str) -> httpx2.URL:
    if len(text) > LONGEST_URL:
        raise BadRequest(f"That address is longer than {LONGEST_URL:,} characters.")
    try:
        url = httpx2.URL(text)
        seen = urlsplit(text)
        same = (seen.hostname or "", seen.port) == (url.host, url.port or seen.port)
    except (httpx2.InvalidURL, ValueError):
        raise BadRequest("That is not an address of a page.") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise BadRequest("Only addresses that begin with http:// or https:// can be fetched.")
    if url.userinfo:
        raise BadRequest("An address with a name or password in it is not fetched.")
    if not same:
        # Consent was for the host that one reading gives, and the other would be asked.
        raise BadRequest("That address can be read in more than one way.")
    return url


def _joined(url: httpx2.URL, location: str) -> httpx2.URL:
    try:
        return url.join(location)
    except (httpx2.InvalidURL, ValueError):
        raise ConnectionFailed(f"{url.host} points to what is not an address.") from None


def _is_same_place(here: httpx2.URL, there: httpx2.URL) -> bool:
    """See whether consent to the one is consent to the other: the same, or the same encrypted."""
    if here.host != there.host:
        return False
    upgraded = (here.scheme, there.scheme) == ("http", "https")
    same = (here.scheme, here.port) == (there.scheme, there.port)
    return same or (upgraded and here.port is None and there.port is None)
