"""Messages that attack the page give nothing but text and safe links, at both lines of defence."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from web.markdown.corpus import HOSTILE, HOSTILE_HTML, NORMAL
from web.markdown.structure import Structure, merged

from backburner.web.markdown import plain, render
from backburner.web.markdown.allow_list import clean
from backburner.web.markdown.rendering import write_html

PIECES = st.sampled_from(
    [
        *HOSTILE.values(),
        *NORMAL.values(),
        *"< > & \" ' ` * _ [ ] ( ) ! | # - : $ \\ / = \n \t \x1b \u202e".split(" "),
        *[
            "\n\n",
            "```",
            "](",
            "http://",
            "javascript:",
            "www.",
            "a@b.example",
            "- [ ] ",
            "|-|-|\n",
        ],
        *["<a href='", "<script>", "</p>", "&lt;", "&#x3c;", "a"],
    ]
)
MESSAGES = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=12).map("".join))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_message_gives_only_what_is_allowed(name: str) -> None:
    Structure(render(HOSTILE[name]))


@pytest.mark.parametrize("name", HOSTILE)
def test_the_first_line_of_defence_holds_alone(name: str) -> None:
    Structure(write_html(HOSTILE[name], {}))


@pytest.mark.parametrize("name", [*HOSTILE, *HOSTILE_HTML])
def test_the_second_line_of_defence_holds_alone(name: str) -> None:
    text = HOSTILE.get(name) or HOSTILE_HTML[name]

    Structure(clean(text.encode(errors="replace").decode()), strict=False)


@given(MESSAGES)
def test_any_message_gives_only_what_is_allowed(text: str) -> None:
    first = Structure(write_html(text, {}))

    # The second line finds nothing to take away.
    assert merged(Structure(render(text)).events) == merged(first.events)


@given(MESSAGES)
def test_plain_text_of_any_message_is_one_line(text: str) -> None:
    assert "\n" not in plain(text)
    assert "\x1b" not in plain(text)


@pytest.mark.parametrize(
    "name",
    [
        "javascript link",
        "javascript in pieces",
        "javascript by entities",
        "javascript by escapes",
        "other schemes",
        "schemes of programs",
        "relative",
        "link definition",
        "bare scheme",
        "empty address",
        "host without slashes",
        "sequence in sequence",
    ],
)
def test_an_address_that_must_not_be_followed_is_no_link(name: str) -> None:
    assert Structure(render(HOSTILE[name])).links == []


def test_nothing_of_a_hostile_message_is_lost_to_the_reader() -> None:
    text = "<script>alert(1)</script> <b onclick='x'>bold</b>"

    assert "".join(Structure(render(text)).text).strip() == text


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("bidi", ["U+202E", "U+2066", "U+2069"]),
        ("bidi in code", ["U+202E", "U+2066", "U+2069"]),
        ("invisible", ["U+200B", "U+E0068", "U+2028", "U+0085", "U+001C"]),
        ("terminal", ["U+001B"]),
        ("controls", ["U+0001", "U+007F", "U+009F"]),
    ],
)
def test_a_hidden_character_is_shown_as_its_code(name: str, codes: list[str]) -> None:
    html = render(HOSTILE[name])

    assert [code for code in codes if f'<span class="char">{code}</span>' not in html] == []
    assert not set("\x1b\u202e\u2066\u2069\x85") & set(html)


def test_a_flag_and_the_marks_of_scripts_stay() -> None:
    flag = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
    text = f"{flag} a\u200db\u200cc\u200f"

    assert render(text) == f"<p>{text}</p>\n"


def test_colours_of_a_terminal_are_removed() -> None:
    assert render("\x1b[1;31mred\x1b[0m, \x1b]0;title\x07done") == "<p>red, done</p>\n"


def test_half_of_a_character_is_replaced() -> None:
    assert render("a\ud800b") == "<p>a\ufffdb</p>\n"
