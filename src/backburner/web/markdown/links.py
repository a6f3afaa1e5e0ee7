"""Links: where they may lead, which texts become links, and when the host has to be shown."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from backburner.web.markdown.budget import spend
from backburner.web.markdown.characters import without_hidden

#: What browsers read as this address, and as no other: they ignore tabs and read \ as /.
_ALLOWED = re.compile(
    r"(?:https?://(?:[^/?#\\@]*@)?[^/?#\\@\s]+(?:[/?#].*)?|mailto:[^\s?]+(?:\?.*)?)",
    re.IGNORECASE | re.ASCII,
)
_PLAIN_ASCII = re.compile(r"""[!#-;=?-\[\]_a-z~|]+""", re.IGNORECASE)
_MAX_URL = 4000
_NO_PART = r"\s<>\"`{}\\^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
_CJK_END = (
    "\u3001\u3002\u300b\u300d\u300f\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
    "\u201c\u201d\u2018\u2019"
)
_BARE = re.compile(
    rf"(?<![\w@/.:+-])(?:(?:https?://|www\.(?=[^\s.]))[^{_NO_PART}{_CJK_END}]{{1,2000}}"
    r"|(?:mailto:)?[a-z0-9][a-z0-9._%+-]{0,63}@(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?![\w@-]))",
    re.IGNORECASE | re.ASCII,
)
_TRAILING = "?!.,:;*_~'"
_BRACKETS = {")": "(", "]": "["}
_DOTS = str.maketrans(dict.fromkeys("\u3002\uff0e\uff61\u2024", "."))
#: A host in a text, and the path after it, which may look like one.
_NAMED_HOST = re.compile(
    r"((?:[\w-]{1,63}\.){1,8}[^\W\d_][\w-]{1,62}|(?:\d{1,3}\.){3}\d{1,3})(?![\w@])(?:[:/?#]\S*)?"
)


def is_allowed(url: str) -> bool:
    return (
        len(url) <= _MAX_URL
        and _PLAIN_ASCII.fullmatch(url) is not None
        and _ALLOWED.fullmatch(url) is not None
    )


def note_host(url: str, text: str) -> str | None:
    """Return the host of a link if its text is none, or names another; of mail, the address."""
    target, user = _read_target(url)
    text = unicodedata.normalize("NFKC", without_hidden(text)).translate(_DOTS).casefold().strip()
    if not text or user or ("xn--" in target and target not in text):
        return target
    if _is_own_text(url, text):
        return None
    if "@" in target:
        return target if "@" in text and target not in text else None
    named = {_bare_host(host) for host in _NAMED_HOST.findall(text[:2000])}
    if "://" in text and not named:
        return target
    return target if named - {_bare_host(target)} else None


def _is_own_text(url: str, text: str) -> bool:
    own = {each.removesuffix("/") for each in (url.casefold(), unquote(url).casefold())}
    return any(f"{scheme}{text.removesuffix('/')}" in own for scheme in ("", "https://", "mailto:"))


def _read_target(url: str) -> tuple[str, str]:
    """Return the host, or the address of mail, and the user before the host."""
    scheme, _, rest = url.partition(":")
    if scheme.lower() == "mailto":
        return unquote(rest.partition("?")[0])[:200].casefold(), ""
    authority = re.split(r"[/?#]", rest.removeprefix("//"), maxsplit=1)[0]
    user, _, host = authority.rpartition("@")
    return host.casefold(), user


def _bare_host(host: str) -> str:
    return host.partition(":")[0].removeprefix("www.").rstrip(".")


def add_bare_links(state: StateCore) -> None:
    """Turn addresses in texts into links."""
    for token in state.tokens:
        if token.type == "inline" and token.children and _may_hold_link(token.content):
            token.children = list(_with_links(state, token.children))


def _may_hold_link(text: str) -> bool:
    # The content is the source: entities may stand for any character.
    return "&" in text or "@" in text or "://" in text or "www." in text.lower()


def _with_links(state: StateCore, tokens: Sequence[Token]) -> Iterator[Token]:
    depth = 0
    for token in tokens:
        depth += {"link_open": 1, "link_close": -1}.get(token.type, 0)
        if token.type == "text" and not depth:
            yield from _split(state, token.content)
        else:
            yield token


def _split(state: StateCore, text: str) -> Iterator[Token]:
    end = 0
    for found in _BARE.finditer(text):
        shown = _trim(found[0])
        url = state.md.normalizeLink(_with_scheme(shown))
        if not is_allowed(url):
            continue
        spend(state.env)
        yield _text(text[end : found.start()])
        yield Token("link_open", "a", 1, attrs={"href": url})
        yield _text(shown)
        yield Token("link_close", "a", -1)
        end = found.start() + len(shown)
    yield _text(text[end:])


def _text(content: str) -> Token:
    return Token("text", "", 0, content=content)


def _with_scheme(shown: str) -> str:
    start = shown[:8].lower()
    if start.startswith("www."):
        return f"https://{shown}"
    if start.startswith(("http://", "https://", "mailto:")):
        return shown
    return f"mailto:{shown}"


def _trim(shown: str) -> str:
    """Leave out punctuation at the end, and brackets that the address does not open."""
    balance = {close: shown.count(close) - shown.count(opens) for close, opens in _BRACKETS.items()}
    end = len(shown)
    while end:
        last = shown[end - 1]
        if balance.get(last, 0) > 0:
            balance[last] -= 1
        elif last not in _TRAILING:
            break
        end -= 1
    return shown[:end]
