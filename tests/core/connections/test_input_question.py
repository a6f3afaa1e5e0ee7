"""What servers ask of users: how it is shown, and how answers are read."""

from typing import Any

import pytest
from support.cases.transition_cases import working
from support.stage.make import NOON, RUN

from backburner.core import transitions
from backburner.core.connections import input_question
from backburner.core.connections.input_question import (
    ACCEPT,
    ANSWERED,
    DECLINE,
    DECLINED,
    read_answer,
    summarize_answer,
)
from backburner.core.connections.input_request import (
    InputAction,
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
)
from backburner.core.errors import BadAnswer
from backburner.core.ids import CallId
from backburner.core.question import (
    CONSENT,
    Purpose,
    Question,
    QuestionType,
    match_chat_message,
)
from backburner.core.run import RunKind
from backburner.core.tool_policy import Tool, ToolCall, call_digest

SEND = ToolCall(Tool(server="mail", name="send", definition="d"), {"to": "Ann"})
COLOURS = (InputOption("r", "Red"), InputOption("g", "Green"))


def ask(*fields: InputField, url: str = "") -> Question:
    request = InputRequest(key="one", message="Well?\nSay it.", fields=fields, url=url)
    return input_question.input_question(
        InputNeeded(requests=(request,)),
        SEND,
        CallId("t_call"),
        server="Mail (mail.example)",
        run_id=RUN,
        kind=RunKind.BACKGROUND,
        now=NOON,
    )


def field(kind: InputKind = InputKind.TEXT, **more: Any) -> InputField:
    return InputField(**{"name": "colour", "kind": kind, "required": True, **more})


def values(question: Question, text: str) -> object:
    return read_answer(question, text).answers["one"].values


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
        (field(default="blue"), "", "blue"),
    ],
)
def test_an_answer_is_read_as_the_server_wants_it(
    asked: InputField, text: str, value: object
) -> None:
    assert values(ask(asked), text) == {"colour": value}


@pytest.mark.parametrize(
    ("asked", "text", "told"),
    [
        (field(), "", "colour is missing"),
        (field(InputKind.INTEGER), "three", "takes a number"),
        (field(InputKind.SWITCH), "perhaps", "takes yes or no"),
        (field(InputKind.CHOICE, options=COLOURS), "blue", "'blue' is not one of the options"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused(asked: InputField, text: str, told: str) -> None:
    with pytest.raises(BadAnswer, match=told):
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


def test_all_of_what_a_server_says_is_shown() -> None:
    question = ask(*(field(name=f"n{n}", description=f"{n}" * 300) for n in range(30)))

    assert all(f"{n}" * 300 in question.prompt for n in range(30))
    assert question.prompt.endswith(
        "Your answer goes to Mail (mail.example) only; the agent does not see it."
    )


def test_several_values_have_a_line_each() -> None:
    question = ask(
        field(),
        field(InputKind.INTEGER, name="Count", required=False),
        field(InputKind.CHOICE, name="pick", options=COLOURS, required=False),
    )
    assert "- Count (optional)" in question.prompt
    assert "- pick [Red | Green] (optional)" in question.prompt
    assert "Answer with a line for each" in question.prompt

    assert values(question, "colour: a: b\n\ncount: 3") == {"colour": "a: b", "Count": 3}
    with pytest.raises(BadAnswer, match="names none of the values") as refused:
        read_answer(question, "red")
    assert refused.value.hint == "Write a line for each: colour: …, Count: …, pick: …."
    with pytest.raises(BadAnswer, match="names none"):
        read_answer(question, "count")


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
