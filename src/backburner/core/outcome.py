"""The outcome of a background run: needs input, continue or complete. Schema and strict parser.

The input was written by a model that may have been prompt-injected, so an outcome that is not
entirely valid is rejected entirely.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn

from backburner.core import question
from backburner.core.conversation import MAX_STATE_BYTES, MAX_STEP_CHARS
from backburner.core.errors import BackburnerError, BadOutcome
from backburner.core.schedule.phrases import parse_duration
from backburner.core.validation import (
    MAX_MESSAGE_CHARS,
    canonical_json,
    check_json,
    check_object,
    check_text,
)

MAX_OUTCOME_BYTES = 512 * 1024
MAX_RESULT_BYTES = 64 * 1024
MIN_AGAIN_IN = timedelta(seconds=1)
MAX_AGAIN_IN = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsInput:
    """The work needs an answer from the user before it can continue."""

    message: str
    question: question.NewQuestion
    state_update: Mapping[str, Any] = field(default_factory=dict)
    next_step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """The work is not done; it continues at its next time."""

    message: str | None = None
    state_update: Mapping[str, Any] = field(default_factory=dict)
    next_step: str | None = None
    #: One-time work only: when to run again.
    again_in: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The work is done, or done for this time if it recurs."""

    #: None if recurring work has nothing to report.
    message: str | None = None
    #: Any JSON; `on_change` compares it with the previous result.
    result: Any = None
    state_update: Mapping[str, Any] = field(default_factory=dict)
    next_step: str | None = None
    #: Ends recurring work for good.
    final: bool = False


Outcome = NeedsInput | Continue | Complete

VERDICTS = ("needs_input", "continue", "complete")
_SHARED = frozenset({"message", "state_update", "next_step"})
_FIELDS = {
    "needs_input": _SHARED | {"question"},
    "continue": _SHARED | {"again_in"},
    "complete": _SHARED | {"result", "final"},
}
_ALL_FIELDS = frozenset(VERDICTS).union(*_FIELDS.values())
_QUESTION_FIELDS = frozenset({"type", "prompt", "options", "default", "expires_in"})

#: Flat on purpose: model APIs do not accept alternatives at the top level of a schema.
#: `parse_outcome` checks that exactly one verdict is true and which fields go with it.
OUTCOME_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "needs_input": {
            "type": "boolean",
            "description": "True if the user must answer a question before the work can continue.",
        },
        "continue": {
            "type": "boolean",
            "description": "True if the work is not done and should run again.",
        },
        "complete": {
            "type": "boolean",
            "description": "True if the work is done, or done for this time if it recurs.",
        },
        "message": {
            "type": "string",
            "description": "The message to the user. Required with needs_input. Omit it if "
            "recurring work has nothing new to report.",
        },
        "question": {
            "type": "object",
            "additionalProperties": False,
            "required": ["type", "prompt"],
            "description": "Only with needs_input.",
            "properties": {
                "type": {"type": "string", "enum": [kind.value for kind in question.QuestionType]},
                "prompt": {"type": "string"},
                "options": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Only with type choice: 2 to 25 different answers.",
                },
                "default": {
                    "type": "string",
                    "description": "The answer to assume if there is none after expires_in.",
                },
                "expires_in": {
                    "type": "string",
                    "description": "How long to wait for an answer, such as 12h. Requires default.",
                },
            },
        },
        "state_update": {
            "type": "object",
            "description": "Facts that the next run needs, merged by key into the data of this "
            "work.",
        },
        "next_step": {"type": "string", "description": "The progress of the work, in a phrase."},
        "again_in": {
            "type": "string",
            "description": "Only with continue, for one-time work: when to run again, such as 20m. "
            "At most 24h.",
        },
        "result": {
            "description": "Only with complete: the result as plain data, without times and "
            "wording. It is compared with the previous result to detect changes."
        },
        "final": {
            "type": "boolean",
            "description": "Only with complete: true ends recurring work for good.",
        },
    },
}


def summarize(outcome: Outcome) -> str | None:
    """Return the result of a run as text, or else its message."""
    if isinstance(outcome, Complete) and outcome.result is not None:
        return format_result(outcome.result) or outcome.message
    return outcome.message


def format_result(result: object) -> str:
    """Format a result as text: a string as it is, anything else as JSON."""
    return result if isinstance(result, str) else canonical_json(result)


def parse_outcome(reply: object) -> Outcome:
    """Parse the outcome of a run: JSON text, or the object an engine has decoded."""
    try:
        return _parse(_load(reply) if isinstance(reply, str) else reply)
    except BadOutcome:
        raise
    except BackburnerError as error:
        raise BadOutcome(str(error)) from None


def _parse(reply: object) -> Outcome:
    check_json("The outcome", reply, limit=MAX_OUTCOME_BYTES)
    fields = _drop_nulls("An outcome", check_object("The outcome", reply), _ALL_FIELDS)
    verdict = _verdict(fields)
    content = {name: value for name, value in fields.items() if name not in VERDICTS}
    _refuse_unknown(f"An outcome with {verdict}", content, _FIELDS[verdict])
    update = check_object("state_update", content.get("state_update", {}))
    check_json("state_update", update, limit=MAX_STATE_BYTES)
    step = (
        check_text("next_step", content.get("next_step", ""), limit=MAX_STEP_CHARS).strip() or None
    )
    message = _message(content)
    match verdict:
        case "needs_input":
            return _needs_input(content, message, update, step)
        case "continue":
            again_in = _duration("again_in", content.get("again_in"))
            return Continue(message=message, state_update=update, next_step=step, again_in=again_in)
        case _:
            result = content.get("result")
            check_json("result", result, limit=MAX_RESULT_BYTES)
            final = _flag("final", content.get("final", False))
            return Complete(
                message=message, result=result, state_update=update, next_step=step, final=final
            )


def _load(text: str) -> object:
    if len(text) > MAX_OUTCOME_BYTES:
        raise BadOutcome(f"The outcome is longer than {MAX_OUTCOME_BYTES:,} characters.")
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise BadOutcome(
            f"The outcome is not JSON ({error.msg}: character {error.pos}).",
            hint="Reply with one JSON object and nothing else.",
        ) from None
    except (ValueError, RecursionError):
        raise BadOutcome("The outcome has too many digits or brackets in a row.") from None


def _verdict(fields: Mapping[str, Any]) -> str:
    verdicts = [name for name in VERDICTS if _flag(name, fields.get(name, False))]
    if len(verdicts) != 1:
        names = " and ".join(verdicts) or "none"
        raise BadOutcome(
            f"Exactly one of {', '.join(VERDICTS)} must be true, not {names}.",
            hint="Choose one of them.",
        )
    return verdicts[0]


def _needs_input(
    content: Mapping[str, Any], message: str | None, update: Mapping[str, Any], step: str | None
) -> NeedsInput:
    if message is None:
        raise BadOutcome("An outcome with needs_input must have a message.")
    fields = _drop_nulls(
        "A question", check_object("question", content.get("question")), _QUESTION_FIELDS
    )
    kind = fields.get("type")
    if kind not in tuple(question.QuestionType):
        kinds = ", ".join(question.QuestionType)
        raise BadOutcome("The question has no valid type.", hint=f"Use one of: {kinds}.")
    options = fields.get("options", [])
    if not isinstance(options, list):
        raise BadOutcome("The options of a question must be a list of texts.")
    default = fields.get("default")
    if default is not None:
        check_text("default", default, limit=question.MAX_ANSWER_CHARS)
    checked = question.new_question(
        question.QuestionType(kind),
        check_text("prompt", fields.get("prompt"), limit=question.MAX_PROMPT_CHARS),
        tuple(options),
        default=default,
        expires_in=_expiry(fields.get("expires_in")),
    )
    return NeedsInput(message=message, question=checked, state_update=update, next_step=step)


def _message(content: Mapping[str, Any]) -> str | None:
    text = check_text("message", content.get("message", ""), limit=MAX_MESSAGE_CHARS)
    return text if text.strip() else None


def _duration(name: str, value: object) -> timedelta | None:
    if value is None:
        return None
    length = parse_duration(check_text(name, value, limit=100))
    if not MIN_AGAIN_IN <= length <= MAX_AGAIN_IN:
        raise BadOutcome(f"{name} must be between 1 second and 24 hours.")
    return length


def _expiry(value: object) -> timedelta | None:
    return None if value is None else parse_duration(check_text("expires_in", value, limit=100))


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadOutcome(f"{name} must be true or false.")
    return value


def _drop_nulls(
    label: str, content: Mapping[str, Any], allowed: frozenset[str]
) -> Mapping[str, Any]:
    """Drop fields that are null: engines that must fill in every field leave one out that way."""
    _refuse_unknown(label, content, allowed)
    return {name: value for name, value in content.items() if value is not None}


def _refuse_unknown(label: str, content: Mapping[str, Any], allowed: frozenset[str]) -> None:
    if unknown := sorted(content.keys() - allowed):
        names = ", ".join(repr(name[:40]) for name in unknown[:5])
        raise BadOutcome(
            f"{label} has no field {names}.", hint=f"Its fields are: {', '.join(sorted(allowed))}."
        )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise BadOutcome("The outcome has a duplicate key.", hint="Give each key once.")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise BadOutcome(f"The outcome has {name}, which is not JSON.")
