"""Errors: default messages, and the tree at the top of the module."""

import re
from collections.abc import Iterator

import pytest

from backburner.core import errors
from backburner.core.errors import BackburnerError, BadAnswer, MachineFailed, SignedOut, TooLarge


def family(parent: type[BackburnerError] = BackburnerError) -> Iterator[type[BackburnerError]]:
    yield parent
    for child in parent.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from family(child)


def drawn() -> dict[str, str | None]:
    """Read the tree: each name with the name it hangs under."""
    above: dict[int, str] = {}
    found: dict[str, str | None] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := re.match(r"    ([│├└─ ]*)(\w+)(?:  |$)", line):
            depth = len(match[1]) // 4
            above[depth] = match[2]
            found[match[2]] = above[depth - 1] if depth else None
    return found


ALL = tuple(family())
#: Facts, not words, make up its message.
BY_WORDS = tuple(kind for kind in ALL if kind is not TooLarge)


def test_the_tree_at_the_top_names_every_error_under_its_parent() -> None:
    parents = {kind.__name__: kind.__mro__[1].__name__ for kind in ALL[1:]}

    assert drawn() == {"BackburnerError": None, **parents}


@pytest.mark.parametrize("kind", BY_WORDS)
def test_an_error_says_its_docstring_unless_told_otherwise(kind: type[BackburnerError]) -> None:
    assert kind().message == str(kind()) == kind.__doc__
    assert str(kind("The disk is full.")) == "The disk is full."


@pytest.mark.parametrize("kind", BY_WORDS)
def test_a_hint_follows_the_message_and_is_kept_apart(kind: type[BackburnerError]) -> None:
    error = kind("The disk is full.", hint="Delete something.")

    assert str(error) == "The disk is full. Delete something."
    assert (error.message, error.hint) == ("The disk is full.", "Delete something.")


@pytest.mark.parametrize("kind", ALL)
def test_every_default_message_is_a_sentence(kind: type[BackburnerError]) -> None:
    assert kind.__doc__ is not None
    assert re.fullmatch(r"[A-Z][^\n]*\.", kind.__doc__)


def test_a_too_large_error_has_the_size_and_the_limit() -> None:
    error = TooLarge("The message", size=2_000, limit=1_000, unit="characters")

    assert str(error) == (
        "The message has 2,000 characters; the limit is 1,000. Shorten it, or split it into parts."
    )
    assert (error.size, error.limit) == (2_000, 1_000)


def test_a_bad_answer_carries_the_options() -> None:
    assert BadAnswer(options=("yes", "no")).options == ("yes", "no")
    assert BadAnswer().options == ()


@pytest.mark.parametrize(
    "kind", [kind for kind in ALL if issubclass(kind, MachineFailed) and kind is not SignedOut]
)
def test_the_failure_of_a_machine_passes_unless_it_says_otherwise(
    kind: type[MachineFailed],
) -> None:
    assert kind().permanent is False
    assert kind(permanent=True).permanent is True


def test_signing_in_again_is_the_only_cure_for_being_signed_out() -> None:
    error = SignedOut(scopes=("mail.read",))

    assert error.permanent
    assert error.scopes == ("mail.read",)
