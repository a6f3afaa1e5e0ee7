"""HTML as text: the visible text of a page, with the targets of its links."""

import re
from collections import Counter
from html.parser import HTMLParser
from time import monotonic
from urllib.parse import urljoin

HIDDEN_TAGS = frozenset("script style noscript template svg math iframe object head".split())
BLOCK_TAGS = frozenset(
    """
    address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section summary table td th tr ul
    """.split()
)
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
MAX_LINK_CHARS = 500
#: For parsing one page; some are built to take long.
PARSE_SECONDS = 3.0
_CHUNK_CHARS = 2**14
_HIDDEN = re.compile(r"<!--|<!\[CDATA\[|<script\b|<style\b", re.IGNORECASE)
_CLOSES = {
    "<!--": re.compile("--!?>"),
    "<![cdata[": re.compile("]]>"),
    "<script": re.compile(r"</script\b[^<>]{0,100}>", re.IGNORECASE),
    "<style": re.compile(r"</style\b[^<>]{0,100}>", re.IGNORECASE),
}
_SECTION = re.compile(r"<!\[[^<>]{0,200}>")
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")


def html_to_text(html: str, *, base: str) -> str:
    """Reduce a page to its text; the rest is left out when the time is up.

    The parser rescans an unfinished tag with every piece, which is quadratic in its length. So the
    page is fed in pieces, and parsing stops at a tag that does not end.
    """
    reader = _Reader(base)
    deadline = monotonic() + PARSE_SECONDS
    text = _without_hidden(html)
    for start in range(0, len(text), _CHUNK_CHARS):
        reader.feed(text[start : start + _CHUNK_CHARS])
        if monotonic() > deadline or len(reader.rawdata) > 4 * _CHUNK_CHARS:
            break
    if len(reader.rawdata) < _CHUNK_CHARS // 4:
        reader.close()
    return reader.text()


def _without_hidden(html: str) -> str:
    """Remove comments and scripts, which may be long; one that does not end hides the rest."""
    kept: list[str] = []
    end = 0
    while opened := _HIDDEN.search(html, end):
        kept.append(html[end : opened.start()])
        close = _CLOSES[opened[0].lower()].search(html, opened.end())
        if close is None:
            return _without_sections("".join(kept))
        end = close.end()
    return _without_sections("".join([*kept, html[end:]]))


def _without_sections(html: str) -> str:
    """Remove sections such as `<![endif]>`: the parser fails at one that it does not know."""
    return _SECTION.sub("", html).replace("<![", "&lt;![")


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._parts: list[str] = []
        self._title: list[str] = []
        #: Open elements that are not shown, and how many there are of each.
        self._hidden: list[str] = []
        self._hidden_counts = Counter[str]()
        self._links: list[str] = []
        self._in_title = False
        self._preformatted = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        if tag in HIDDEN_TAGS:
            self._hidden.append(tag)
            self._hidden_counts[tag] += 1
        elif tag == "body":
            # An unclosed head would hide everything.
            self._hidden.clear()
            self._hidden_counts.clear()
        elif tag == "a":
            self._links.append(self._target(dict(attrs).get("href")))
        elif tag == "pre":
            self._preformatted += 1
        self._break(tag)
        if tag == "li":
            self._add("- ")
        self._add(HEADINGS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if self._hidden_counts[tag]:
            self._close_hidden(tag)
        elif tag == "a" and self._links:
            link = self._links.pop()
            self._add(f" ({link})" if link else "")
        elif tag == "pre":
            self._preformatted = max(0, self._preformatted - 1)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif self._preformatted:
            self._add(data)
        else:
            self._add(_SPACES.sub(" ", data.replace("\n", " ")))

    def text(self) -> str:
        title = " ".join("".join(self._title).split())
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(_without_indent(line) for line in lines)).strip()
        return f"{title}\n\n{body}" if title else body

    def _close_hidden(self, tag: str) -> None:
        closed = ""
        while closed != tag:
            closed = self._hidden.pop()
            self._hidden_counts[closed] -= 1

    def _add(self, text: str) -> None:
        if text and not self._hidden:
            self._parts.append(text)

    def _break(self, tag: str) -> None:
        if tag in BLOCK_TAGS:
            self._add("\n")

    def _target(self, href: str | None) -> str:
        if not href or href.startswith(("#", "javascript:", "data:")):
            return ""
        try:
            target = urljoin(self._base, href.strip())
        except ValueError:
            return ""
        return target if len(target) <= MAX_LINK_CHARS else ""


def _without_indent(line: str) -> str:
    # A single space is a line break of the source; more than one is indentation.
    return line[1:] if line[:1] == " " and line[1:2] != " " else line
