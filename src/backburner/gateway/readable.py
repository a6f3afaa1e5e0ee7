"""A page as text: what a person would read of it, and where its links lead."""

import re
from html.parser import HTMLParser
from time import monotonic
from urllib.parse import urljoin

UNSEEN = frozenset("script style noscript template svg math iframe object head".split())
BLOCKS = frozenset(
    """
    address article aside blockquote br dd details div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section summary table td th tr ul
    """.split()
)
HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
LONGEST_LINK = 500
#: How many seconds to read a page; some are made to take long.
PATIENCE = 3.0
_CHUNK = 2**14
_HIDDEN = re.compile(r"<!--|<!\[CDATA\[|<script\b|<style\b", re.IGNORECASE)
_CLOSES = {
    "<!--": re.compile("--!?>"),
    "<![cdata[": re.compile("]]>"),
    "<script": re.compile(r"</script\b[^<>]{0,100}>", re.IGNORECASE),
    "<style": re.compile(r"</style\b[^<>]{0,100}>", re.IGNORECASE),
}
_SPACES = re.compile(r"[ \t\r\f\v\u00a0]+")


def readable(html: str, *, base: str) -> str:
    """Reduce a page to its text; what is not read in time is left out.

    The parser looks again and again at what does not come to an end, which takes the square of its
    length. So it is fed in pieces, and what has no end is not waited for.
    """
    reader = _Reader(base)
    until = monotonic() + PATIENCE
    text = _without_hidden(html)
    for start in range(0, len(text), _CHUNK):
        reader.feed(text[start : start + _CHUNK])
        if monotonic() > until or len(reader.rawdata) > 4 * _CHUNK:
            break
    if len(reader.rawdata) < _CHUNK // 4:
        reader.close()
    return reader.text()


def _without_hidden(html: str) -> str:
    """Leave out comments and scripts, which may be long; one that does not end hides the rest."""
    kept: list[str] = []
    end = 0
    while found := _HIDDEN.search(html, end):
        kept.append(html[end : found.start()])
        close = _CLOSES[found[0].lower()].search(html, found.end())
        if close is None:
            return "".join(kept)
        end = close.end()
    return "".join([*kept, html[end:]])


class _Reader(HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__(convert_charrefs=True)
        self._base = base
        self._parts: list[str] = []
        self._title: list[str] = []
        self._unseen: list[str] = []
        self._links: list[str] = []
        self._in_title = False
        self._kept_as_it_is = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_title = tag == "title"
        if tag in UNSEEN:
            self._unseen.append(tag)
        elif tag == "body":
            # A head that nobody closed would hide everything.
            self._unseen.clear()
        elif tag == "a":
            self._links.append(self._target(dict(attrs).get("href")))
        elif tag == "pre":
            self._kept_as_it_is += 1
        self._break(tag)
        if tag == "li":
            self._say("- ")
        self._say(HEADINGS.get(tag, ""))

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in self._unseen:
            while self._unseen.pop() != tag:
                pass
        elif tag == "a" and self._links:
            link = self._links.pop()
            self._say(f" ({link})" if link else "")
        elif tag == "pre":
            self._kept_as_it_is = max(0, self._kept_as_it_is - 1)
        self._break(tag)

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self._title.append(data)
        elif self._kept_as_it_is:
            self._say(data)
        else:
            self._say(_SPACES.sub(" ", data.replace("\n", " ")))

    def text(self) -> str:
        title = " ".join("".join(self._title).split())
        lines = [line.rstrip() for line in "".join(self._parts).split("\n")]
        body = re.sub(r"\n{3,}", "\n\n", "\n".join(_without_indent(line) for line in lines)).strip()
        return f"{title}\n\n{body}" if title else body

    def _say(self, text: str) -> None:
        if text and not self._unseen:
            self._parts.append(text)

    def _break(self, tag: str) -> None:
        if tag in BLOCKS:
            self._say("\n")

    def _target(self, href: str | None) -> str:
        if not href or href.startswith(("#", "javascript:", "data:")):
            return ""
        try:
            target = urljoin(self._base, href.strip())
        except ValueError:
            return ""
        return target if len(target) <= LONGEST_LINK else ""


def _without_indent(line: str) -> str:
    # One space is what is left of a line break in the source; more are meant.
    return line[1:] if line[:1] == " " and line[1:2] != " " else line
