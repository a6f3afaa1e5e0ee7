"""Requests to the push services of browsers, whose addresses users send: checked, no redirects.

An endpoint is a secret: messages name its host only.
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from datetime import timedelta
from email.utils import parsedate_to_datetime
from ipaddress import ip_address

import httpx2
import structlog

from backburner.core.channels.push import MAX_ENDPOINT_CHARS
from backburner.core.errors import BadRequest, ConnectionFailed, NotAllowed
from backburner.gateway.addresses import IpNetwork, why_refused
from backburner.gateway.oauth.addresses import check_address
from backburner.gateway.transport import (
    CheckedTransport,
    Resolve,
    checked_client,
    resolve_by_system,
    trusted_certificates,
)
from backburner.ports import PushAnswer

#: Services answer within a second; meanwhile a place for other messages is taken.
REQUEST_TIMEOUT = timedelta(seconds=5)
#: The longest time that a service may ask us to wait.
MAX_RETRY_AFTER = timedelta(days=1)
#: Of an answer, which has a reason in it at most.
MAX_READ_BYTES = 4_096
#: Apple's services name a reason, such as BadJwtToken.
_REASON = re.compile(r"[A-Za-z0-9_.-]{1,60}")

_log = structlog.get_logger(__name__)

#: While a request is made whose addresses no log may have, whatever its level.
_is_unlogged = ContextVar("is_unlogged", default=False)


def _is_logged(_record: logging.LogRecord) -> bool:
    return not _is_unlogged.get()


for _name in ("httpx2", "httpcore2.http11", "httpcore2.http2"):
    logging.getLogger(_name).addFilter(_is_logged)


class CheckedPushService:
    """Posts to public addresses, and to the networks that the operator allows."""

    def __init__(
        self,
        *,
        allow: Iterable[IpNetwork] = (),
        resolve: Resolve = resolve_by_system,
        within: timedelta = REQUEST_TIMEOUT,
    ) -> None:
        self._allow = tuple(allow)
        self._resolve = resolve
        self._within = within
        self._certificates = trusted_certificates()

    async def check(self, endpoint: str) -> None:
        """Refuse what is not public now; each request checks it again."""
        url = self._parse(endpoint)
        try:
            async with asyncio.timeout(self._within.total_seconds()):
                addresses = await self._resolve(url.host, url.port or 443)
        except (TimeoutError, OSError, UnicodeError):
            raise BadRequest(
                f"The host {url.host} of this subscription was not found.",
                hint="Try again when this server has a connection to it.",
            ) from None
        for address in addresses:
            why = why_refused(ip_address(address.partition("%")[0]), allow=self._allow)
            if why is not None:
                raise _refuse(url, f"{address} is {why}.")

    async def post(self, endpoint: str, body: bytes, headers: Mapping[str, str]) -> PushAnswer:
        unlogged = _is_unlogged.set(True)
        try:
            url = self._parse(endpoint)
            return await self._post(url, body, headers)
        except NotAllowed as error:
            refused = _refuse(url, error.message)
            raise ConnectionFailed(refused.message, hint=refused.hint, permanent=True) from None
        except BadRequest as error:
            raise ConnectionFailed(error.message, hint=error.hint, permanent=True) from None
        except TimeoutError:
            seconds = self._within.total_seconds()
            raise ConnectionFailed(
                f"{url.host} did not respond within {seconds:g} seconds."
            ) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            # The library looks at the target of a redirect, though it does not follow it. The text
            # of some errors has a part of the address in it.
            name = type(error).__name__
            raise ConnectionFailed(f"{url.host} could not be reached: {name}.") from None
        finally:
            _is_unlogged.reset(unlogged)

    async def _post(self, url: httpx2.URL, body: bytes, headers: Mapping[str, str]) -> PushAnswer:
        # One for each message, so that no cookie or connection is left for another user's.
        transport = CheckedTransport(
            allow=self._allow, resolve=self._resolve, certificates=self._certificates
        )
        async with (
            asyncio.timeout(self._within.total_seconds()),
            checked_client(transport, within=self._within) as client,
            client.stream(
                "POST", url, content=body, headers={"accept-encoding": "identity", **headers}
            ) as response,
        ):
            reason = "" if response.is_success else _read_reason(await _read(response))
            return PushAnswer(response.status_code, _read_retry_after(response.headers), reason)

    def _parse(self, endpoint: str) -> httpx2.URL:
        try:
            url = check_address(endpoint, "The endpoint of this subscription", allow=self._allow)
        except ConnectionFailed as error:
            raise BadRequest(error.message, hint=error.hint) from None
        if len(endpoint) > MAX_ENDPOINT_CHARS:
            raise BadRequest("The endpoint of this subscription is too long.")
        return url


def _refuse(url: httpx2.URL, why: str) -> NotAllowed:
    """Name the address to the operator only: users would look up names of a private network."""
    _log.warning("push.address_refused", host=url.host, error=why)
    return NotAllowed(
        f"The push service {url.host} is not at a public address.",
        hint="Only public addresses and networks that the operator allows can be used.",
    )


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > MAX_READ_BYTES:
            break
    return bytes(body)


def _read_reason(body: bytes) -> str:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return ""
    reason = found.get("reason") if isinstance(found, dict) else None
    return reason if isinstance(reason, str) and _REASON.fullmatch(reason) else ""


def _read_retry_after(headers: httpx2.Headers) -> timedelta | None:
    """Read a number of seconds, or a date by the clock of the service."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(timedelta(seconds=int(text[:9])), MAX_RETRY_AFTER)
    try:
        wait = parsedate_to_datetime(text) - parsedate_to_datetime(headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(timedelta(), min(wait, MAX_RETRY_AFTER))
