"""How a background run ends: it needs input, goes on, or is complete. Schema and strict parser.

A model wrote what is parsed here, perhaps under somebody else's influence: what is not wholly
valid is refused as a whole.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NoReturn

from backburner.core import question
from backburner.core.conversation import MAX_MESSAGE_CHARS, MAX_STATE_BYTES, MAX_STEP_CHARS
from backburner.core.errors import BackburnerError, BadOutcome
from backburner.core.schedule.phrases import parse_duration
from backburner.core.validation import check_json, check_object, check_text

MAX_OUTCOME_BYTES = 512 * 1024
MAX_RESULT_BYTES = 64 * 1024
MIN_AGAIN_IN = timedelta(seconds=1)
MAX_AGAIN_IN = timedelta(hours=24)


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsInput:
    """The user has to say something before the work can go on."""

    message: str
    question: question.NewQuestion
    state_update: Mapping[str, Any] = field(default_factory=dict)
    next_step: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Continue:
    """The work is not done; it goes on at its next time."""

    message: str | None = None
    state_update: Mapping[str, Any] = field(default_factory=dict)
    next_step: str | None = None
    #: When one-time work wants to run again.
    again_in: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Complete:
    """The work is done: all of it, or what there was to do this time."""

    #: None where recurring work has nothing to report.
    message: str | None = None
    #: What `on_change` compares; any JSON.
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

#: Flat on purpose: model APIs do not take alternatives at the top of a schema. That exactly one
#: verdict is true, and which fields go with it, is for `parse_outcome` to insist on.
OUTCOME_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "needs_input": {
            "type": "boolean",
            "description": "True if the user must answer a question before the work can go on.",
        },
        "continue": {
            "type": "boolean",
            "description": "True if the work is not done and should run again.",
        },
        "complete": {
            "type": "boolean",
            "description": "True if the work, or this occasion of recurring work, is done.",
        },
        "message": {
            "type": "string",
            "description": "What to tell the user. Required with needs_input. Leave it out when "
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
                    "description": "What silence counts as, once expires_in has passed.",
                },
                "expires_in": {
                    "type": "string",
                    "description": "How long to wait for an answer, such as 12h; with default.",
                },
            },
        },
        "state_update": {
            "type": "object",
            "description": "Facts to remember for the next run, merged by name into the data "
            "of this work.",
        },
        "next_step": {"type": "string", "description": "Where the work stands now, in a phrase."},
        "again_in": {
            "type": "string",
            "description": "Only with continue, for one-time work: when to run again, such as 20m. "
            "At most 24h.",
        },
        "result": {
            "description": "Only with complete: the bare finding, compared with the last one to "
            "see whether anything changed. No times, no wording."
        },
        "final": {
            "type": "boolean",
            "description": "Only with complete: true ends recurring work for good.",
        },
    },
}


def parse_outcome(reply: object) -> Outcome:
    """Read what an agent ended its run with: JSON text, or the object an engine made of it."""
    try:
        return _parse(_load(reply) if isinstance(reply, str) else reply)
    except BadOutcome:
        raise
    except BackburnerError as error:
        raise BadOutcome(str(error)) from None


def _parse(reply: object) -> Outcome:
    check_json("The outcome", reply, limit=MAX_OUTCOME_BYTES)
    said = _present("An outcome", check_object("The outcome", reply), _ALL_FIELDS)
    verdict = _verdict(said)
    given = {name: value for name, value in said.items() if name not in VERDICTS}
    _refuse_others(f"An outcome with {verdict}", given, _FIELDS[verdict])
    update = check_object("state_update", given.get("state_update", {}))
    check_json("state_update", update, limit=MAX_STATE_BYTES)
    step = check_text("next_step", given.get("next_step", ""), limit=MAX_STEP_CHARS).strip() or None
    message = _message(given)
    match verdict:
        case "needs_input":
            return _needs_input(given, message, update, step)
        case "continue":
            again_in = _duration("again_in", given.get("again_in"))
            return Continue(message=message, state_update=update, next_step=step, again_in=again_in)
        case _:
            result = given.get("result")
            check_json("result", result, limit=MAX_RESULT_BYTES)
            final = _flag("final", given.get("final", False))
            return Complete(
                message=message, result=result, state_update=update, next_step=step, final=final
            )


def _load(text: str) -> object:
    if len(text) > MAX_OUTCOME_BYTES:
        raise BadOutcome(f"The outcome is longer than {MAX_OUTCOME_BYTES:,} characters.")
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_twins)
    except json.JSONDecodeError as error:
        raise BadOutcome(
            f"The outcome is not JSON ({error.msg}: character {error.pos}).",
            hint="Answer with one JSON object and nothing else.",
        ) from None
    except (ValueError, RecursionError):
        raise BadOutcome("The outcome has far too many digits or brackets in a row.") from None


def _verdict(said: Mapping[str, Any]) -> str:
    chosen = [name for name in VERDICTS if _flag(name, said.get(name, False))]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none"
        raise BadOutcome(
            f"Exactly one of {', '.join(VERDICTS)} must be true; here it is {found}.",
            hint="Decide for one of them.",
        )
    return chosen[0]


def _needs_input(
    given: Mapping[str, Any], message: str | None, update: Mapping[str, Any], step: str | None
) -> NeedsInput:
    if message is None:
        raise BadOutcome("An outcome with needs_input has to have a message.")
    asked = _present(
        "A question", check_object("question", given.get("question")), _QUESTION_FIELDS
    )
    kind = asked.get("type")
    if kind not in tuple(question.QuestionType):
        kinds = ", ".join(question.QuestionType)
        raise BadOutcome("The question has no valid type.", hint=f"Use one of: {kinds}.")
    options = asked.get("options", [])
    if not isinstance(options, list):
        raise BadOutcome("The options of a question must be a list of texts.")
    default = asked.get("default")
    if default is not None:
        check_text("default", default, limit=question.MAX_ANSWER_CHARS)
    drafted = question.new_question(
        question.QuestionType(kind),
        check_text("prompt", asked.get("prompt"), limit=question.MAX_PROMPT_CHARS),
        tuple(options),
        default=default,
        expires_in=_expiry(asked.get("expires_in")),
    )
    return NeedsInput(message=message, question=drafted, state_update=update, next_step=step)


def _message(given: Mapping[str, Any]) -> str | None:
    text = check_text("message", given.get("message", ""), limit=MAX_MESSAGE_CHARS)
    return text if text.strip() else None


def _duration(name: str, value: object) -> timedelta | None:
    if value is None:
        return None
    length = parse_duration(check_text(name, value, limit=100))
    if not MIN_AGAIN_IN <= length <= MAX_AGAIN_IN:
        raise BadOutcome(f"{name} must be between one second and 24 hours.")
    return length


def _expiry(value: object) -> timedelta | None:
    return None if value is None else parse_duration(check_text("expires_in", value, limit=100))


def _flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise BadOutcome(f"{name} must be true or false.")
    return value


def _present(what: str, given: Mapping[str, Any], known: frozenset[str]) -> Mapping[str, Any]:
    """Leave out what is null: engines that must fill in every field say "nothing" that way."""
    _refuse_others(what, given, known)
    return {name: value for name, value in given.items() if value is not None}


def _refuse_others(what: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    if others := sorted(given.keys() - known):
        named = ", ".join(repr(name[:40]) for name in others[:5])
        raise BadOutcome(f"{what} has no {named}.", hint=f"It takes: {', '.join(sorted(known))}.")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadOutcome("The outcome has a name that stands twice.", hint="Give each name once.")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise BadOutcome(f"The outcome has {name}, which is not JSON.")
