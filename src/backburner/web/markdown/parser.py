"""The parser of messages: CommonMark with tables, strikethrough, task lists, links and formulas.

It has no HTML, and takes a bounded number of steps.
"""

from collections.abc import MutableMapping
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import table as parse_table
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline import image as parse_image
from markdown_it.token import Token

from backburner.web.markdown.budget import StepBudget, TooComplex, spend
from backburner.web.markdown.formulas import add_formulas
from backburner.web.markdown.links import add_bare_links, is_allowed

#: A list takes two levels.
_MAX_LEVEL = 24
_MAX_COLUMNS, _MAX_CELLS = 100, 10_000
#: A description within the description of an image within ...
_MAX_IMAGE_DEPTH = 3
#: Link reference definitions by their label.
References = MutableMapping[str, Any]


def parse(text: str, references: References) -> list[Token]:
    """Parse clean text; definitions in it are added to those that are there."""
    return _run(_whole_parser(), text, {"references": references})


def parse_blocks(text: str, *, continues: bool) -> list[Token]:
    """Parse the blocks of clean text alone; `continues`: more text will follow."""
    return _run(_block_parser(), text, {"continues": continues})


def _run(parser: MarkdownIt, text: str, env: dict[str, Any]) -> list[Token]:
    try:
        return parser.parse(text, {"budget": StepBudget(text), **env})
    except RecursionError:
        raise TooComplex from None


class _Parser(MarkdownIt):
    def validateLink(self, url: str) -> bool:  # noqa: N802 - the name it has there
        return is_allowed(url)


@cache
def _whole_parser() -> MarkdownIt:
    return _prepare(_build_parser())


@cache
def _block_parser() -> MarkdownIt:
    parser = _build_parser()
    parser.core.ruler.enableOnly(["normalize", "block"])
    return _prepare(parser)


def _prepare(parser: MarkdownIt) -> MarkdownIt:
    """Make the parser order its rules now: at its first use, another thread could see a part."""
    parser.core.ruler.getRules("")
    parser.block.ruler.getRules("")
    parser.inline.ruler.getRules("")
    parser.inline.ruler2.getRules("")
    return parser


def _build_parser() -> MarkdownIt:
    options = {"html": False, "maxNesting": _MAX_LEVEL, "tasklists": True}
    parser = _Parser("commonmark", options)
    parser.enable("strikethrough").disable(["html_block", "html_inline"])
    add_formulas(parser)
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    parser.enable("table")
    # Every rule that looks whether a line ends something is asked after this one.
    everywhere = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("table", "count", _count_block, {"alt": everywhere})
    parser.block.ruler.after("count", "deep_text", _deep_text)
    parser.inline.ruler.at("image", _image)
    parser.inline.ruler.before("text", "count", _count_inline)
    parser.core.ruler.push("bare_links", add_bare_links)
    return parser


def _count_block(state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:  # noqa: FBT001
    spend(state.env)
    return False


def _count_inline(state: StateInline, _silent: bool) -> bool:  # noqa: FBT001
    spend(state.env)
    return False


def _deep_text(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    """Keep what is nested too deeply as text: the parser itself would leave it out."""
    if silent or state.level < _MAX_LEVEL - 2:
        return False
    line = start + 1
    while line < end and (state.isEmpty(line) or state.sCount[line] >= state.blkIndent):
        line += 1
    token = state.push("deep_text", "", 0)
    token.content = state.getLines(start, line, state.blkIndent, keepLastLF=False)
    token.map = [start, line]
    state.line = line
    return True


def _table(state: StateBlock, start: int, end: int, silent: bool) -> bool:  # noqa: FBT001
    if not parse_table(state, start, end, True):  # noqa: FBT003
        return False
    columns = state.src.count("|", state.bMarks[start], state.eMarks[start]) + 1
    if columns > _MAX_COLUMNS:
        return False
    if (_paragraph_end(state, start, end) - start) * columns > _MAX_CELLS:
        return False
    return silent or parse_table(state, start, end, silent)


def _paragraph_end(state: StateBlock, start: int, end: int) -> int:
    """Find the next blank line; lines before it have the same one, and there may be thousands."""
    first, last = state.env.get("paragraph", (0, 0))
    if not first <= start < last <= end:
        last = start
        while last < end and not state.isEmpty(last):
            last += 1
        state.env["paragraph"] = (start, last)
    return int(last)


def _image(state: StateInline, silent: bool) -> bool:  # noqa: FBT001
    if silent:
        return parse_image(state, silent)
    depth = state.env.get("image_depth", 0)
    if depth >= _MAX_IMAGE_DEPTH:
        return False
    state.env["image_depth"] = depth + 1
    try:
        return parse_image(state, silent)
    finally:
        state.env["image_depth"] = depth
