"""What servers ask of users: how it is shown, and how answers are read."""

import math
from dataclasses import replace
from typing import Any

import pytest
from support.cases.transition_cases import working
from support.stage.make import NOON, RUN

from backburner.core import transitions
from backburner.core.connections.inputs import input_question
from backburner.core.connections.inputs.input_question import (
    ANSWERED,
    DECLINED,
    read_answer,
    summarize_answer,
)
from backburner.core.connections.inputs.input_request import (
    InputAction,
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
    InputValues,
)
from backburner.core.errors import BackburnerError, BadAnswer
from backburner.core.ids import CallId
from backburner.core.question import (
    ACCEPT,
    CONSENT,
    DECLINE,
    MAX_ANSWER_CHARS,
    Purpose,
    Question,
    QuestionType,
    match_chat_message,
)
from backburner.core.run import RunKind
from backburner.core.tool_policy import Tool, ToolCall, call_digest

SEND = ToolCall(Tool(server="mail", name="send", definition="d"), {"to": "Ann"})
COLOURS = (InputOption("r", "Red"), InputOption("g", "Green"))
LOOKALIKES = (InputOption("delete", "Keep it"), InputOption("keep", "Keep it!"))
HOW_TO_ANSWER = (
    "Answer with a line for each, such as `name: value`, or `decline`. A value without a line is"
    " sent with the default that is shown here; `accept` sends the defaults alone."
)


def ask(*fields: InputField, url: str = "") -> Question:
    return ask_all(InputRequest(key="one", message="Well?\nSay it.", fields=fields, url=url))


def ask_all(*requests: InputRequest) -> Question:
    return input_question.input_question(
        InputNeeded(requests=requests),
        SEND,
        CallId("t_call"),
        server="Mail (mail.example)",
        run_id=RUN,
        kind=RunKind.BACKGROUND,
        now=NOON,
    )


def field(kind: InputKind = InputKind.TEXT, **more: Any) -> InputField:
    return InputField(**{"name": "colour", "kind": kind, "required": True, **more})


def values(question: Question, given: str | InputValues) -> object:
    return read_answer(question, given).answers["one"].values


def test_a_question_shows_the_server_and_its_words_as_quotes() -> None:
    question = ask(field(title="Colour", description="Of the car."))

    assert question.prompt.splitlines() == [
        "Mail (mail.example) asks you something during mail/send:",
        "> Well?",
        "> Say it.",
        "- colour: Colour: Of the car.",
        "Answer, or `decline`.",
        "Your answer goes to Mail (mail.example) only; the agent does not see it.",
    ]
    assert (question.purpose, question.outside) == (Purpose.INPUT, True)
    # A chat message never answers it, and to answer it is to consent.
    assert match_chat_message(question, "red") is None
    assert Purpose.INPUT in CONSENT


@pytest.mark.parametrize(
    ("fields", "options"),
    [
        ((), (ACCEPT, DECLINE)),
        ((field(),), ()),
        ((field(InputKind.SWITCH),), ("yes", "no", DECLINE)),
        ((field(InputKind.CHOICE, options=COLOURS),), ("Red", "Green", DECLINE)),
        ((field(InputKind.CHOICES, options=COLOURS),), ()),
        ((field(InputKind.CHOICE, options=(COLOURS[0], COLOURS[0])),), ()),
        ((field(InputKind.CHOICE, options=(InputOption("d", "Decline"),)),), ()),
        # An answer would mean either of them.
        ((field(InputKind.CHOICE, options=LOOKALIKES),), ()),
        ((field(), field(name="other")), ()),
    ],
)
def test_what_can_be_chosen_is_listed(
    fields: tuple[InputField, ...], options: tuple[str, ...]
) -> None:
    question = ask(*fields)

    assert question.options == options
    assert question.type is (QuestionType.CHOICE if options else QuestionType.INPUT)


@pytest.mark.parametrize(
    ("asked", "text", "value"),
    [
        (field(), " red ", "red"),
        (field(InputKind.INTEGER), "3", 3),
        (field(InputKind.NUMBER), "3.5", 3.5),
        (field(InputKind.SWITCH), "Yes", True),
        (field(InputKind.SWITCH), "no", False),
        (field(InputKind.CHOICE, options=COLOURS), "green", "g"),
        (field(InputKind.CHOICE, options=COLOURS), "R", "r"),
        (field(InputKind.CHOICES, options=COLOURS), "red, Green,", ("r", "g")),
        (field(InputKind.SWITCH), "Y", True),
        (field(InputKind.CHOICE, options=COLOURS), "2", "g"),
        (field(InputKind.CHOICE, options=LOOKALIKES), "keep it!", "keep"),
        # One value is not left out: its default is only shown.
        (field(default="blue"), "accept", "accept"),
    ],
)
def test_an_answer_is_read_as_the_server_wants_it(
    asked: InputField, text: str, value: object
) -> None:
    assert values(ask(asked), text) == {"colour": value}


@pytest.mark.parametrize(
    ("asked", "text", "told"),
    [
        (field(), " ", "The answer is empty"),
        (field(required=False, default="blue"), "", "The answer is empty"),
        (field(), "x" * (MAX_ANSWER_CHARS + 1), "The answer has 32,001 characters"),
        (field(InputKind.INTEGER), "three", "takes a number"),
        (field(InputKind.SWITCH), "perhaps", "takes yes or no"),
        (field(InputKind.CHOICE, options=COLOURS), "blue", "'blue' is not one of the options"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(asked: InputField, text: str, told: str) -> None:
    with pytest.raises(BackburnerError, match=told):
        read_answer(ask(asked), text)


def test_no_words_of_a_server_pass_for_a_line_of_ours() -> None:
    fake = "x\nMail (mail.example) asks you something during mail/send:\n- y"
    options = (InputOption("r", fake), InputOption("g", "Green"))
    question = ask(
        field(name=fake, title=fake, description=fake),
        field(InputKind.CHOICE, name="b", options=options),
    )

    lines = question.prompt.splitlines()
    assert [line for line in lines if line.startswith("Mail")] == [lines[0]]
    assert len([line for line in lines if line.startswith("- ")]) == 2


def test_the_name_of_the_tool_is_in_quotes_where_it_could_be_mistaken() -> None:
    call = replace(SEND, tool=replace(SEND.tool, name="send: Backburner needs your yes"))
    asked = InputNeeded(requests=(InputRequest(key="one", message="Well?"),))
    question = input_question.input_question(
        asked, call, CallId("t_call"), server="Mail", run_id=RUN, kind=RunKind.BACKGROUND, now=NOON
    )

    assert question.prompt.splitlines()[0] == (
        'Mail asks you something during mail/"send: Backburner needs your yes":'
    )


def test_all_of_what_a_server_says_is_shown() -> None:
    question = ask(*(field(name=f"n{n}", description=f"{n}" * 90) for n in range(30)))

    assert all(f"{n}" * 90 in question.prompt for n in range(30))
    assert question.prompt.endswith(
        "Your answer goes to Mail (mail.example) only; the agent does not see it."
    )


def test_several_values_have_a_line_each() -> None:
    question = ask(
        field(),
        field(InputKind.INTEGER, name="Count", required=False),
        field(InputKind.CHOICE, name="pick", options=COLOURS, required=False),
    )
    assert question.prompt.splitlines()[3:7] == [
        "- colour",
        "- Count (a whole number; optional)",
        '- pick (optional) [Red (sends "r") | Green (sends "g")]',
        "Answer with a line for each, such as `name: value`, or `decline`.",
    ]

    assert values(question, "colour: a: b\n\ncount: 3") == {"colour": "a: b", "Count": 3}
    with pytest.raises(BadAnswer, match="names none of the values") as refused:
        read_answer(question, "red")
    assert refused.value.hint == "Write a line for each: colour: …, Count: …, pick: …."
    with pytest.raises(BadAnswer, match="names none"):
        read_answer(question, "count")
    with pytest.raises(BadAnswer, match="colour is missing"):
        read_answer(question, "colour:\ncount: 3")


def test_names_of_values_may_have_colons() -> None:
    question = ask(field(name="a: b"), field(name="a", required=False))

    assert values(question, "a: b: c: d\na: e") == {"a: b": "c: d", "a": "e"}
    assert values(question, '"a: b": c') == {"a: b": "c"}
    assert values(question, "a: b: c\na: d: e") == {"a: b": "c", "a": "d: e"}


def test_a_default_is_shown_and_only_then_sent_for_a_value_that_is_left_out() -> None:
    question = ask(
        field(name="to"),
        field(InputKind.SWITCH, name="share_with_everybody", default=True),
        field(name="note", required=False, default="x" * 200),
        field(name="sign", required=False, default="ann"),
    )

    assert question.prompt.splitlines()[3:8] == [
        "- to",
        "- share_with_everybody (yes or no; default: yes)",
        "- note (optional)",
        '- sign (optional; default: "ann")',
        HOW_TO_ANSWER,
    ]
    shared = {"to": "bob", "share_with_everybody": True}
    assert values(question, "to: bob") == {**shared, "sign": "ann"}
    assert values(question, "to: bob\nshare_with_everybody: no") == {
        "to": "bob",
        "share_with_everybody": False,
        "sign": "ann",
    }
    # A line without a value sends none.
    assert values(question, "to: bob\nsign:") == shared
    with pytest.raises(BadAnswer, match="share_with_everybody is missing"):
        read_answer(question, "to: bob\nshare_with_everybody:")
    with pytest.raises(BadAnswer, match="to is missing"):
        read_answer(question, ACCEPT)


def test_a_required_value_whose_default_cannot_be_shown_has_to_be_answered() -> None:
    question = ask(field(), field(name="why", default="x" * 2_000))

    with pytest.raises(BadAnswer, match="why is missing"):
        read_answer(question, "colour: red")
    assert "x" * 200 not in str(question.binds_to)


def test_defaults_beyond_the_end_of_what_is_shown_are_not_sent() -> None:
    long: dict[str, Any] = {"description": "x" * 2_000, "required": False}
    question = ask(*(field(name=f"n{n}", default=f"d{n}", **long) for n in range(30)))
    shown = [n for n in range(30) if f'- n{n} (optional; default: "d{n}"): ' in question.prompt]
    whole = shown[:-1]

    assert 1 < len(shown) < 30
    assert values(question, ACCEPT) == {f"n{n}": f"d{n}" for n in whole}


def test_what_is_neither_accepted_nor_declined_is_no_answer_to_an_address() -> None:
    question = ask(url="https://pay.example/1")

    for text in ("no", "", "paid"):
        with pytest.raises(BadAnswer):
            read_answer(question, text)
    assert values(question, "1") == {}


FORM = (
    field(name="to"),
    field(InputKind.INTEGER, name="count", required=False, default=2),
    field(InputKind.SWITCH, name="express", required=False),
    field(InputKind.CHOICES, name="colours", options=COLOURS, required=False),
)


def test_the_values_of_a_form_are_sent_by_name() -> None:
    given: dict[str, Any] = {
        "to": "Ann: 1\nBerlin",
        "count": 3,
        "express": False,
        "colours": ["r", "r", "g"],
    }

    assert values(ask(*FORM), given) == {**given, "colours": ("r", "g")}
    # What is left out has its default, and what is empty is not sent.
    assert values(ask(*FORM), {"to": "Ann"}) == {"to": "Ann", "count": 2}
    assert values(ask(*FORM), {"to": "Ann", "count": None, "express": None}) == {"to": "Ann"}
    # Where options can be pressed too, and for words that would mean something else.
    assert values(ask(field(InputKind.SWITCH)), {"colour": True}) == {"colour": True}
    assert values(ask(field(InputKind.CHOICE, options=COLOURS)), {"colour": "g"}) == {"colour": "g"}
    assert values(ask(field(InputKind.NUMBER)), {"colour": 2.5}) == {"colour": 2.5}
    assert values(ask(field()), {"colour": "decline"}) == {"colour": "decline"}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "to is missing"),
        ({"to": ""}, "to is missing"),
        ({"to": 3}, "to takes a text"),
        ({"to": "a", "count": "3"}, "count takes a whole number"),
        ({"to": "a", "count": 2.5}, "count takes a whole number"),
        ({"to": "a", "count": True}, "count takes a whole number"),
        ({"to": "a", "count": 2**63}, "count takes a whole number"),
        ({"to": "a", "express": "yes"}, "express takes true or false"),
        ({"to": "a", "colours": "r"}, "colours takes a list of its options"),
        ({"to": "a", "colours": ["Red"]}, "'Red' is not one of the options of colours"),
        ({"to": "a", "other": "b"}, "'other' names none of the values"),
        ({"to": "a" * (MAX_ANSWER_CHARS + 1)}, "too long"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(BadAnswer, match=told):
        read_answer(ask(*FORM), given)


def test_a_number_that_is_none_is_refused() -> None:
    with pytest.raises(BadAnswer, match="takes a number"):
        read_answer(ask(field(InputKind.NUMBER)), {"colour": math.inf})


def test_an_address_takes_no_values() -> None:
    with pytest.raises(BadAnswer, match="'to' names none of the values") as refused:
        read_answer(ask(url="https://pay.example/1"), {"to": "a"})
    assert "`answer`" in refused.value.hint


def test_of_an_answer_only_whether_there_is_one_is_kept() -> None:
    question = ask(url="https://Pay.example:8443/bank.example")
    lines = question.prompt.splitlines()
    at = lines.index("It wants you to visit a page of pay.example:")
    assert lines[at + 1] == "  https://Pay.example:8443/bank.example"
    accepted, declined = read_answer(question, ACCEPT), read_answer(question, " Decline")

    assert accepted.answers["one"].action is InputAction.ACCEPT
    assert declined.answers["one"].action is InputAction.DECLINE
    assert (summarize_answer(accepted), summarize_answer(declined)) == (ANSWERED, DECLINED)


def test_the_answer_is_kept_nowhere_and_its_call_may_be_made_again() -> None:
    question = ask(field())
    waiting = transitions.ask_owner(working(), question).conversation

    step = transitions.answer(waiting, question.id, "ann@example.org", now=NOON, kept=ANSWERED)

    assert step.answered == ((question.id, ANSWERED),)
    assert "ann@example.org" not in repr(step)
    (item,) = step.inbox
    # What the server said is not for the agent.
    assert item.content["prompt"] == "mail/send asked the user."
    assert item.content["outside"] is False
    (grant,) = step.grants
    assert (grant.server, grant.tool, grant.call) == ("mail", "send", call_digest(SEND))
