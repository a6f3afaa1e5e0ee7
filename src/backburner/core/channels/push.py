"""Push messages to browsers: who gets them, where that is possible, and what they say."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from urllib.parse import urlsplit

from backburner.core.errors import BadRequest
from backburner.core.ids import PushId, UserId
from backburner.core.validation import escape_hidden, replace_invalid_characters

#: The name of the channel. Nobody names it as a destination: whoever has a subscription is told.
PUSH = "push"
MAX_SUBSCRIPTIONS = 20
MAX_ENDPOINT_CHARS = 2_000
MAX_LABEL_CHARS = 100
#: Sizes of keys that a browser makes, in bytes: a point on P-256, and a secret.
RECEIVER_KEY_BYTES, AUTH_BYTES = 65, 16
MAX_TITLE_CHARS = 100
MAX_BODY_CHARS = 1_000
#: Of a body whose characters are so wide that more would not fit.
MAX_WIDE_CHARS = 600
#: Of the JSON that is encrypted: with the head, the tag and the delimiter it is 3 KiB.
MAX_PAYLOAD_BYTES = 3 * 1024 - 103
_ELLIPSIS = "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSubscription:
    """A browser that takes push messages, until the session that it was made in ends."""

    id: PushId
    user_id: UserId
    #: The session that made it.
    session: str
    #: Whoever knows them can reach the browser, or read what it is sent.
    endpoint: str = field(repr=False)
    receiver_key: bytes = field(repr=False)
    auth: bytes = field(repr=False)
    #: The public key of this server that it was made for; it takes messages of no other one.
    server_key: bytes = field(repr=False)
    label: str
    created_at: datetime
    sent_at: datetime | None = None
    failed_at: datetime | None = None
    #: Why the last message was not taken; None: it was taken, or there was none.
    error: str | None = None

    @property
    def service(self) -> str:
        """The host of the browser's push service, which is no secret."""
        return urlsplit(self.endpoint).hostname or ""


def check_label(text: str) -> str:
    """Return the name of a browser as it is shown."""
    label = escape_hidden(" ".join(replace_invalid_characters(text).split()))
    if not label or len(label) > MAX_LABEL_CHARS:
        raise BadRequest(
            "The label of a browser is empty or too long.",
            hint=f"Use up to {MAX_LABEL_CHARS} characters, such as Chrome on Android.",
        )
    return label


#: The first that matches counts: most browsers also name those that they descend from.
_BROWSERS = (
    ("Edge", r"\bEdg(?:e|A|iOS)?/"),
    ("Opera", r"\bOPR/"),
    ("Samsung Internet", r"\bSamsungBrowser/"),
    ("Firefox", r"\b(?:Firefox|FxiOS)/"),
    ("Chrome", r"\b(?:Chrome|CriOS)/"),
    ("Safari", r"\bSafari/"),
)
_SYSTEMS = (
    ("Android", r"\bAndroid\b"),
    ("iPhone", r"\biPhone\b"),
    ("iPad", r"\biPad\b"),
    ("ChromeOS", r"\bCrOS\b"),
    ("Windows", r"\bWindows\b"),
    ("macOS", r"\bMac OS X\b"),
    ("Linux", r"\bLinux\b"),
)


def describe_browser(user_agent: str) -> str:
    """Name a browser by its User-Agent header, such as Chrome on Android."""
    browser, system = (
        next((name for name, pattern in known if re.search(pattern, user_agent)), "")
        for known in (_BROWSERS, _SYSTEMS)
    )
    return " on ".join(filter(None, (browser or "A browser", system)))


def why_impossible(origin: str) -> str:
    """Say why pages of an origin cannot take push messages; empty: they can.

    Browsers allow it on pages that are encrypted or come from their own machine.
    """
    url = urlsplit(origin)
    host = url.hostname or ""
    if url.scheme == "https" or host == "localhost" or host.endswith(".localhost"):
        return ""
    try:
        if ip_address(host).is_loopback:
            return ""
    except ValueError:
        pass
    return f"Browsers take push messages only on pages with https, or on localhost; not on {host}."


def compose_payload(*, title: str, text: str, address: str, tag: str, kind: str) -> bytes:
    """Write the JSON for the service worker of a page; long texts are cut."""
    title, text = _cut(" ".join(_to_plain(title).split()), MAX_TITLE_CHARS), _to_plain(text)
    message = {"title": title or "Backburner", "body": "", "url": address, "tag": tag, "kind": kind}
    message["body"] = _cut(text, MAX_BODY_CHARS)
    if len(_to_json(message)) > MAX_PAYLOAD_BYTES:
        message["body"] = _cut(text, MAX_WIDE_CHARS)
    return _to_json(message)


def _to_json(message: Mapping[str, str]) -> bytes:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def _to_plain(text: str) -> str:
    return escape_hidden(replace_invalid_characters(text)).strip()


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1].rstrip() + _ELLIPSIS
