"""Which text and JSON can be stored."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backburner.core.errors import BadRequest, TooLarge
from backburner.core.validation import (
    MAX_INTEGER,
    MAX_JSON_DEPTH,
    canonical_json,
    check_json,
    check_object,
    check_text,
    escape_unprintable,
    hidden_characters,
    is_hidden,
    json_size,
    replace_invalid_characters,
)

PLENTY = 1_000_000

storable = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
plain_json: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-MAX_INTEGER, MAX_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(storable, inner, max_size=3),
    max_leaves=8,
)


def nested(levels: int) -> object:
    inner: object = 1
    for _ in range(levels - 1):
        inner = [inner]
    return inner


@pytest.mark.parametrize("text", ["", "x" * 20, "naïve 🚀\r\n\t", "\u202e", "\ufffe"])
def test_text_within_its_limit_is_kept_as_it_is(text: str) -> None:
    assert check_text("It", text, limit=20) == text


@pytest.mark.parametrize("thing", [None, 3, b"bytes", ["a"], {"a": 1}])
def test_a_value_that_is_not_text_is_refused_with_its_type(thing: object) -> None:
    with pytest.raises(BadRequest, match=f"It must be text, not {type(thing).__name__}"):
        check_text("It", thing, limit=20)


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a\udfff"])
def test_text_that_no_database_takes_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="It has invalid characters"):
        check_text("It", text, limit=20)


def test_text_beyond_its_limit_is_refused_with_both_numbers() -> None:
    with pytest.raises(TooLarge, match=r"It has 2,001 characters; the limit is 2,000") as refused:
        check_text("It", "x" * 2_001, limit=2_000)

    assert (refused.value.size, refused.value.limit) == (2_001, 2_000)


@given(plain_json)
def test_plain_json_is_kept(value: object) -> None:
    check_json("It", value, limit=PLENTY)

    assert json.loads(canonical_json(value)) == value


@pytest.mark.parametrize("extreme", [MAX_INTEGER, -MAX_INTEGER, 1.7e308, -0.0, 5e-324])
def test_the_extremes_of_numbers_are_kept(extreme: float) -> None:
    check_json("It", {"n": extreme}, limit=PLENTY)


REFUSED: list[tuple[object, str]] = [
    (MAX_INTEGER + 1, "number that is too large"),
    (-MAX_INTEGER - 1, "number that is too large"),
    (10**5_000, "number that is too large"),
    (float("nan"), "number that is not finite"),
    (float("-inf"), "number that is not finite"),
    ("\0", "invalid characters"),
    ("\ud800", "invalid characters"),
    ({"\0": 1}, "invalid characters"),
    ({"\ud800": 1}, "invalid characters"),
    ({1: 1}, "key that is not text"),
    ({None: 1}, "key that is not text"),
    ((1, 2), "has a tuple"),
    ({1, 2}, "has a set"),
    (b"bytes", "has a bytes"),
    (object(), "has a object"),
]


@pytest.mark.parametrize("wrap", [lambda it: it, lambda it: [it], lambda it: {"a": {"b": it}}])
@pytest.mark.parametrize(("value", "fault"), REFUSED, ids=[fault for _, fault in REFUSED])
def test_a_value_that_is_not_plain_json_is_refused_at_any_depth(
    wrap: Any, value: object, fault: str
) -> None:
    with pytest.raises(BadRequest, match=fault):
        check_json("It", wrap(value), limit=PLENTY)


def test_json_is_kept_down_to_the_deepest_level_and_no_further() -> None:
    check_json("It", nested(MAX_JSON_DEPTH), limit=PLENTY)

    for levels in (MAX_JSON_DEPTH + 1, 10_000):
        with pytest.raises(BadRequest, match=f"nested more than {MAX_JSON_DEPTH} levels"):
            check_json("It", nested(levels), limit=PLENTY)


def test_json_that_holds_itself_is_refused() -> None:
    endless: list[object] = []
    endless.append(endless)

    with pytest.raises(BadRequest, match="nested"):
        check_json("It", endless, limit=PLENTY)


def test_the_size_of_json_is_counted_in_bytes() -> None:
    check_json("It", "é" * 4, limit=10)

    assert json_size("é" * 4) == 10
    with pytest.raises(
        TooLarge, match=r"It has 10 bytes; the limit is 9\. Shorten it, or split it into parts"
    ):
        check_json("It", "é" * 4, limit=9)


def test_equal_objects_are_written_alike() -> None:
    assert canonical_json({"b": [1, "é"], "a": None}) == canonical_json({"a": None, "b": [1, "é"]})
    assert canonical_json({"b": [1, "é"], "a": None}) == '{"a":null,"b":[1,"é"]}'


@pytest.mark.parametrize("pair", [(1, True), (1, 1.0), (0, False), (1, "1"), ([], {}), (None, "")])
def test_different_values_are_written_differently(pair: tuple[object, object]) -> None:
    one, other = pair

    assert canonical_json(one) != canonical_json(other)


def test_only_mappings_are_json_objects() -> None:
    assert check_object("It", {"a": 1}) == {"a": 1}
    with pytest.raises(BadRequest, match="It must be a JSON object"):
        check_object("It", [("a", 1)])


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("plain é 😀", "plain é 😀"),
        ("half \ud83d of one", "half \ufffd of one"),
        ("both \ud83d\ude00 halves", "both 😀 halves"),
        ("nothing\0 here", "nothing\ufffd here"),
    ],
)
def test_characters_that_cannot_be_stored_are_replaced(text: str, readable: str) -> None:
    assert replace_invalid_characters(text) == readable
    assert check_text("It", readable, limit=100) == readable


#: Letters, marks and symbols that are drawn as nothing, beside control and format characters.
BLANK = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180d\u180f\u2800\u3164\ufe00\ufe0f\uffa0\U0001d159"
IGNORABLE = "\u00ad\u061c\u180e\u200b\u200f\u202a\u202e\u2060\u2065\u206f\ufeff\ufff0\ufff8"
ASTRAL = "\U0001bca0\U0001bca3\U0001d173\U0001d17a\U000e0000\U000e007f\U000e01ef\U000e0fff"


@pytest.mark.parametrize("char", BLANK + IGNORABLE + ASTRAL, ids=ascii)
def test_a_character_that_is_drawn_as_nothing_is_hidden(char: str) -> None:
    assert is_hidden(char)
    assert hidden_characters(f"a{char}b\n\t") == {char}


@pytest.mark.parametrize(
    "emoji",
    [
        "\u26a0\ufe0f",
        "\u2764\ufe0f\u200d\U0001f525",
        "1\ufe0f\u20e3",
        "\U0001f469\U0001f3fd\u200d\U0001f4bb",
    ],
    ids=ascii,
)
def test_what_belongs_to_an_emoji_is_seen_with_it(emoji: str) -> None:
    assert hidden_characters(f"Done {emoji}.") == frozenset()
    for hidden in ("\ufe0f", "\u200d"):
        assert hidden_characters(f"{emoji}a{hidden}") == {hidden}
        assert hidden_characters(f"{emoji}\ufe0f{hidden}{hidden}") >= {hidden}


def test_what_people_write_is_not_damaged_by_a_terminal() -> None:
    written = "\u8fbb\U000e0100 \u1820\u180b \u26a0\ufe0f"

    assert escape_unprintable(written) == written
    assert escape_unprintable("a\x1b[2J\u202e\n") == "a\\u001b[2J\\u202e\n"
