"""One value that a server asks for: its line in the question, and answers to it."""

import time
from typing import Any

import pytest

from backburner.core.connections.inputs.input_field import (
    MAX_DEFAULT_CHARS,
    describe_field,
    read_value,
    show_default,
)
from backburner.core.connections.inputs.input_request import InputField, InputKind, InputOption
from backburner.core.errors import BadAnswer

#: What each sends is not what it says.
CROSSED = (InputOption("no", "Yes"), InputOption("yes", "No"))
PEOPLE = (InputOption("ann", "Ann"), InputOption("u_2", "Bob"))
NAMES = (InputOption("l_a", "Lee, Ann"), InputOption("b", "Bob"), InputOption("l,m", "Lists"))
ALONE = (InputOption("l", "Lee"), InputOption("a", "Ann"))
LEE_AND_BOB = '"Lee, Ann" (sends "l_a") | Bob (sends "b")'
ANY_OF, ANN_AND_BOB = "any of these, with commas between them", 'Ann, Bob (sends "u_2")'


def field(kind: InputKind = InputKind.TEXT, **more: Any) -> InputField:
    return InputField(**{"name": "who", "kind": kind, "required": True, **more})


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (field(), "who"),
        (field(title="Who?", description="A\nperson."), "who: Who?: A person."),
        (field(title="Who?", description="Who?"), "who: Who?"),
        (field(required=False, format="email"), "who (an email address; optional)"),
        (field(format="\n- secret"), "who"),
        (field(InputKind.NUMBER, default=0.5), "who (a number; default: 0.5)"),
        (field(InputKind.CHOICE, options=PEOPLE), 'who [Ann | Bob (sends "u_2")]'),
        (
            field(InputKind.CHOICES, options=PEOPLE, default=["ann", "u_2"]),
            f'who ({ANY_OF}; default: {ANN_AND_BOB}) [Ann | Bob (sends "u_2")]',
        ),
        (
            field(InputKind.CHOICES, options=NAMES[:2], default=["l_a", "b"]),
            f"who ({ANY_OF}; default: {LEE_AND_BOB.replace(' | ', ', ')}) [{LEE_AND_BOB}]",
        ),
        # Neither a name nor an option says what we have not said.
        (field(name="who (optional)"), '"who (optional)"'),
        (
            field(InputKind.CHOICE, options=(InputOption("all", 'Ann (sends "ann") | Bob'),)),
            'who ["Ann (sends \\"ann\\") | Bob" (sends "all")]',
        ),
        (field(description="x" * 500), f"who: {'x' * 500}"),
    ],
)
def test_a_value_has_one_line(asked: InputField, line: str) -> None:
    assert describe_field(asked) == line


def test_a_long_list_of_options_is_shown_whole_and_cut_in_hints() -> None:
    options = tuple(InputOption(f"o{n}", f"o{n}") for n in range(200))
    long = field(InputKind.CHOICE, options=options, default="o199")

    assert "default: o199" in describe_field(long)
    assert "o0 | " in describe_field(long)
    assert "| o199]" in describe_field(long)
    with pytest.raises(BadAnswer) as refused:
        read_value(long, "nothing")
    assert len(refused.value.hint) < 1_100


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        (field(InputKind.SWITCH, default=True), "yes"),
        (field(InputKind.SWITCH, default=False), "no"),
        (field(InputKind.INTEGER, default=-3), "-3"),
        (field(InputKind.NUMBER, default=3), "3"),
        (field(default=""), '""'),
        # What is hidden is visible, and what ends the quote does not.
        (field(default='a\u202e"\n'), '"a\\u202e\\"\\n"'),
        (field(default="x" * (MAX_DEFAULT_CHARS - 2)), f'"{"x" * (MAX_DEFAULT_CHARS - 2)}"'),
        (field(InputKind.CHOICE, options=CROSSED, default="yes"), 'No (sends "yes")'),
        (field(InputKind.CHOICES, options=PEOPLE, default=()), "none of them"),
    ],
)
def test_a_default_is_shown_in_full(asked: InputField, shown: str) -> None:
    assert show_default(asked) == shown
    assert f"default: {shown})" in describe_field(asked)


@pytest.mark.parametrize(
    "asked",
    [
        field(),
        field(default="x" * (MAX_DEFAULT_CHARS - 1)),
        # Of another kind than what is asked for.
        field(default=3),
        field(InputKind.SWITCH, default="false"),
        field(InputKind.INTEGER, default=True),
        field(InputKind.INTEGER, default=2**70),
        field(InputKind.INTEGER, default=0.5),
        field(InputKind.NUMBER, default=float("inf")),
        field(InputKind.CHOICE, options=PEOPLE, default="Ann"),
        field(InputKind.CHOICES, options=PEOPLE, default=("ann", "eve")),
    ],
)
def test_a_default_that_cannot_be_shown_is_none(asked: InputField) -> None:
    assert show_default(asked) is None
    assert "default" not in describe_field(asked)


@pytest.mark.parametrize(
    ("asked", "text", "value"),
    [
        (field(), "3", "3"),
        (field(InputKind.INTEGER), "3", 3),
        (field(InputKind.NUMBER), "3.5", 3.5),
        (field(InputKind.SWITCH), "On", True),
        (field(InputKind.CHOICE, options=PEOPLE), "bob", "u_2"),
        (field(InputKind.CHOICE, options=PEOPLE), "U_2", "u_2"),
        # The label, which is what one picks by.
        (field(InputKind.CHOICE, options=CROSSED), "no", "yes"),
        (field(InputKind.CHOICE, options=(PEOPLE[1], PEOPLE[1])), "Bob", "u_2"),
        (field(InputKind.CHOICES, options=PEOPLE), "bob, Ann,", ("u_2", "ann")),
        # Commas in options are theirs.
        (field(InputKind.CHOICES, options=NAMES), "Lee, Ann", ("l_a",)),
        (field(InputKind.CHOICES, options=NAMES), " Bob ,lee, ann,l,m", ("b", "l_a", "l,m")),
        (field(InputKind.CHOICES, options=NAMES), '"Lee, Ann", "Bob"', ("l_a", "b")),
        (field(InputKind.CHOICES, options=(*NAMES, *ALONE)), '"Lee, Ann"', ("l_a",)),
        (field(InputKind.CHOICES, options=(*NAMES, *ALONE)), '"Lee", "Ann"', ("l", "a")),
        (field(InputKind.CHOICES, options=NAMES), ",", ()),
        (field(InputKind.CHOICE, options=NAMES), '"Lee, Ann"', "l_a"),
    ],
)
def test_an_answer_is_read_as_it_was_asked_for(asked: InputField, text: str, value: object) -> None:
    assert read_value(asked, text) == value


@pytest.mark.parametrize(
    ("asked", "text", "told"),
    [
        (field(InputKind.INTEGER), "3.5", "takes a number"),
        (field(InputKind.NUMBER), "nan", "takes a number"),
        (field(InputKind.NUMBER), "1e999", "takes a number"),
        (field(InputKind.SWITCH), "perhaps", "takes yes or no"),
        (field(InputKind.CHOICE, options=PEOPLE), "eve", "'eve' is not one of the options"),
        (field(InputKind.CHOICE, options=PEOPLE), '"eve', "is not one of the options"),
        (field(InputKind.CHOICES, options=PEOPLE), "ann, eve", "'eve' is not one of the options"),
        # Neither of the two is what was chosen for sure.
        (
            field(InputKind.CHOICES, options=(*NAMES, *ALONE)),
            "Bob, Lee, Ann",
            r"(?s)can be read in two ways.*Put options into quotes: \"Lee, Ann\" \(sends",
        ),
        (field(InputKind.CHOICES, options=PEOPLE), "Ann," * 1_000, "fewer options"),
        (
            field(InputKind.CHOICE, options=(InputOption("1", "Ann"), InputOption("2", "ann"))),
            "ann",
            r"One of: Ann \(sends \"1\"\) \| ann \(sends \"2\"\)",
        ),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(asked: InputField, text: str, told: str) -> None:
    with pytest.raises(BadAnswer, match=told):
        read_value(asked, text)


def test_options_full_of_commas_are_read_in_no_time() -> None:
    long = InputOption("b," * 990, "z")
    others = (InputOption(f"o{number}", f"l{number}") for number in range(60))
    asked = field(InputKind.CHOICES, options=(long, *others))
    began = time.thread_time()

    with pytest.raises(BadAnswer, match="not one of the options"):
        read_value(asked, "a," * 990)

    # It takes a tenth of that.
    assert time.thread_time() - began < 1


def test_an_answer_that_could_be_put_together_in_many_ways_is_refused_at_once() -> None:
    options = tuple(InputOption(f"o{commas}", "a" + ",a" * commas) for commas in range(100))
    asked = field(InputKind.CHOICES, options=options)
    began = time.thread_time()

    with pytest.raises(BadAnswer, match="too many options"):
        read_value(asked, ",".join("a" * 900))
    with pytest.raises(BadAnswer, match="two ways"):
        read_value(asked, ",".join("a" * 90))

    assert time.thread_time() - began < 1
