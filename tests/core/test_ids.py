"""Fresh ids in the order of time, derived ids, and their format."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.core import ids

MAKERS = {
    "a": ids.new_audit_id,
    "b": ids.new_batch_id,
    "t": ids.new_call_id,
    "c": ids.new_conversation_id,
    "i": ids.new_item_id,
    "k": ids.new_credential_id,
    "m": ids.new_message_id,
    "n": ids.new_notice_id,
    "p": ids.new_push_id,
    "r": ids.new_run_id,
    "s": ids.new_session_id,
    "u": ids.new_user_id,
}
DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
DERIVERS = {
    "b": ids.derive_batch_id,
    "g": ids.derive_grant_id,
    "q": ids.derive_question_id,
}

facts = st.lists(st.text(max_size=5) | st.integers(), max_size=4)


@pytest.mark.parametrize("letter", MAKERS)
def test_a_new_id_tells_its_kind_and_is_like_no_other(letter: str) -> None:
    made = {MAKERS[letter]() for _ in range(100)}

    assert len(made) == 100
    assert all(re.fullmatch(letter + "_[0-9a-hjkmnp-tv-z]{26}", each) for each in made)


@pytest.mark.parametrize("letter", MAKERS)
def test_ids_sort_in_the_order_in_which_they_were_made(letter: str) -> None:
    made = [MAKERS[letter]() for _ in range(100)]

    assert made == sorted(made)


def test_a_new_id_begins_with_the_time_and_ends_with_chance() -> None:
    before, made, after = time.time_ns() // 1000, ids.new_run_id(), time.time_ns() // 1000
    number = 0
    for digit in made[2:]:
        number = number * 32 + DIGITS.index(digit)

    assert before <= number >> 78 <= after
    assert len({ids.new_run_id()[-12:] for _ in range(100)}) == 100


@pytest.mark.parametrize("letter", DERIVERS)
def test_a_derived_id_has_the_same_form(letter: str) -> None:
    assert re.fullmatch(letter + "_[0-9a-hjkmnp-tv-z]{26}", DERIVERS[letter]("r_run", 1))


@given(facts, facts)
def test_a_derived_id_stands_for_just_the_same_things(
    one: list[str | int], other: list[str | int]
) -> None:
    same = ids.derive_question_id(*one) == ids.derive_question_id(*other)

    assert same == (one == other)


def test_a_derived_id_depends_on_where_each_value_ends() -> None:
    assert ids.derive_question_id("ab", "c") != ids.derive_question_id("a", "bc")
    assert ids.derive_question_id("1") != ids.derive_question_id(1)


def test_a_derived_id_stays_the_same_from_one_version_to_the_next() -> None:
    assert ids.derive_question_id("r_run", 1, "question") == "q_0axfqkqb0anahvsb4fw2npn1r1"


def test_ids_of_different_kinds_differ_in_more_than_their_letter() -> None:
    assert ids.derive_grant_id("x")[2:] != ids.derive_question_id("x")[2:]
