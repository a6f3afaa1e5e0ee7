"""Requests to authorization servers: addresses checked, sizes and times bounded, no redirects."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import httpx2

from backburner.core.errors import ConnectionFailed, NotAllowed
from backburner.gateway.addresses import IpNetwork
from backburner.gateway.oauth.addresses import check_address
from backburner.gateway.transport import (
    CheckedTransport,
    Resolve,
    checked_client,
    trusted_certificates,
)

REQUEST_TIMEOUT = timedelta(seconds=15)
MAX_DOCUMENT_BYTES = 256 * 1024
#: The longest time that a server may ask us to wait.
MAX_RETRY_AFTER_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, whose body no message may repeat."""

    host: str
    status: int
    headers: httpx2.Headers
    body: bytes = field(repr=False)

    def document(self) -> dict[str, Any] | None:
        """Return the JSON object that it is; None: it is not one."""
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    @property
    def retry_after(self) -> timedelta | None:
        text = self.headers.get("retry-after", "")
        if not (text.isascii() and text.isdecimal()):
            return None
        return timedelta(seconds=min(int(text[:9]), MAX_RETRY_AFTER_SECONDS))


class Requests:
    """Makes a client for each request, so that no cookie or connection is left for the next."""

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        resolve: Resolve | None = None,
        within: timedelta = REQUEST_TIMEOUT,
    ) -> None:
        self.allow = tuple(allow)
        self._resolve = resolve
        self._within = within
        self._certificates = trusted_certificates()

    async def get(self, url: str, label: str, headers: Mapping[str, str]) -> Answer:
        return await self._send("GET", url, label, headers=headers)

    async def post_json(self, url: str, label: str, body: object) -> Answer:
        return await self._send("POST", url, label, json=body)

    async def ask_for_head(
        self, url: str, label: str, body: object, headers: Mapping[str, str]
    ) -> Answer:
        """Post JSON, and return the head of the answer: its body may be a stream without end."""
        return await self._send("POST", url, label, read=_leave, json=body, headers=headers)

    async def post_form(
        self, url: str, label: str, form: Mapping[str, str], headers: Mapping[str, str]
    ) -> Answer:
        return await self._send("POST", url, label, data=dict(form), headers=headers)

    async def _send(
        self,
        method: str,
        address: str,
        label: str,
        *,
        headers: Mapping[str, str] | None = None,
        read: Callable[[str, httpx2.Response], Awaitable[Answer]] | None = None,
        **content: Any,
    ) -> Answer:
        url = check_address(address, label, allow=self.allow)
        transport = CheckedTransport(
            allow=self.allow, resolve=self._resolve, certificates=self._certificates
        )
        sent = {"accept": "application/json", "accept-encoding": "identity", **(headers or {})}
        try:
            async with (
                asyncio.timeout(self._within.total_seconds()),
                checked_client(transport, within=self._within) as client,
                client.stream(method, url, headers=sent, **content) as response,
            ):
                return await (read or _read)(url.host, response)
        except TimeoutError:
            seconds = self._within.total_seconds()
            raise ConnectionFailed(
                f"{url.host} did not respond completely within {seconds:g} seconds."
            ) from None
        except NotAllowed as error:
            raise ConnectionFailed(error.message, hint=error.hint, permanent=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # The library looks at the target of a redirect, though it does not follow it. The text
            # of some errors has a part of the response in it.
            raise ConnectionFailed(
                f"{url.host} could not be asked: {type(error).__name__}."
            ) from None


async def _leave(host: str, response: httpx2.Response) -> Answer:
    return Answer(host, response.status_code, response.headers, b"")


async def _read(host: str, response: httpx2.Response) -> Answer:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ConnectionFailed(f"{host} compresses its response, which it was asked not to do.")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_DOCUMENT_BYTES:
            raise ConnectionFailed(
                f"The response of {host} is larger than {MAX_DOCUMENT_BYTES // 1024} KiB.",
                permanent=True,
            )
    return Answer(host, response.status_code, response.headers, bytes(body))
