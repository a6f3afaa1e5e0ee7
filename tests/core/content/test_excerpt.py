"""Excerpts of messages are plain text in one line."""

import time

import pytest

from backburner.core.content.excerpt import MAX_EXCERPT_CHARS, make_excerpt, plain_text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("Hello.", "Hello."),
        ("", ""),
        ("# Title\n\nText", "Title Text"),
        ("- one\n* two\n  + three\n- [x] four", "one two three four"),
        ("> quoted\n> twice", "quoted twice"),
        ("**bold** and *slanted* and __both__ and _one_", "bold and slanted and both and one"),
        ("~~gone~~ `code`", "gone code"),
        ("```python\nprint(1)\n```\nafter", "print(1) after"),
        ("See [the page](https://example.org/a) and ![a cat](b.png).", "See the page and a cat."),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b | | 1 | 2 |"),
        ("above\n\n---\n\nbelow", "above below"),
        ("**a** b** ~~*c*~~ __init__ **d *e***", "a b** c init d e"),
        # What is no mark stays.
        ("2 * 3 * 4 and snake_case_name and a*b*c", "2 * 3 * 4 and snake_case_name and a*b*c"),
        ("C# and 1. one", "C# and 1. one"),
        ("-5 degrees", "-5 degrees"),
    ],
)
def test_marks_of_markdown_are_left_out(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text


def test_a_short_text_is_its_own_excerpt() -> None:
    assert make_excerpt("**Hello.**") == "Hello."


def test_an_excerpt_ends_at_a_word() -> None:
    excerpt = make_excerpt("word, " * 100)

    assert excerpt.endswith("word…")
    assert len(excerpt) <= MAX_EXCERPT_CHARS + 1


def test_one_long_word_is_cut() -> None:
    assert make_excerpt("x" * 500) == "x" * MAX_EXCERPT_CHARS + "…"


def test_a_text_that_is_mostly_marks_says_that_it_goes_on() -> None:
    assert make_excerpt(f"Yes.\n{'-' * 900}\nNo.") == "Yes…"


@pytest.mark.parametrize("odd", ["*" * 5000, "[" * 5000, "_ " * 2500, "`" * 5000, "**a" * 1700])
def test_any_text_takes_no_time(odd: str) -> None:
    assert len(make_excerpt(odd)) <= MAX_EXCERPT_CHARS + 1


@pytest.mark.parametrize(
    "odd", ["[", "[](", "![a](", "**a ", "__a", "~~a ", "**", "`a", "- ", "> "]
)
def test_a_text_of_nothing_but_beginnings_is_read_in_no_time(odd: str) -> None:
    text = odd * (100_000 // len(odd))
    began = time.thread_time()

    plain_text(text)

    # It takes a tenth of that.
    assert time.thread_time() - began < 1
