"""The addresses that servers name in metadata: which of them we send requests or users to."""

from collections.abc import Iterable
from ipaddress import ip_address
from urllib.parse import urlsplit

import httpx2

from backburner.core.errors import ConnectionFailed
from backburner.gateway.addresses import IpNetwork, why_refused

MAX_URL_CHARS = 4_000
#: Other services of a host listen below.
FIRST_UNPRIVILEGED_PORT = 1024
#: The host names of loopback, as far as they need no resolver.
_LOOPBACK_NAMES = {"localhost": "127.0.0.1"}


def check_address(text: str, label: str, *, allow: Iterable[IpNetwork] = ()) -> httpx2.URL:
    """Refuse an address that is not https, or could be taken for another one.

    http is for loopback only, where the operator allows it. Whether its host is public is checked
    when we connect. The address is not part of a message: it comes from a server's document.
    """
    url = parse_address(text)
    # `host`, which is shown, is not in punycode.
    if url is None or url.host != url.raw_host.decode():
        raise ConnectionFailed(f"{label} is not a valid address.", permanent=True)
    if not _is_encrypted(url, allow):
        raise ConnectionFailed(
            f"{label} is not an https address.",
            hint="http is for servers on this machine that the operator allows.",
            permanent=True,
        )
    if url.userinfo or url.fragment:
        raise ConnectionFailed(
            f"{label} has a user name, a password or a fragment in it.", permanent=True
        )
    if url.port is not None and url.port not in (80, 443) and url.port < FIRST_UNPRIVILEGED_PORT:
        raise ConnectionFailed(f"{label} has the port of another service.", permanent=True)
    return url


def parse_address(text: str) -> httpx2.URL | None:
    """Return an address on whose host parsers agree: one finds what is shown, one what is asked."""
    if len(text) > MAX_URL_CHARS or not text.isascii() or not text.isprintable():
        return None
    try:
        url, other = httpx2.URL(text), urlsplit(text)
        same = (other.hostname or "", other.port) == (url.raw_host.decode(), url.port or other.port)
    except (httpx2.InvalidURL, ValueError):
        return None
    return url if same else None


def _is_encrypted(url: httpx2.URL, allow: Iterable[IpNetwork]) -> bool:
    if url.scheme == "https":
        return bool(url.host)
    if url.scheme != "http":
        return False
    try:
        address = ip_address(_LOOPBACK_NAMES.get(url.host, url.host))
    except ValueError:
        return False
    return address.is_loopback and why_refused(address, allow=allow) is None
