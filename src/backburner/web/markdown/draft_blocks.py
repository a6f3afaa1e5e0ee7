"""Splits a reply that is being written into blocks, and renders each once, when it is complete.

A block is complete when no further text can change it; until then it is shown as plain text. A
definition of a link is known to the blocks after it, so what is stored in the end is rendered as a
whole.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from markdown_it.token import Token
from markupsafe import Markup

from backburner.web.markdown.budget import TooComplex
from backburner.web.markdown.characters import clean_source, show_draft
from backburner.web.markdown.parser import References, parse_blocks
from backburner.web.markdown.rendering import render_block

#: A longer open block is looked at again only when it has grown by a part of itself.
_EACH_LINE_CHARS, _GROWTH = 4_000, 8
#: A longer one that is no code is not looked at again: it takes too long.
_MAX_OPEN_CHARS = 20_000
_LINE_END = re.compile(r"\r\n?|\n")
#: Blocks that a blank line ends.
_ENDED_BY_BLANK = frozenset({"blockquote_open", "paragraph_open", "table_open"})


@dataclass(frozen=True, slots=True)
class DraftReset:
    """The reply starts over: all blocks so far are withdrawn."""


@dataclass(frozen=True, slots=True)
class BlockClosed:
    """A block is complete; this replaces its plain text, if any was shown."""

    index: int
    html: Markup


@dataclass(frozen=True, slots=True)
class BlockText:
    """A part of the plain text of the open block, the last one."""

    index: int
    #: 0: the text replaces what is shown of the block. Otherwise it is added at the end, and this
    #: is the number of characters before it.
    at: int
    text: str


DraftUpdate = DraftReset | BlockClosed | BlockText


class DraftBlocks:
    """The blocks of one reply."""

    def __init__(self) -> None:
        self._text = ""
        self._start_over()

    @property
    def text(self) -> str:
        return self._text

    @property
    def sources(self) -> list[str]:
        """The text of each closed block, and last that of the open one; together the whole."""
        ends = [*self._ends, len(self._text)]
        starts = [0, *self._ends]
        return [self._text[start:end] for start, end in zip(starts, ends, strict=True)]

    def feed(self, at: int, text: str) -> Sequence[DraftUpdate]:
        """Replace everything from `at` on by a piece, and return what changes on the page."""
        before = self._text
        if not 0 <= at <= len(before):
            raise ValueError(f"There is no text before {at}: feed the whole text, from 0.")
        self._text = before[:at] + text
        updates: list[DraftUpdate] = []
        if at < len(before) and not self._text.startswith(before):
            if self._text.startswith(before[: self._open_at]):
                self._look_again(replaces=True)
            else:
                self._start_over()
                updates.append(DraftReset())
        return (*updates, *self._close_blocks(continues=True), *self._show())

    def finish(self) -> Sequence[DraftUpdate]:
        """Close the open block: no more text follows."""
        return self._close_blocks(continues=False)

    def current(self) -> Sequence[DraftUpdate]:
        """Return everything a page needs that begins to show the reply now."""
        closed = [BlockClosed(index, html) for index, html in enumerate(self._htmls)]
        shown = show_draft(self._text[self._open_at : self._shown_to])
        return (*closed, BlockText(len(closed), 0, shown)) if shown else tuple(closed)

    @property
    def _open_at(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _start_over(self) -> None:
        self._ends: list[int] = []
        self._htmls: list[Markup] = []
        self._references: References = {}
        self._look_again(replaces=False)

    def _look_again(self, *, replaces: bool) -> None:
        """Forget what is known of the open block; `replaces`: the page shows another text of it."""
        self._checked_to = self._shown_to = self._open_at
        self._shown_chars, self._replaces = 0, replaces
        self._fence_end: re.Pattern[str] | None = None
        self._is_too_complex = False

    def _close_blocks(self, *, continues: bool) -> Sequence[DraftUpdate]:
        start = self._open_at
        end = _end_of_lines(self._text) if continues else len(self._text)
        if continues and not self._may_close(end):
            return ()
        source = self._text[start:end]
        try:
            found = split(source, continues=continues)
        except TooComplex:
            self._is_too_complex = True
            if continues:
                return ()
            found = Split((len(source),), None)
        updates = [self._close(start + block_end) for block_end in found.ends]
        if updates:
            self._look_again(replaces=False)
        self._checked_to, self._fence_end = end, found.fence_end
        return updates

    def _may_close(self, end: int) -> bool:
        """Say whether the lines since the last look may close a block."""
        new = end - self._checked_to
        if new <= 0 or self._is_too_complex:
            return False
        if self._fence_end is not None:
            if self._fence_end.search(clean_source(self._text[self._checked_to : end])):
                return True
            self._checked_to = end
            return False
        checked = self._checked_to - self._open_at
        if checked > _MAX_OPEN_CHARS:
            return False
        return checked <= _EACH_LINE_CHARS or new * _GROWTH >= checked

    def _close(self, end: int) -> BlockClosed:
        html = render_block(self._text[self._open_at : end], self._references)
        self._ends.append(end)
        self._htmls.append(html)
        return BlockClosed(len(self._htmls) - 1, html)

    def _show(self) -> Sequence[DraftUpdate]:
        """Show the text of the open block that is not shown yet."""
        text = show_draft(self._text[self._shown_to :])
        at, replaces = self._shown_chars, self._replaces
        self._shown_to, self._replaces = len(self._text), False
        self._shown_chars += len(text)
        return (BlockText(len(self._htmls), at, text),) if text or replaces else ()


@dataclass(frozen=True, slots=True)
class Split:
    """The blocks of a text that are complete."""

    #: The end of each, in characters.
    ends: tuple[int, ...]
    #: The open block is code, and a line like this ends it.
    fence_end: re.Pattern[str] | None


def split(source: str, *, continues: bool) -> Split:
    """Find the complete blocks of whole lines; `continues`: more lines will follow."""
    starts = [0, *(found.end() for found in _LINE_END.finditer(source))]
    text = clean_source(source)
    blocks = [
        token
        for token in parse_blocks(text, continues=continues)
        if token.map and token.level == 0 and token.nesting >= 0
    ]
    if not blocks:
        return Split((), None)
    # The parser goes from line to line: a block that another one follows is complete.
    ends = [starts[_lines_of(block)[0]] for block in blocks[1:]]
    last = blocks[-1]
    if not continues:
        return Split((*ends, len(source)), None)
    lines = text.split("\n")[:-1]
    if not _is_complete(last, lines):
        return Split(tuple(ends), _fence_end(last))
    end = _lines_of(last)[1]
    while end < len(lines) and not lines[end].strip(" \t"):
        end += 1
    return Split((*ends, starts[end]), None)


def _is_complete(block: Token, lines: Sequence[str]) -> bool:
    """Say whether no further line can belong to a block that none follows."""
    first, end = _lines_of(block)
    if end == first + 1 == len(lines) and "|" in lines[first]:
        # With the next line it may be the head of a table.
        return False
    match block.type:
        case "heading_open" | "hr":
            return True
        case "fence":
            return end - first == block.content.count("\n") + 2
        case "formula_block":
            return bool(block.meta["closed"])
        case kind:
            return kind in _ENDED_BY_BLANK and not lines[-1].strip(" \t")


def _fence_end(block: Token) -> re.Pattern[str] | None:
    if block.type != "fence":
        return None
    marker, length = re.escape(block.markup[0]), len(block.markup)
    return re.compile(rf"^ {{0,3}}{marker}{{{length},}}[ \t]*$", re.MULTILINE)


def _lines_of(block: Token) -> tuple[int, int]:
    """Return the first line of a block, and the line after it."""
    first, end = block.map or (0, 0)
    return first, end


def _end_of_lines(text: str) -> int:
    """Return where the last whole line ends; a return at the end may be half of its end."""
    return max(text.rfind("\n"), text.rfind("\r", 0, max(len(text) - 1, 0))) + 1
