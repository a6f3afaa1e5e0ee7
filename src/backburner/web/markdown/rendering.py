"""Renders one message: Markdown in, safe HTML or one line of plain text out."""

from markupsafe import Markup

from backburner.web.markdown.allow_list import clean
from backburner.web.markdown.budget import TooComplex
from backburner.web.markdown.characters import clean_source
from backburner.web.markdown.parser import References, parse
from backburner.web.markdown.writer import Writer, to_plain, write_plain_text

#: Longer texts are shown as they are.
MAX_PARSED_CHARS = 200_000
#: What a line of plain text is made from.
_PLAIN_CHARS = 4_000


def render(text: str) -> Markup:
    """Render a message; takes a second for the longest, so call it in a thread."""
    return Markup(clean(write_html(text, {})))  # noqa: S704 - it is cleaned


def render_block(text: str, references: References) -> Markup:
    """Render a part of a message; definitions of links in it are added to the others."""
    return Markup(clean(write_html(text, references)))  # noqa: S704 - it is cleaned


def write_html(text: str, references: References) -> str:
    """Write the HTML before it is cleaned: it is safe already."""
    source = clean_source(text)
    if len(source) > MAX_PARSED_CHARS:
        return write_plain_text(source)
    try:
        return Writer().write(parse(source, references))
    except TooComplex:
        return write_plain_text(source)


def plain(text: str) -> str:
    """Return the text without markup in one line; of a long text, the beginning."""
    source = clean_source(text[:_PLAIN_CHARS])
    try:
        return to_plain(parse(source, {}))
    except TooComplex:
        return " ".join(source.split())
