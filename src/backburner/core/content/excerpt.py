"""The beginning of a message as plain text in one line, for lists."""

import re

#: Of an excerpt, and of the message from which it is made.
MAX_EXCERPT_CHARS = 120
MAX_READ_CHARS = 600
_ELLIPSIS = "…"

#: What to replace in Markdown, in this order. None reads a part of a text twice, or not far: a
#: text may consist of nothing but beginnings.
_MARKS = (
    # The language of a block of code, and the block's fences.
    (re.compile(r"^[ \t]*(?:```|~~~)[^\n]*$", re.MULTILINE), " "),
    # Lines between parts and under the heads of tables.
    (re.compile(r"^[ \t]*(?:[-*_=|:][ \t]*){3,}$", re.MULTILINE), " "),
    # Headings, quotes, and items of lists.
    (
        re.compile(
            r"^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)", re.MULTILINE
        ),
        "",
    ),
    # Links and images keep their text.
    (re.compile(r"!?\[([^\[\]\n]*+)\]\([^)\n]{0,1000}+\)"), r"\1"),
    (re.compile(r"\*\*(?=\S)((?:[^*\n]|\*(?!\*))++)(?<=\S)\*\*"), r"\1"),
    (re.compile(r"__(?=\S)((?:[^_\n]|_(?!_))++)(?<=\S)__"), r"\1"),
    (re.compile(r"~~(?=\S)((?:[^~\n]|~(?!~))++)(?<=\S)~~"), r"\1"),
    (re.compile(r"(?<![\w*])\*(?=\S)([^*\n]+?)(?<=\S)\*(?![\w*])"), r"\1"),
    (re.compile(r"(?<![\w_])_(?=\S)([^_\n]+?)(?<=\S)_(?![\w_])"), r"\1"),
    (re.compile(r"`([^`\n]+)`"), r"\1"),
)


def plain_text(markdown: str) -> str:
    """Leave out the marks of Markdown, and put everything into one line."""
    text = markdown
    for pattern, replacement in _MARKS:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def make_excerpt(markdown: str) -> str:
    """Make an excerpt, cut at a word."""
    text = plain_text(markdown[:MAX_READ_CHARS])
    if len(text) <= MAX_EXCERPT_CHARS and len(markdown) < MAX_READ_CHARS:
        return text
    cut = text[:MAX_EXCERPT_CHARS]
    beginning = cut.rsplit(" ", 1)[0] if " " in cut[MAX_EXCERPT_CHARS // 2 :] else cut
    return beginning.rstrip(" ,.;:") + _ELLIPSIS
