"""What a search shows of a text: pieces around its words."""

import time

import pytest

from backburner.core.content.search import (
    MAX_HIT_CHARS,
    MAX_WORDS,
    ExcerptPart,
    cut_out,
    fold,
    has_any,
    split_words,
)


def marked(text: str, *words: str) -> str:
    """Cut out, with the hits in brackets."""
    parts = cut_out(text, words)
    return "".join(f"[{part.text}]" if part.is_hit else part.text for part in parts)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ABC", "abc"),
        ("Café", "cafe"),
        ("cafe\u0301", "cafe"),
        ("Straße", "strasse"),
        ("ﬁlm", "film"),
        ("ŁÓDŹ", "łodz"),
        ("ПРИВЕТ", "привет"),
        ("漢字 👩🏽‍🚀", "漢字 👩🏽‍🚀"),
    ],
)
def test_case_and_accents_are_left_out(text: str, folded: str) -> None:
    assert fold(text) == folded


@pytest.mark.parametrize(
    ("search", "words"),
    [
        ("", ()),
        ("  ", ()),
        ('""', ('""',)),
        ("One  two one", ("one", "two")),
        ('"One  Two" three', ("one two", "three")),
        ('"open', ('"open',)),
        ("\u0301", ()),
        (" ".join(map(str, range(20))), tuple(map(str, range(MAX_WORDS)))),
    ],
)
def test_a_search_is_split_into_words(search: str, words: tuple[str, ...]) -> None:
    assert split_words(search) == words


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("Nothing here.", ("word",), "Nothing here."),
        ("A word, and words.", ("word",), "A [word], and [word]s."),
        ("Le Café noir", ("cafe",), "Le [Café] noir"),
        ("Le Cafe\u0301 noir", ("cafe",), "Le [Cafe\u0301] noir"),
        ("Große Straße", ("strasse",), "Große [Straße]"),
        ("ein ﬁlm", ("fi",), "ein [ﬁ]lm"),
        ("ﬁ", ("f", "i"), "[ﬁ]"),
        ("abcabc", ("abc", "abcabc"), "[abcabc]"),
        ("**bold** word", ("bold",), "[bold] word"),
        ("See [it](https://example.org/word).", ("word",), "See [it](https://example.org/[word])."),
        ("a.b", (".",), "a[.]b"),
        ("all", ("all",), "[all]"),
    ],
)
def test_words_are_marked_in_what_is_shown(text: str, words: tuple[str, ...], found: str) -> None:
    assert marked(text, *words) == found


def test_a_long_text_is_cut_at_words_around_the_first_hit() -> None:
    text = f"{'before ' * 50}needle {'after ' * 50}needle"

    found = marked(text, "needle")

    assert found.startswith("…before before")
    assert "[needle] after" in found
    assert found.endswith("after…")
    assert len(found) <= MAX_HIT_CHARS + 4


def test_a_hit_that_is_longer_than_what_is_shown_is_cut() -> None:
    (first, last) = cut_out("x" * 500, ("x" * 400,))

    assert first == ExcerptPart("x" * MAX_HIT_CHARS, is_hit=True)
    assert last == ExcerptPart("…")


def test_no_text_has_no_parts() -> None:
    assert cut_out("", ("word",)) == ()
    assert not has_any("", ("word",))
    assert cut_out("text", ()) == (ExcerptPart("text"),)


def test_the_first_hit_that_is_shown_is_cut_out() -> None:
    hidden = f"[a](https://example.org/{'x' * 500}needle) "

    found = marked(f"{hidden}{'between ' * 300}needle{' after' * 300}", "needle")

    assert found.startswith("…between")
    assert "[needle] after" in found
    assert found.endswith("after…")


def test_what_is_before_and_after_a_hit_is_not_read_twice() -> None:
    text = f"{'[' * 9_990} needle"
    began = time.thread_time()

    for _ in range(60):
        found = marked(text, "needle", *("[" * 200 + end for end in "abcdefg"))

    assert found == "…[needle]"
    # As many as one answer to a search shows; it takes a tenth of that.
    assert time.thread_time() - began < 3
