r"""Formulas: `$..$`, `$$..$$`, `\(..\)` and `\[..\]` stay as they are written.

`\(` and `\[` are escapes too, so what is between them has to look like a formula. A block has to be
closed before the next blank line. Without its end it is a paragraph, so that a lone dollar does not
change how the rest of a message looks.
"""

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from backburner.web.markdown.budget import spend

_ESCAPES = ("\\(", "\\[")
_CLOSES = {"$$": "$$", "\\[": "\\]"}
#: Neither prices nor variables of a shell: no space inside, no letter or digit outside.
_INLINE = {
    "$$": re.compile(r"\$\$((?:[^$\\]|\\.|\$(?!\$)){1,4000}+)\$\$", re.DOTALL),
    "$": re.compile(r"\$(?![\s$])((?:[^$\\]|\\.){1,1000}+)(?<!\s)\$(?![\w$])", re.DOTALL),
    "\\(": re.compile(r"\\\(((?:[^\\]|\\[^()\[\]]){1,2000}+)\\\)", re.DOTALL),
    # Followed by these, it is an escaped link.
    "\\[": re.compile(r"\\\[((?:[^\\]|\\[^()\[\]]){1,4000}+)\\\](?![(\[:])", re.DOTALL),
}
#: As in "$10, or 5$ less".
_PRICES = re.compile(r"\d[^\s=+*/^_\\<>{}]*+\s[^=+*/^_\\<>{}]*+")
#: What no prose has: commands, powers, indices of single letters, relations.
_SIGNS = re.compile(
    r"\\[A-Za-z]|[\^=<>≈≠≤≥±\u00d7÷∈∉⊂∑∏∫√∞→⇒]|(?<![A-Za-z0-9])[A-Za-z]_[A-Za-z0-9{\\]|[)}\]]_"
)
_FUNCTIONS = re.compile(r"\b(?:arg|cos|det|dim|exp|gcd|ker|lim|ln|log|max|min|mod|sin|sup|tan)\b")
#: Not of formulas: words, `x86`, `i.e.`, choices and ranges of characters.
_PROSE = re.compile(r"[A-Za-z]{2}|[A-Za-z]\d|[A-Za-z]\.|[|;:?\"'\\]|\w-\w")
#: `[x]` is ticked, and `[1]` a note.
_OPERATION = re.compile(r"\S +[-+*/] +\S|[A-Za-z]\(")


def add_formulas(parser: MarkdownIt) -> None:
    parser.block.ruler.before(
        "fence", "formula_block", _block, {"alt": ["paragraph", "reference", "blockquote", "list"]}
    )
    parser.inline.ruler.before("escape", "formula", _inline)


def _block(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    if state.is_code_block(start):
        return False
    first = _line(state, start)
    close = _CLOSES.get(first[:2])
    if close is None:
        return False
    rest = first[2:]
    if close == "\\]" and rest.endswith(close) and not _looks_like_formula("\\[", rest[:-2]):
        return False
    if close in rest:
        last = start if rest.find(close) == len(rest) - 2 and rest[:-2].strip() else None
    elif silent:
        # Anything else may be part of a paragraph.
        return not rest
    else:
        last = _find_last(state, start, end, close)
    if last is None:
        return False
    if not silent:
        is_closed = last < end
        state.line = last + 1 if is_closed else end
        token = state.push("formula_block", "", 0)
        token.content = state.getLines(start, state.line, state.blkIndent, keepLastLF=False)
        token.map = [start, state.line]
        token.meta = {"closed": is_closed}
    return True


def _find_last(state: StateBlock, start: int, end: int, close: str) -> int | None:
    """Find the line that closes a formula; `end`: more text may close it."""
    for line in range(start + 1, end):
        spend(state.env)
        text = _line(state, line)
        if not text or state.sCount[line] < state.blkIndent:
            return None
        if close in text:
            return line if text.find(close) == len(text) - 2 else None
    return end if state.env.get("continues") else None


def _line(state: StateBlock, line: int) -> str:
    return state.src[state.bMarks[line] + state.tShift[line] : state.eMarks[line]].rstrip()


def _inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    source, at = state.src, state.pos
    if source[at] not in "$\\":
        return False
    opening = source[at : at + 2]
    if opening not in _INLINE:
        opening = source[at]
    if opening not in _INLINE or (source[at] == "$" and at and _joins(source[at - 1])):
        return False
    found = _INLINE[opening].match(source, at, state.posMax)
    if found is None or not found[1].strip() or _PRICES.fullmatch(found[1]):
        return False
    if opening in _ESCAPES and (
        _is_glued(source, at) or not _looks_like_formula(opening, found[1])
    ):
        return False
    if not silent:
        state.push("formula", "", 0).content = found[0]
    state.pos = found.end()
    return True


def _is_glued(source: str, at: int) -> bool:
    """Return whether a bracket belongs to the word before it, as in `file\\(s\\)`."""
    before = source[at - 1] if at else ""
    return before.isascii() and (before.isalnum() or before in ("_", "/", ")", "]"))


def _looks_like_formula(opening: str, text: str) -> bool:
    if _SIGNS.search(text):
        return True
    plain = _FUNCTIONS.sub("", text)
    if _PROSE.search(plain) or not any(char.isalpha() for char in text):
        return False
    return opening == "\\(" or _OPERATION.search(text) is not None


def _joins(char: str) -> bool:
    return char.isalnum() or char == "$"
