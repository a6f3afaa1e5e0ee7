"""Requests of servers that a question can show whole, and those that it cannot."""

from collections.abc import Sequence

import pytest
from support.stage.make import NOON, RUN

from backburner.core.connections.inputs.input_checks import (
    ALIKE,
    MAX_ASKED_CHARS,
    TOO_LONG,
    check_askable,
)
from backburner.core.connections.inputs.input_question import input_question
from backburner.core.connections.inputs.input_request import (
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
)
from backburner.core.errors import BadRequest
from backburner.core.ids import CallId
from backburner.core.question import MAX_PROMPT_CHARS
from backburner.core.run import RunKind
from backburner.core.tool_policy import Tool, ToolCall

PAY = ToolCall(Tool(server="b" * 32, name="p" * 128, definition="d"), {})


def values(*fields: InputField, key: str = "one", message: str = "Which?") -> InputRequest:
    return InputRequest(key=key, message=message, fields=fields)


def visits(count: int, *, path: str = "", message: str = "Pay.") -> list[InputRequest]:
    return [
        InputRequest(key=f"{n}", message=message, url=f"https://evil.example/{n}{path}")
        for n in range(count)
    ]


def text(name: str, description: str = "") -> InputField:
    return InputField(name=name, description=description)


def choice(count: int, label: str, value: str) -> InputField:
    options = tuple(InputOption(f"{value}{n}", f"{label}{n}") for n in range(count))
    return InputField(name="to", kind=InputKind.CHOICES, options=options)


@pytest.mark.parametrize(
    "requests",
    [
        [values(text("a"), message="x" * MAX_ASKED_CHARS)],
        [values(text("a"), message="x\n" * (MAX_ASKED_CHARS // 4))],
        [values(*(text(f"f{n}", "y" * 300) for n in range(28)), text("close_all"))],
        [values(choice(200, "Somebody else ", "x"))],
        [values(choice(5, "x", "y" * 1_900))],
        visits(4, path="p" * 1_900),
        visits(5, message="z " * 950),
    ],
)
def test_what_does_not_fit_into_a_question_is_refused(requests: Sequence[InputRequest]) -> None:
    with pytest.raises(BadRequest, match=TOO_LONG):
        check_askable(requests)


@pytest.mark.parametrize(
    "requests",
    [
        [values(text("Account"), text("account"))],
        [values(text("a b"), text(" a  b"))],
        [values(text("account")), values(text("account"), key="two", message="Close which?")],
        [values(text(""))],
    ],
)
def test_values_that_cannot_be_told_apart_are_refused(requests: Sequence[InputRequest]) -> None:
    with pytest.raises(BadRequest, match=ALIKE):
        check_askable(requests)


@pytest.mark.parametrize(
    "requests",
    [
        [values(text("a", "y" * 1_900), message="x" * 2_000)],
        [values(text("a"), message="x\n" * 1_000)],
        [values(*(text(f"field{n}", "z" * 80) for n in range(30)))],
        [values(choice(150, "\u00e9", "x"))],
        visits(5, path="p" * 200, message="z " * 300),
        [*visits(2), values(text("a"))],
    ],
)
def test_what_fits_is_shown_whole(requests: Sequence[InputRequest]) -> None:
    check_askable(requests)
    prompt = input_question(
        InputNeeded(requests=tuple(requests)),
        PAY,
        CallId("t_call"),
        server=f"{'t' * 100} ({'h' * 253})",
        run_id=RUN,
        kind=RunKind.BACKGROUND,
        now=NOON,
    ).prompt

    assert len(prompt) <= MAX_PROMPT_CHARS
    for request in requests:
        assert prompt.count(request.url) >= 1
        assert request.message.split("\n")[-1] in prompt
        for field in request.fields:
            assert field.name in prompt
            assert field.description in prompt
            assert all(option.label in prompt for option in field.options)
