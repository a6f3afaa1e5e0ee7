"""A reply is split into blocks while it is written: each is rendered once, and none too early."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web.markdown.corpus import HOSTILE, LONG, NORMAL
from web.markdown.structure import Structure

from backburner.web.markdown import (
    BlockClosed,
    BlockText,
    DraftBlocks,
    DraftReset,
    DraftUpdate,
    render,
)

PIECES = [
    *[
        "a",
        "b c",
        "x",
        "\n",
        "\n\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "    ",
        "\t",
        "*",
        "**",
        "_",
        "~~",
        "`",
    ],
    *["```", "```py", "~~~", "[", "]", "(", ")", "](http://a.example)", "![", "<", ">", "> ", "- "],
    *[
        "* ",
        "+ ",
        "1. ",
        "2) ",
        "# ",
        "|",
        "|-|",
        "---",
        "===",
        "$",
        "$$",
        "$$\n",
        "\\(",
        "\\)",
        "\\[",
    ],
    *["\\]", "\\", "&", "[ ] ", "a | b\n--|--\n", "\x1b[0m", "\0", "\u202e"],
]
DEFINITIONS = ["[a]: http://b.example\n", "[a]", "[a]: /c 'd\n", "[a]:\n", "'e'\n"]


def texts(pieces: Sequence[str]) -> st.SearchStrategy[str]:
    soup = st.lists(st.sampled_from(pieces), max_size=25).map("".join)
    return st.one_of(
        soup, st.text(max_size=40), st.sampled_from([*NORMAL.values(), *HOSTILE.values()])
    )


def cut(text: str, sizes: Sequence[int]) -> list[tuple[int, str]]:
    pieces, at = [], 0
    for size in (*sizes, len(text)):
        pieces.append((at, text[at : at + size]))
        at = min(at + size, len(text))
    return pieces


SIZES = st.lists(st.integers(1, 12), max_size=60)


class Page:
    """What a page shows after the updates it got."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.open: str = ""

    def apply(self, updates: Sequence[DraftUpdate]) -> None:
        for update in updates:
            match update:
                case DraftReset():
                    self.closed, self.open = [], ""
                case BlockClosed(index, html):
                    # Each is closed once, and in order.
                    assert index == len(self.closed)
                    Structure(html)
                    self.closed.append(html)
                    self.open = ""
                case BlockText(index, at, text):
                    assert index == len(self.closed)
                    assert at in (0, len(self.open))
                    self.open = self.open[:at] + text


def write(text: str, *, size: int = 7) -> tuple[DraftBlocks, Page]:
    blocks, page = DraftBlocks(), Page()
    for at in range(0, len(text), size):
        page.apply(blocks.feed(at, text[at : at + size]))
    return blocks, page


@settings(max_examples=200)
@given(texts([*PIECES, *DEFINITIONS]), SIZES)
def test_the_blocks_together_are_the_text(text: str, sizes: list[int]) -> None:
    blocks, page = DraftBlocks(), Page()

    for at, piece in cut(text, sizes):
        page.apply(blocks.feed(at, piece))
        assert "".join(blocks.sources) == blocks.text == text[: at + len(piece)]
        assert len(blocks.sources) == len(page.closed) + 1

    page.apply(blocks.finish())
    assert "".join(blocks.sources) == text


@settings(max_examples=200)
@given(texts(PIECES), SIZES)
def test_the_blocks_together_look_like_the_whole(text: str, sizes: list[int]) -> None:
    blocks, page = DraftBlocks(), Page()

    for at, piece in cut(text, sizes):
        page.apply(blocks.feed(at, piece))
    page.apply(blocks.finish())

    assert "".join(page.closed) == render(text)


@given(st.data())
def test_pieces_that_replace_others_lead_to_the_same_page(data: st.DataObject) -> None:
    blocks, page = DraftBlocks(), Page()

    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(blocks.text)))
        page.apply(blocks.feed(at, data.draw(texts(PIECES))))

    other, shown = DraftBlocks(), Page()
    shown.apply(other.feed(0, blocks.text))
    page.apply(blocks.finish())
    shown.apply(other.finish())
    assert page.closed == shown.closed


@pytest.mark.parametrize("name", NORMAL)
def test_a_normal_message_looks_like_the_whole(name: str) -> None:
    blocks, page = write(NORMAL[name])

    page.apply(blocks.finish())

    assert "".join(page.closed) == render(NORMAL[name])


@pytest.mark.parametrize(
    ("before", "piece", "closed"),
    [
        ("a\n", "\n", 1),
        ("# a", "\n", 1),
        ("a\n---", "\n", 1),
        ("```\na\n```", "\n", 1),
        ("> a\n", "\n", 1),
        ("|a|\n|-|\n|b|\n", "\n", 1),
        ("$$\na\n$$", "\n", 1),
        ("***", "\n", 1),
        ("- a\n\n", "b\n", 1),
        ("    a\n\n", "b\n", 1),
        ("a\r\n", "\r\n ", 1),
    ],
)
def test_a_block_closes_as_soon_as_it_is_complete(before: str, piece: str, closed: int) -> None:
    blocks, page = write(before)
    assert page.closed == []

    page.apply(blocks.feed(len(before), piece))

    assert len(page.closed) == closed


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a\nb\n",
        "```\n# not a heading\n\n- not a list\n\n",
        "~~~\n```\n\n",
        "````\n```\n\na\n\n",
        "- a\n\n",
        "- a\n\n- b\n\n  c\n\n",
        "    a\n\n",
        "- ```\n  a\n\n  # b\n\n",
        "# a | b\n",
        "$$\na\n# b\n",
        "[a]: http://b.example\n\n",
        "a\n\r",
    ],
)
def test_a_block_that_may_go_on_stays_open(text: str) -> None:
    _, page = write(text)

    assert page.closed == []
    assert page.open == text.replace("\r", "")


def test_code_is_closed_by_its_own_fence_only() -> None:
    blocks, page = write("````md\n# a\n\n```py\nb\n```\n\n~~~\n")
    assert page.closed == []

    page.apply(blocks.feed(len(blocks.text), "`````\nafter\n"))

    assert len(page.closed) == 1
    assert page.open == "after\n"


def test_a_definition_is_known_to_the_blocks_after_it() -> None:
    blocks, page = write("[a]: http://b.example\n\nSee [a].\n\n")

    assert 'href="http://b.example"' in page.closed[0]
    assert blocks.sources[-1] == ""


def test_a_reply_that_starts_over_withdraws_its_blocks() -> None:
    blocks, page = write("one\n\ntwo\n\nthr")

    updates = blocks.feed(0, "one, but differently\n\nx")
    page.apply(updates)

    assert updates[0] == DraftReset()
    assert page.closed == [render("one, but differently")]
    assert page.open == "x"


def test_the_whole_text_once_more_withdraws_nothing() -> None:
    blocks, page = write("one\n\ntwo")

    updates = blocks.feed(0, "one\n\ntwo and three")

    assert updates == (BlockText(1, 3, " and three"),)
    page.apply(updates)
    assert page.open == "two and three"


def test_another_end_of_the_open_block_replaces_it() -> None:
    blocks, page = write("one\n\ntwo")

    updates = blocks.feed(6, "en")

    assert updates == (BlockText(1, 0, "ten"),)
    page.apply(updates)
    page.apply(blocks.feed(5, ""))
    assert page.open == ""


def test_a_piece_that_lacks_what_is_before_it_is_refused() -> None:
    blocks, _ = write("one")

    with pytest.raises(ValueError, match="feed the whole text"):
        blocks.feed(4, "x")
    assert blocks.text == "one"


def test_a_page_that_comes_later_gets_the_same() -> None:
    blocks, page = write(LONG)
    late = Page()

    late.apply(blocks.current())

    assert (late.closed, late.open) == (page.closed, page.open)


def test_hidden_characters_of_the_open_block_are_harmless() -> None:
    _, page = write("a\u202eb\x1b[0m\0\x07\ud800", size=1)

    assert page.open == "a[U+202E]b\u241b[0m\u2407\ufffd"
