"""Turn a response into text: decompressed within bounds, decoded, HTML reduced to its text."""

import codecs
import re
import zlib
from dataclasses import dataclass

from backburner.core.errors import BadRequest, ConnectionFailed
from backburner.gateway.readable import html_to_text
from backburner.ports import MAX_SHOWN_CHARS, WebPage

MAX_BODY_BYTES = 2 * 2**20

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.*|application/(.*[+])?(json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-sh|sql|rtf"
    r"|x-ndjson|graphql|x-www-form-urlencoded)"
)
#: Other codecs of Python are not for text, or slow by design.
_CHARSETS = re.compile(
    r"(us-)?ascii|utf-?(8|16|32)([-_]?[bl]e)?|(iso|windows|cp|koi8|gb|big5|shift|euc|mac)[\w-]*",
    re.IGNORECASE,
)
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w-]{2,40})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawResponse:
    """A response as received."""

    url: str
    host: str
    status: int
    #: Such as `text/html`; empty if the server does not say.
    media_type: str
    encoding: str
    charset: str | None
    body: bytes
    #: The body was longer.
    cut: bool


def to_page(response: RawResponse) -> WebPage:
    body, cut = _decompress(response)
    kind = response.media_type
    if kind and kind not in _HTML and not _TEXT.fullmatch(kind):
        raise BadRequest(
            f"{response.url} is {kind}, which is not text.",
            hint="Only text, HTML and JSON can be fetched.",
        )
    charset = _charset(response, body)
    if b"\0" in body[:1024] and not charset.lower().startswith(("utf-16", "utf-32", "utf16")):
        raise BadRequest(f"{response.url} is not text.")
    text = body.decode(charset, errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    if kind in _HTML:
        text = html_to_text(text, base=response.url)
    return WebPage(
        url=response.url,
        status=response.status,
        content_type=kind or "text/plain",
        text=text[:MAX_SHOWN_CHARS],
        truncated=cut or response.cut or len(text) > MAX_SHOWN_CHARS,
    )


def _decompress(response: RawResponse) -> tuple[bytes, bool]:
    """Decompress up to `MAX_BODY_BYTES`; return whether there is more."""
    if response.encoding in ("", "identity"):
        return response.body, False
    if response.encoding not in ("gzip", "x-gzip", "deflate"):
        raise ConnectionFailed(
            f"{response.host} compresses its response with {response.encoding[:40]!r}, which is not"
            " supported."
        )
    decompressor = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        body = decompressor.decompress(response.body, MAX_BODY_BYTES)
    except zlib.error:
        raise ConnectionFailed(f"The response of {response.host} cannot be decompressed.") from None
    return body, bool(decompressor.unconsumed_tail)


def _charset(response: RawResponse, body: bytes) -> str:
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if body.startswith(mark):
            return name
    declared = _CHARSET.search(body[:1024]) if response.media_type in _HTML else None
    charset = response.charset or (declared.group(1).decode() if declared else "")
    return charset if _is_text_charset(charset) else "utf-8"


def _is_text_charset(charset: str) -> bool:
    if not _CHARSETS.fullmatch(charset):
        return False
    try:
        codecs.lookup(charset)
    except (LookupError, UnicodeError):
        return False
    return True
