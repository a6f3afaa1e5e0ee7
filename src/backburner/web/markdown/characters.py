"""Characters that hide or reorder others, or control a terminal: removed, or shown as codes."""

import re
from html import escape as escape_html

from backburner.core.validation import hidden_characters, replace_invalid_characters

#: Bidirectional embeddings, overrides and isolates, other controls, separators of lines, and
#: letters of tags. Marks that scripts and emoji are written with stay, and so do flags.
_HIDDEN = re.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]{1,8}\U000e007f"
    "|[\x01-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"
)
#: Sequences for terminals: of colours and the cursor, with a text, and short ones.
_TERMINAL_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,100}[ -/]{0,10}[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\r\n]{0,2000}(?:\x07|\x1b\\)"
    r"|\x1b[ -/]{0,4}[0-Z\\^-~]"
)
_LINE_END = re.compile(r"\r\n?")
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean_source(text: str) -> str:
    """Remove NUL and terminal sequences; the number of lines stays the same."""
    if "\r" in text:
        # First, because what is removed later may stand within the end of a line.
        text = _LINE_END.sub("\n", text)
    if "\0" in text:
        text = text.replace("\0", "")
    if "\x1b" in text or "\x9b" in text:
        text = _TERMINAL_SEQUENCE.sub("", text)
    return replace_invalid_characters(text)


def escape(text: str) -> str:
    """Write text as HTML, with the codes of hidden characters instead of them."""
    return _HIDDEN.sub(_mark, escape_html(text))


def escape_code(text: str) -> str:
    """Write code as HTML: here everything that is drawn as nothing gets a code."""
    escaped = escape_html(text)
    if text.isascii() and text.isprintable():
        return escaped
    marks = {ord(char): mark_character(char) for char in hidden_characters(text)}
    return escaped.translate(marks) if marks else escaped


def without_hidden(text: str) -> str:
    """Remove hidden characters, for attributes and for lines of plain text."""
    return _HIDDEN.sub(lambda found: found[0] if len(found[0]) > 1 else "", text)


def show_draft(text: str) -> str:
    """Make text harmless that is shown as it arrives, character by character.

    Every character is replaced by itself, so that pieces can be added to each other.
    """
    text = _SURROGATE.sub("\ufffd", text).replace("\0", "").replace("\r", "")
    return re.sub(_HIDDEN.pattern.partition("|")[2], _draft_mark, text)


def mark_character(char: str) -> str:
    return f'<span class="char">U+{ord(char):04X}</span>'


def _mark(found: re.Match[str]) -> str:
    return found[0] if len(found[0]) > 1 else mark_character(found[0])


def _draft_mark(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "" if code >= 0xE0000 else f"[U+{code:04X}]"
