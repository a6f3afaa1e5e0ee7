"""Words of texts and queries in any language, with unusual input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.core.memory import (
    MAX_QUERY_WORDS,
    MAX_WORD_CHARS,
    index_words,
    query_words,
    topic_words,
)


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
    assert index_words(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("coffee OR tea*", ["coffee", "or", "tea"]),
        ("東京都", ["東京", "京都"]),
        ("京", ["京"]),
        ("AND NOT", ["and", "not"]),
    ],
)
def test_a_query_is_split_into_words_and_nothing_else(text: str, words: list[str]) -> None:
    assert query_words(text) == words


def test_short_words_are_no_topic_unless_they_are_numbers_or_names() -> None:
    assert topic_words("Is the CI of PR no. 42 at 9 ok in 東京? a b A") == [
        "ci",
        "pr",
        "42",
        "9",
        "東京",
    ]
    assert topic_words("what is it with the main branch") == ["what", "with", "main", "branch"]


def test_words_and_queries_are_bounded() -> None:
    assert index_words("x" * 1_000) == ["x" * MAX_WORD_CHARS]
    assert len(query_words(" ".join(str(number) for number in range(1_000)))) == MAX_QUERY_WORDS


@given(st.text())
def test_every_query_word_is_among_the_index_words_of_the_same_text(text: str) -> None:
    assert set(topic_words(text)) <= set(index_words(text))
    assert set(query_words(text)) <= set(index_words(text))
