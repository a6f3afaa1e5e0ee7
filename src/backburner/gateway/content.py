"""What a server gave, made into text: unpacked within bounds, decoded, and if a page, reduced."""

import codecs
import re
import zlib
from dataclasses import dataclass

from backburner.core.errors import BadRequest, ConnectionFailed
from backburner.gateway.readable import readable
from backburner.ports import MAX_SHOWN_CHARS, WebPage

MOST_READ = 2 * 2**20

_HTML = ("text/html", "application/xhtml+xml")
_TEXT = re.compile(
    r"text/.*|application/(.*[+])?(json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-sh|sql|rtf"
    r"|x-ndjson|graphql|x-www-form-urlencoded)"
)
#: Others that Python knows are not for text, or take long on purpose.
_CHARSETS = re.compile(
    r"(us-)?ascii|utf-?(8|16|32)([-_]?[bl]e)?|(iso|windows|cp|koi8|gb|big5|shift|euc|mac)[\w-]*",
    re.IGNORECASE,
)
_CHARSET = re.compile(rb"""charset\s*=\s*["']?\s*([\w-]{2,40})""", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server gave, as it came."""

    url: str
    host: str
    status: int
    #: Such as `text/html`; empty: it does not say.
    kind: str
    encoding: str
    charset: str | None
    body: bytes
    #: There was more.
    cut: bool


def read(answer: Answer) -> WebPage:
    """Make text of an answer."""
    body, cut = _unpacked(answer)
    if answer.kind and not _TEXT.fullmatch(answer.kind) and answer.kind not in _HTML:
        raise BadRequest(f"{answer.url} is {answer.kind}, which is not text.")
    charset = _charset(answer, body)
    if b"\0" in body[:1024] and not charset.lower().startswith(("utf-16", "utf-32", "utf16")):
        raise BadRequest(f"{answer.url} is not text.")
    text = body.decode(charset, errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
    if answer.kind in _HTML:
        text = readable(text, base=answer.url)
    return WebPage(
        url=answer.url,
        status=answer.status,
        kind=answer.kind or "text/plain",
        text=text[:MAX_SHOWN_CHARS],
        cut=cut or answer.cut or len(text) > MAX_SHOWN_CHARS,
    )


def _unpacked(answer: Answer) -> tuple[bytes, bool]:
    """Unpack as much as may be read, however much there would be."""
    if answer.encoding in ("", "identity"):
        return answer.body, False
    if answer.encoding not in ("gzip", "x-gzip", "deflate"):
        raise ConnectionFailed(f"{answer.host} packs its answer as {answer.encoding[:40]!r}.")
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        body = unpacking.decompress(answer.body, MOST_READ)
    except zlib.error:
        raise ConnectionFailed(f"{answer.host} gave what cannot be unpacked.") from None
    return body, bool(unpacking.unconsumed_tail)


def _charset(answer: Answer, body: bytes) -> str:
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if body.startswith(mark):
            return name
    said = _CHARSET.search(body[:1024]) if answer.kind in _HTML else None
    charset = answer.charset or (said.group(1).decode() if said else "")
    return charset if _is_known(charset) else "utf-8"


def _is_known(charset: str) -> bool:
    if not _CHARSETS.fullmatch(charset):
        return False
    try:
        codecs.lookup(charset)
    except (LookupError, UnicodeError):
        return False
    return True
