"""Text that somebody agrees to is shown whole, and nothing in it is unseen."""

import re

import pytest

from backburner.web.views.exact_text import show_exact, write_call


def read(html: str) -> str:
    """Read the text of a fragment as a person does."""
    return re.sub(r"<[^>]+>", "", html)


def test_words_are_blocks_in_which_no_line_breaks() -> None:
    shown = show_exact("git push --force-with-lease\n  origin main")

    blocks = re.findall(r'<span class="word">([^<]*)</span>', shown.html)
    assert blocks == ["git", "push", "--force-with-lease", "origin", "main"]
    assert read(shown.html) == "git push --force-with-lease\n  origin main"
    assert (shown.hidden, shown.look_alike) == (0, 0)


@pytest.mark.parametrize("char", ["\u200b", "\u202e", "\u2066", "\u00ad", "\x1b", "\x00", "\ufeff"])
def test_hidden_characters_are_shown_by_their_code(char: str) -> None:
    shown = show_exact(f"pr{char}.md {char} end")

    assert char not in shown.html
    assert read(shown.html).count(f"U+{ord(char):04X}") == shown.hidden == 2


def test_a_letter_of_another_script_among_latin_ones_is_marked() -> None:
    shown = show_exact("p\u0430ypal.com")

    assert "U+0430" in shown.html
    assert shown.look_alike == 1
    # A word of its own language is no trick.
    assert show_exact("привет мир").look_alike == 0


def test_markup_is_text() -> None:
    shown = show_exact('echo "<script>alert(1)</script>" & <b>')

    assert "<script" not in shown.html
    assert "<b>" not in shown.html
    assert "&lt;script&gt;" in shown.html


def test_a_call_is_written_whole() -> None:
    long = "x" * 10_000
    command = {"tool": "run_command", "server": "", "arguments": {"command": long, "network": True}}
    other = {
        "tool": "send",
        "server": "mail",
        "connection": "n_1",
        "arguments": {"to": "ä", "n": 1},
    }

    assert write_call(command) == f'$ {long}\n{{\n  "network": true\n}}'
    assert write_call(other) == 'mail/send {\n  "to": "ä",\n  "n": 1\n}'
