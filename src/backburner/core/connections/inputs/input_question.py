"""A server's request for input as a question to its user, and the answer as the server gets it.

The answer goes to that server and nowhere else: the question keeps only that it was answered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from backburner.core.connections.inputs.input_field import (
    check_value,
    describe_field,
    read_value,
    show_default,
)
from backburner.core.connections.inputs.input_request import (
    InputAction,
    InputAnswer,
    InputAnswers,
    InputField,
    InputKind,
    InputNeeded,
    InputOption,
    InputRequest,
    InputValue,
    InputValues,
)
from backburner.core.errors import BadAnswer
from backburner.core.ids import CallId, QuestionId, RunId, derive_question_id
from backburner.core.question import (
    ACCEPT,
    DECLINE,
    FIRST_REMINDER,
    MAX_ANSWER_CHARS,
    MAX_OPTIONS,
    MAX_PROMPT_CHARS,
    Purpose,
    Question,
    QuestionType,
    are_distinct,
    list_options,
    match_answer,
)
from backburner.core.run import RunKind
from backburner.core.tool_policy import ToolCall, approval_binding, show_tool
from backburner.core.validation import check_text

#: What is kept of an answer.
ANSWERED, DECLINED = "answered", "declined"
_A_LINE_FOR_EACH = f"Answer with a line for each, such as `name: value`, or `{DECLINE}`."
_DEFAULTS = (
    " A value without a line is sent with the default that is shown here;"
    f" `{ACCEPT}` sends the defaults alone."
)


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
    options, prompt = _options(needed), _describe(needed, call, server)
    # The grant of the call was used when it was first made.
    binding = approval_binding([call])
    binding["calls"][0]["words"] = None
    return Question(
        id=input_question_id(call_id),
        purpose=Purpose.INPUT,
        type=QuestionType.CHOICE if options else QuestionType.INPUT,
        prompt=prompt,
        options=options,
        run_id=run_id,
        run_kind=kind,
        binds_to={
            **binding,
            "connection": call.tool.connection,
            "requests": _keep_shown(needed, prompt),
        },
        asked_at=now,
        remind_at=now + FIRST_REMINDER,
        outside=True,
    )


def read_answer(question: Question, given: str | InputValues) -> InputAnswers:
    """Read an answer for the server: words, or values by name. Raises `BadAnswer`."""
    requests = load_requests(question)
    fields = [field for one in requests for field in one.fields]
    if not isinstance(given, str):
        return _accept(requests, _check_values(fields, given))
    words = check_text("The answer", given, limit=MAX_ANSWER_CHARS).strip()
    if question.options:
        words = match_answer(question.type, question.options, words) or words
    if words.casefold() == DECLINE:
        answer = InputAnswer(action=InputAction.DECLINE)
        return InputAnswers(answers={request.key: answer for request in requests})
    said = _read_words(question, fields, words)
    named = {field.name: field for field in fields}
    return _accept(
        requests,
        {name: read_value(named[name], text) if text else None for name, text in said.items()},
    )


def load_requests(question: Question) -> Sequence[InputRequest]:
    """Load what a server asks for in a question."""
    return [_load(request) for request in question.binds_to.get("requests", ())]


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
    options = (*labels, DECLINE)
    is_choice = len(fields) == 1 and fields[0].kind is InputKind.CHOICE
    # Where an answer could mean two of them, it is read as it is written.
    return options if is_choice and are_distinct(options) and len(options) <= MAX_OPTIONS else ()


def _describe(needed: InputNeeded, call: ToolCall, server: str) -> str:
    during = show_tool(call.tool.server, call.tool.name)
    lines = [f"{server} asks you something during {during}:"]
    for request in needed.requests:
        lines += [f"> {line}" for line in request.message.splitlines()]
        if request.url:
            lines.append(f"It wants you to visit a page of {urlsplit(request.url).hostname}:")
            lines.append(f"  {request.url}")
        lines += [_describe_in_line(field) for field in request.fields]
    ending = f"\nYour answer goes to {server} only; the agent does not see it."
    if how := _how_to_answer(needed):
        ending = f"\n{how}{ending}"
    return "\n".join(lines)[: MAX_PROMPT_CHARS - len(ending)] + ending


def _how_to_answer(needed: InputNeeded) -> str:
    fields = [field for request in needed.requests for field in request.fields]
    if len(fields) > 1:
        has_defaults = any(show_default(field) is not None for field in fields)
        return f"{_A_LINE_FOR_EACH}{_DEFAULTS if has_defaults else ''}"
    return f"Answer, or `{DECLINE}`." if fields else ""


def _describe_in_line(field: InputField) -> str:
    return f"- {describe_field(field)}"


def _keep_shown(needed: InputNeeded, prompt: str) -> list[dict[str, Any]]:
    """Keep the requests without the defaults that the user was not shown: none of them is sent."""
    shown = set(prompt.splitlines())

    def keep(field: InputField) -> InputField:
        is_shown = show_default(field) is not None and _describe_in_line(field) in shown
        return field if is_shown else replace(field, default=None)

    return [
        asdict(replace(request, fields=tuple(map(keep, request.fields))))
        for request in needed.requests
    ]


def _read_words(question: Question, fields: Sequence[InputField], words: str) -> Mapping[str, str]:
    """Read what an answer gives, by the names of the values."""
    if not words:
        raise BadAnswer("The answer is empty.", hint=f"Answer, or `{DECLINE}`.")
    if len(fields) == 1:
        return {fields[0].name: words}
    if words.casefold() == ACCEPT:
        return {}
    if not fields:
        raise BadAnswer(
            f"{words[:60]!r} is not a valid answer.",
            hint=f"Answer with one of: {list_options(question.options)}.",
            options=question.options,
        )
    return _read_lines(fields, words)


def _read_lines(fields: Sequence[InputField], text: str) -> Mapping[str, str]:
    names = {field.name.casefold(): field.name for field in fields}
    given = dict[str, str]()
    for line in text.splitlines():
        known, value = _split_line(names, line)
        if line.strip() and known is None:
            raise BadAnswer(
                f"{line[:60]!r} names none of the values.",
                hint=f"Write a line for each: {', '.join(f'{one}: …' for one in names.values())}.",
            )
        if known is not None:
            given[known] = value.strip()
    return given


def _split_line(names: Mapping[str, str], line: str) -> tuple[str | None, str]:
    """Split a line after the name of a value; None: it has none. Names can have colons too."""
    parts = line.split(":", maxsplit=1 + max(name.count(":") for name in names))
    for end in range(len(parts) - 1, 0, -1):
        name = ":".join(parts[:end]).strip()
        known = names.get(name.casefold()) or names.get(name.strip('"').casefold())
        if known is not None:
            return known, ":".join(parts[end:])
    return None, ""


def _check_values(
    fields: Sequence[InputField], given: InputValues
) -> Mapping[str, InputValue | None]:
    """Check the values of a form. Empty ones are not sent, nor are their defaults."""
    named = {field.name: field for field in fields}
    if unknown := next((name for name in given if name not in named), None):
        names = ", ".join(named) or "none: answer it with `answer`"
        raise BadAnswer(f"{unknown[:60]!r} names none of the values.", hint=f"They are: {names}.")
    if sum(len(value) for value in given.values() if isinstance(value, str)) > MAX_ANSWER_CHARS:
        raise BadAnswer(
            "The answer is too long.", hint=f"Use at most {MAX_ANSWER_CHARS:,} characters."
        )
    return {
        name: None if value in ("", None) else check_value(named[name], value)
        for name, value in given.items()
    }


def _accept(
    requests: Sequence[InputRequest], given: Mapping[str, InputValue | None]
) -> InputAnswers:
    """Send the given values, and the defaults of those that are not named."""
    return InputAnswers(
        answers={
            request.key: InputAnswer(
                action=InputAction.ACCEPT,
                values={
                    field.name: value
                    for field in request.fields
                    if (value := _choose_value(field, given)) is not None
                },
            )
            for request in requests
        }
    )


def _choose_value(field: InputField, given: Mapping[str, InputValue | None]) -> InputValue | None:
    """Return the value to send; None: nothing."""
    value = given.get(field.name, field.default)
    if field.required and value is None:
        raise BadAnswer(f"{field.name} is missing.", hint="Give it, or decline.")
    return value


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
