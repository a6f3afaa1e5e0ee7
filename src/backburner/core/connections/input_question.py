"""A server's request for input as a question to its user, and the answer as the server gets it.

The answer goes to that server and nowhere else: the question keeps only that it was answered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from backburner.core.connections.input_request import (
    InputAction,
    InputAnswer,
    InputAnswers,
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
    InputValue,
)
from backburner.core.errors import BadAnswer
from backburner.core.ids import CallId, QuestionId, RunId, derive_question_id
from backburner.core.question import (
    FIRST_REMINDER,
    Purpose,
    Question,
    QuestionType,
)
from backburner.core.run import RunKind
from backburner.core.tool_policy import ToolCall, approval_binding

ACCEPT, DECLINE = "accept", "decline"
#: What is kept of an answer.
ANSWERED, DECLINED = "answered", "declined"
_YES, _NO = ("yes", "y", "true", "on"), ("no", "n", "false", "off")


def input_question_id(call_id: CallId) -> QuestionId:
    return derive_question_id(call_id, "input")


def input_question(
    needed: InputNeeded,
    call: ToolCall,
    call_id: CallId,
    *,
    server: str,
    run_id: RunId,
    kind: RunKind,
    now: datetime,
) -> Question:
    """Show all of what a server asks for, in its words, and who it is.

    `check_askable` has refused what is too long for a question.
    """
    options = _options(needed)
    # The grant of the call was used when it was first made.
    binding = approval_binding([call])
    binding["calls"][0]["words"] = None
    return Question(
        id=input_question_id(call_id),
        purpose=Purpose.INPUT,
        type=QuestionType.CHOICE if options else QuestionType.INPUT,
        prompt=_describe(needed, call, server),
        options=options,
        run_id=run_id,
        run_kind=kind,
        binds_to={**binding, "requests": [asdict(request) for request in needed.requests]},
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        outside=True,
    )


def read_answer(question: Question, text: str) -> InputAnswers:
    """Read an answer for the server. Raises `BadAnswer` if it is not what was asked for."""
    requests = [_load(request) for request in question.binds_to["requests"]]
    words = text.strip()
    if words.casefold() == DECLINE:
        answer = InputAnswer(action=InputAction.DECLINE)
        return InputAnswers(answers={request.key: answer for request in requests})
    fields = [field for request in requests for field in request.fields]
    given = _read_lines(fields, words) if len(fields) > 1 else {}
    if len(fields) == 1 and words:
        given = {fields[0].name: words}
    return InputAnswers(
        answers={
            request.key: InputAnswer(
                action=InputAction.ACCEPT,
                values={
                    field.name: value
                    for field in request.fields
                    if (value := _read_value(field, given.get(field.name, ""))) is not None
                },
            )
            for request in requests
        }
    )


def summarize_answer(answers: InputAnswers) -> str:
    """Say whether it was answered, without the answer."""
    declined = any(one.action is not InputAction.ACCEPT for one in answers.answers.values())
    return DECLINED if declined else ANSWERED


def _options(needed: InputNeeded) -> tuple[str, ...]:
    """List the answers of a request that has some; empty: any text."""
    fields = [field for request in needed.requests for field in request.fields]
    if not fields:
        return (ACCEPT, DECLINE)
    if len(fields) == 1 and fields[0].kind is InputKind.SWITCH:
        return ("yes", "no", DECLINE)
    labels = [option.label for option in fields[0].options]
    plain = {label.strip().casefold() for label in labels} | {DECLINE}
    is_choice = len(fields) == 1 and fields[0].kind is InputKind.CHOICE
    return (*labels, DECLINE) if is_choice and len(plain) == len(labels) + 1 <= 25 else ()


def _describe(needed: InputNeeded, call: ToolCall, server: str) -> str:
    lines = [f"{server} asks you something during {call.tool.server}/{call.tool.name}:"]
    for request in needed.requests:
        lines += [f"> {line}" for line in request.message.splitlines()]
        if request.url:
            lines.append(f"It wants you to visit a page of {urlsplit(request.url).hostname}:")
            lines.append(f"  {request.url}")
        lines += [f"- {_describe_field(field)}" for field in request.fields]
    count = sum(len(request.fields) for request in needed.requests)
    if count > 1:
        lines.append("Answer with a line for each, such as `name: value`; or decline.")
    elif count:
        lines.append(f"Answer, or `{DECLINE}`.")
    lines.append(f"Your answer goes to {server} only; the agent does not see it.")
    return "\n".join(lines)


def _describe_field(field: InputField) -> str:
    parts = [field.name, field.title, field.description]
    about = ": ".join(dict.fromkeys(part for part in parts if part))
    values = " | ".join(option.label for option in field.options)
    needed = "" if field.required else " (optional)"
    # In one line: another could pass for one of ours.
    return " ".join(f"{about}{f' [{values}]' if values else ''}{needed}".split())


def _read_lines(fields: Sequence[InputField], text: str) -> Mapping[str, str]:
    names = {field.name.casefold(): field.name for field in fields}
    given = dict[str, str]()
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        known = names.get(name.strip().casefold())
        if line.strip() and (known is None or not colon):
            raise BadAnswer(
                f"{line[:60]!r} names none of the values.",
                hint=f"Write a line for each: {', '.join(f'{one}: …' for one in names.values())}.",
            )
        if known is not None:
            given[known] = value.strip()
    return given


def _read_value(field: InputField, text: str) -> InputValue | None:
    if not text:
        if field.required and field.default is None:
            raise BadAnswer(f"{field.name} is missing.", hint="Give it, or decline.")
        return field.default
    match field.kind:
        case InputKind.TEXT:
            return text
        case InputKind.NUMBER | InputKind.INTEGER:
            return _read_number(field, text)
        case InputKind.SWITCH:
            plain = text.casefold()
            if plain not in (*_YES, *_NO):
                raise BadAnswer(f"{field.name} takes yes or no.", hint="Answer yes or no.")
            return plain in _YES
        case InputKind.CHOICE:
            return _read_option(field, text)
        case _:
            return tuple(_read_option(field, part) for part in text.split(",") if part.strip())


def _read_number(field: InputField, text: str) -> int | float:
    try:
        return int(text) if field.kind is InputKind.INTEGER else float(text)
    except ValueError:
        raise BadAnswer(f"{field.name} takes a number.", hint="Answer with digits.") from None


def _read_option(field: InputField, text: str) -> str:
    plain = text.strip().casefold()
    for option in field.options:
        if plain in (option.label.strip().casefold(), option.value.strip().casefold()):
            return option.value
    labels = ", ".join(option.label for option in field.options)
    raise BadAnswer(f"{text.strip()[:60]!r} is not one of the options.", hint=f"One of: {labels}.")


def _load(request: Mapping[str, Any]) -> InputRequest:
    fields = tuple(
        InputField(
            **{
                **field,
                "kind": InputKind(field["kind"]),
                "options": tuple(InputOption(**option) for option in field["options"]),
            }
        )
        for field in request["fields"]
    )
    return InputRequest(
        key=request["key"], message=request["message"], fields=fields, url=request["url"]
    )
