"""Writes the tokens of a message as HTML, or as plain text.

Tags, attributes and classes are those that stand here. Content gives text, and the addresses of
links that may be followed.
"""

from collections.abc import Iterator, Sequence
from html import escape as escape_html

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from backburner.web.markdown.characters import escape, escape_code, without_hidden
from backburner.web.markdown.code_blocks import write_code
from backburner.web.markdown.links import is_allowed, note_host

_TAGS = {
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "em": "em",
    "list_item": "li",
    "s": "s",
    "strong": "strong",
    "tbody": "tbody",
    "thead": "thead",
    "tr": "tr",
}
_SIMPLE = {f"{name}_open": f"<{tag}>" for name, tag in _TAGS.items()} | {
    f"{name}_close": f"</{tag}>" for name, tag in _TAGS.items()
}
_SIMPLE |= {
    "hardbreak": "<br>\n",
    "hr": "<hr>\n",
    "ordered_list_close": "</ol>\n",
    "softbreak": "<br>\n",
    "table_close": "</table></div>\n",
    "table_open": '<div class="table" tabindex="0"><table>',
    "td_close": "</td>",
    "th_close": "</th>",
}
_ALIGNMENTS = {f"text-align:{side}": f' class="{side}"' for side in ("left", "center", "right")}


def write_plain_text(text: str) -> str:
    """Write a text that is not parsed."""
    return f'<pre class="plain" tabindex="0">{escape(text)}</pre>\n'


class Writer:
    """Writes one list of tokens."""

    def __init__(self) -> None:
        self._in_link = False
        #: What ends the open link: its host, if that has to be shown, and the tag.
        self._link_end = ""
        #: The box of a task, until the paragraph begins that it belongs to.
        self._box = ""

    def write(self, tokens: Sequence[Token]) -> str:
        return "".join(self._write(token, tokens, at) for at, token in enumerate(tokens))

    def _write(self, token: Token, tokens: Sequence[Token], at: int) -> str:
        kind = token.type
        if kind == "text":
            return escape(token.content)
        if kind == "inline":
            return self.write(token.children or ())
        if kind.startswith("paragraph"):
            return self._write_paragraph(token)
        if kind.startswith("heading"):
            return _write_heading(token)
        if kind.startswith("link"):
            return self._write_link(token, tokens, at)
        if kind == "list_item_open" and "checked" in token.meta:
            return self._write_task(token, tokens[at + 1])
        if kind in ("th_open", "td_open"):
            side = _ALIGNMENTS.get(str(token.attrs.get("style")), "")
            return f'<th scope="col"{side}>' if kind == "th_open" else f"<td{side}>"
        if kind == "ordered_list_open":
            first = int(token.attrs.get("start", 1))
            return "<ol>" if first == 1 else f'<ol start="{first}">'
        return _SIMPLE.get(kind) or self._write_content(token)

    def _write_content(self, token: Token) -> str:
        match token.type:
            case "code_inline":
                return f"<code>{escape_code(token.content)}</code>"
            case "fence":
                return write_code(token.content, unescapeAll(token.info))
            case "code_block":
                return write_code(token.content, "")
            case "image":
                return self._write_image(token)
            case "formula":
                return f'<code class="math">{escape_code(token.content)}</code>'
            case "formula_block":
                code = escape_code(token.content)
                return f'<pre class="math" tabindex="0"><code>{code}</code></pre>\n'
            case "deep_text":
                return write_plain_text(token.content)
            case _:
                return escape(token.content)

    def _write_paragraph(self, token: Token) -> str:
        if token.hidden:
            return ""
        if token.nesting < 0:
            return "</p>\n"
        box, self._box = self._box, ""
        return f"<p>{box}"

    def _write_task(self, token: Token, following: Token) -> str:
        checked, label = (' checked=""', "Done") if token.meta["checked"] else ("", "To do")
        box = f'<input type="checkbox" disabled=""{checked} aria-label="{label}"> '
        if following.type == "paragraph_open" and not following.hidden:
            self._box, box = box, ""
        return f'<li class="task">{box}'

    def _write_link(self, token: Token, tokens: Sequence[Token], at: int) -> str:
        """Write a link; the text of one may hold another, which is left out."""
        if token.nesting < 0:
            end, self._link_end, self._in_link = self._link_end, "", False
            return end
        url = str(token.attrs["href"])
        # An empty address passes the parser, and would lead to the page itself.
        if self._in_link or not is_allowed(url):
            return ""
        self._in_link = True
        self._link_end = _write_end(url, "".join(_texts(_until_link_close(tokens, at + 1))))
        return _write_start(url)

    def _write_image(self, token: Token) -> str:
        """Write a link to the image, which nothing loads by itself."""
        text = "".join(_texts(token.children or ())).strip()
        url = str(token.attrs["src"])
        if self._in_link or not is_allowed(url):
            return escape(text or "Image")
        return f"{_write_start(url)}{escape(text or 'Image')}{_write_end(url, text)}"


def _write_heading(token: Token) -> str:
    """Write a heading; the two highest levels are the page's."""
    level = min(int(token.tag[1:]) + 2, 6)
    return f"<h{level}>" if token.nesting > 0 else f"</h{level}>\n"


def _write_start(url: str) -> str:
    return f'<a href="{escape_html(url)}" target="_blank" rel="noopener noreferrer nofollow">'


def _write_end(url: str, text: str) -> str:
    host = note_host(url, text)
    return f' <bdi class="host">{escape(host)}</bdi></a>' if host else "</a>"


def _until_link_close(tokens: Sequence[Token], at: int) -> Iterator[Token]:
    while at < len(tokens) and tokens[at].type != "link_close":
        yield tokens[at]
        at += 1


def to_plain(tokens: Sequence[Token]) -> str:
    """Return the text without markup, in one line."""
    return " ".join(without_hidden("".join(_texts(tokens))).split())


def _texts(tokens: Sequence[Token] | Iterator[Token]) -> Iterator[str]:
    for token in tokens:
        if token.children:
            yield from _texts(token.children)
        elif token.type != "inline":
            yield token.content
        if token.block or token.type in ("softbreak", "hardbreak"):
            yield " "
