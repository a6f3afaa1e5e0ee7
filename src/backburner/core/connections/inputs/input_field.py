"""One value that a server asks its user for: how it is shown, and how an answer to it is read.

The server has written its name, words, options and default. What of it stands in our part of the
line is a plain word or in quotes, so that nothing in it passes for ours.
"""

import json
import math
import re

from backburner.core.connections.inputs.input_request import (
    InputField,
    InputKind,
    InputOption,
    InputValue,
)
from backburner.core.errors import BadAnswer
from backburner.core.validation import MAX_INTEGER, escape_hidden

#: A longer default is not shown, and so it is not sent.
MAX_DEFAULT_CHARS = 200
#: Of the options in a hint.
_MAX_HINT_CHARS = 1_000
_PLAIN_WORD = re.compile(r"[\w.,'&/+-]+(?: [\w.,'&/+-]+)*")
_KINDS = {
    InputKind.NUMBER: "a number",
    InputKind.INTEGER: "a whole number",
    InputKind.SWITCH: "yes or no",
    InputKind.CHOICES: "any of these, with commas between them",
}
_FORMATS = {
    "email": "an email address",
    "uri": "a web address",
    "date": "a date",
    "date-time": "a date and time",
}
_YES, _NO = ("yes", "y", "true", "on"), ("no", "n", "false", "off")


def describe_field(field: InputField) -> str:
    """Describe a value in one line, with the default that is sent if it is left out."""
    default = show_default(field)
    marks = [
        _FORMATS.get(field.format, "") or _KINDS.get(field.kind, ""),
        "" if field.required else "optional",
        "" if default is None else f"default: {default}",
    ]
    marked = "; ".join(filter(None, marks))
    options = _list_options(field)
    words = ": ".join(
        dict.fromkeys(filter(None, (_one_line(field.title), _one_line(field.description))))
    )
    return (
        _show_word(field.name)
        + (f" ({marked})" if marked else "")
        + (f" [{options}]" if options else "")
        + (f": {words}" if words else "")
    )


def show_default(field: InputField) -> str | None:
    """Show the whole default of a value; None: there is none, or none that can be shown."""
    shown = _show_value(field, field.default)
    return shown if shown is not None and len(shown) <= MAX_DEFAULT_CHARS else None


def read_value(field: InputField, text: str) -> InputValue:
    """Read the answer for a value. Raises `BadAnswer`."""
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


def _show_value(field: InputField, value: InputValue | None) -> str | None:
    match field.kind, value:
        case InputKind.SWITCH, bool():
            return "yes" if value else "no"
        case ((InputKind.INTEGER | InputKind.NUMBER), bool()):
            return None
        case ((InputKind.INTEGER | InputKind.NUMBER), int()):
            return str(value) if abs(value) <= MAX_INTEGER else None
        case InputKind.NUMBER, float():
            return str(value) if math.isfinite(value) else None
        case InputKind.TEXT, str():
            return _quote(value)
        case InputKind.CHOICE, str():
            return _show_chosen(field, value)
        case InputKind.CHOICES, (list() | tuple()):
            shown = [_show_chosen(field, each) for each in value]
            return None if None in shown else ", ".join(map(str, shown)) or "none of them"
        case _:
            return None


def _show_chosen(field: InputField, value: str) -> str | None:
    return next((_show_option(one) for one in field.options if one.value == value), None)


def _list_options(field: InputField) -> str:
    return " | ".join(_show_option(option) for option in field.options)


def _show_option(option: InputOption) -> str:
    """Show the label of an option, and what it sends where that is not the same."""
    label = _show_word(option.label)
    return (
        label if _is_same(option.label, option.value) else f"{label} (sends {_quote(option.value)})"
    )


def _show_word(text: str) -> str:
    return text if _PLAIN_WORD.fullmatch(text) else _quote(text)


def _quote(text: str) -> str:
    return escape_hidden(json.dumps(text, ensure_ascii=False))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _read_number(field: InputField, text: str) -> int | float:
    try:
        number = int(text) if field.kind is InputKind.INTEGER else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise BadAnswer(f"{field.name} takes a number.", hint="Answer with digits.")
    return number


def _read_option(field: InputField, text: str) -> str:
    """Read an option by its label, which is what was shown first, else by what it sends."""
    labelled = {one.value for one in field.options if _is_same(one.label, text)}
    named = {one.value for one in field.options if _is_same(one.value, text)}
    for found in (labelled, named):
        if len(found) == 1:
            return found.pop()
    options = _list_options(field)
    if len(options) > _MAX_HINT_CHARS:
        options = f"{options[:_MAX_HINT_CHARS]}…"
    raise BadAnswer(f"{text.strip()[:60]!r} is not one of the options.", hint=f"One of: {options}.")


def _is_same(one: str, other: str) -> bool:
    return one.strip().casefold() == other.strip().casefold()
