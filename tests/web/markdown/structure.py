"""What rendered HTML may consist of, checked with the parser of the standard library."""

import re
from html.parser import HTMLParser

Attributes = dict[str, str | None]
Event = tuple[str, str, frozenset[tuple[str, str | None]]]

VOID = {"br", "hr", "input"}
#: What has to be there; all of it, in any order.
FIXED: dict[str, list[Attributes]] = {
    "bdi": [{"class": "host"}],
    "button": [{"type": "button", "class": "copy", "data-copy": ""}],
    "code": [{}, {"class": "math"}],
    "div": [{"class": "table"}],
    "input": [
        {"type": "checkbox", "disabled": "", "checked": "", "aria-label": "Done"},
        {"type": "checkbox", "disabled": "", "aria-label": "To do"},
    ],
    "li": [{}, {"class": "task"}],
    "pre": [{}, {"class": "math"}, {"class": "plain"}],
    "span": [{"class": each} for each in ("char", "comment", "keyword", "language", "literal")],
    "td": [{}, {"class": "left"}, {"class": "center"}, {"class": "right"}],
    "th": [
        {"scope": "col"},
        {"scope": "col", "class": "left"},
        {"scope": "col", "class": "center"},
        {"scope": "col", "class": "right"},
    ],
}
BARE = set("blockquote br em figcaption h3 h4 h5 h6 hr p s strong table tbody thead tr ul".split())
LINK = {"target": "_blank", "rel": "noopener noreferrer nofollow"}
ADDRESS = re.compile(r"https?://[!-~]+|mailto:[!-~]+", re.IGNORECASE)


class Structure(HTMLParser):
    """Reads HTML, and fails at what must not be in it."""

    def __init__(self, html: str, *, strict: bool = True) -> None:
        super().__init__()
        self.events: list[Event] = []
        self.links: list[str] = []
        self.text = ""
        self._strict = strict
        self._open: list[str] = []
        # Not markup any more: what is cut from that would be escaped again.
        self.feed(str(html))
        self.close()
        assert self._open == []
        # Nothing is left that the parser did not understand.
        assert self.rawdata == ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        assert len(given) == len(attrs)
        self.events.append(("start", tag, frozenset(attrs)))
        self._check(tag, given)
        if tag == "a":
            assert "a" not in self._open
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self.events.append(("end", tag, frozenset()))
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        self.events.append(("text", data, frozenset()))

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(f"a declaration: {decl}")

    def handle_pi(self, data: str) -> None:
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        raise AssertionError(f"a declaration: {data}")

    def _check(self, tag: str, given: Attributes) -> None:
        if tag in ("div", "pre"):
            # It scrolls, also by keyboard.
            assert given.pop("tabindex", "0") == "0"
        if tag == "a":
            address = given.pop("href", None)
            # The second line of defence takes away an address, and leaves the text.
            if address is not None or self._strict:
                assert address is not None
                assert ADDRESS.fullmatch(address), address
                self.links.append(address)
            assert given == LINK
        elif tag == "figure":
            assert re.fullmatch(r"[a-z]+", given.pop("data-language", "x") or "")
            assert given == {"class": "code"} or not self._strict
        elif tag == "ol":
            assert re.fullmatch(r"\d{1,9}", given.pop("start", "1") or "")
            assert given == {}
        elif tag in FIXED:
            allowed = FIXED[tag]
            if self._strict:
                assert given in allowed, (tag, given)
            else:
                known = {item for each in allowed for item in each.items()} | {("class", "")}
                assert set(given.items()) <= known, (tag, given)
        else:
            assert tag in BARE, tag
            assert given == {} or (given == {"class": ""} and not self._strict), (tag, given)


def merged(events: list[Event]) -> list[Event]:
    """Join texts that follow each other: parsers cut them at different places."""
    found: list[Event] = []
    for event in events:
        if event[0] == "text" and found and found[-1][0] == "text":
            found[-1] = ("text", found[-1][1] + event[1], frozenset())
        else:
            found.append(event)
    return found
