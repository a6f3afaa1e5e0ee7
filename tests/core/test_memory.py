"""Words are told apart in any language, and odd ones do no harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.core.memory import LONGEST_WORD, MOST_SOUGHT, sought_in, telling_in, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The build broke; the BUILD!", ["the", "build", "broke"]),
        ("watch-ci-main ci_main #42", ["watch", "ci", "main", "42"]),
        ("Straße Ελλάς ﬁne", ["strasse", "ελλάσ", "fine"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("東京都", ["東", "京", "都", "東京", "京都"]),
        ("v2東", ["v2", "東"]),
        ("🎉", ["🎉"]),
        ('"*^:(){}[]~\\', []),
        ("\u0301 \ufe0f", []),
        ("", []),
    ],
)
def test_a_text_is_found_by_its_words(text: str, words: list[str]) -> None:
    assert words_of(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("coffee OR tea*", ["coffee", "or", "tea"]),
        ("東京都", ["東京", "京都"]),
        ("京", ["京"]),
        ("AND NOT", ["and", "not"]),
    ],
)
def test_what_is_looked_for_are_words_and_nothing_else(text: str, words: list[str]) -> None:
    assert sought_in(text) == words


def test_short_words_tell_nothing_unless_they_are_numbers_or_names() -> None:
    assert telling_in("Is the CI of PR no. 42 at 9 ok in 東京? a b A") == [
        "ci",
        "pr",
        "42",
        "9",
        "東京",
    ]
    assert telling_in("what is it with the main branch") == ["what", "with", "main", "branch"]


def test_there_are_bounds() -> None:
    assert words_of("x" * 1_000) == ["x" * LONGEST_WORD]
    assert len(sought_in(" ".join(str(number) for number in range(1_000)))) == MOST_SOUGHT


@given(st.text())
def test_whatever_is_looked_for_is_among_the_words_of_the_same_text(text: str) -> None:
    assert set(telling_in(text)) <= set(words_of(text))
    assert set(sought_in(text)) <= set(words_of(text))
