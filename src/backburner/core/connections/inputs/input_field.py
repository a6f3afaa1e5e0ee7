"""One value that a server asks its user for: how it is shown, and how an answer to it is read.

The server has written its name, words, options and default. What of it stands in our part of the
line is a plain word or in quotes, so that nothing in it passes for ours.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

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
#: Of an answer that names options.
_MAX_PARTS = 1_000
#: Of what parts of an answer are together, among the options.
_MAX_LOOKUPS = 10_000
#: Of the options in a hint.
_MAX_HINT_CHARS = 1_000
_PLAIN_WORD = re.compile(r"[\w.,'&/+-]+(?: [\w.,'&/+-]+)*")
_KINDS = {
    InputKind.NUMBER: "a number",
    InputKind.INTEGER: "a whole number",
    InputKind.SWITCH: "yes or no",
    InputKind.CHOICES: "any of these, with commas between them",
}
_TAKES = {
    InputKind.TEXT: "a text",
    InputKind.NUMBER: "a number",
    InputKind.INTEGER: "a whole number",
    InputKind.SWITCH: "true or false",
    InputKind.CHOICE: "one of its options",
    InputKind.CHOICES: "a list of its options",
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
            return _read_option(field, text, _KnownOptions(field))
        case _:
            return _read_options(field, text)


def check_value(field: InputField, value: InputValue) -> InputValue:
    """Check a value that is an answer itself, not its words. Raises `BadAnswer`."""
    match field.kind, value:
        case InputKind.TEXT, str():
            return value
        case InputKind.SWITCH, bool():
            return value
        case ((InputKind.INTEGER | InputKind.NUMBER), (int() | float())) if _is_number(
            field, value
        ):
            return value
        case InputKind.CHOICE, str():
            return _check_option(field, value)
        case InputKind.CHOICES, (list() | tuple()):
            return tuple(dict.fromkeys(_check_option(field, one) for one in value))
        case _:
            raise BadAnswer(f"{field.name} takes {_TAKES[field.kind]}.", hint="Give it as JSON.")


def _is_number(field: InputField, value: InputValue) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, int):
        return abs(value) <= MAX_INTEGER
    return field.kind is InputKind.NUMBER and math.isfinite(value)


def _check_option(field: InputField, value: str) -> str:
    if all(option.value != value for option in field.options):
        raise BadAnswer(
            f"{value[:60]!r} is not one of the options of {field.name}.",
            hint=f"One of: {_list_for_hint(field)}.",
        )
    return value


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
    return next((_show_option(field, one) for one in field.options if one.value == value), None)


def _list_options(field: InputField) -> str:
    return " | ".join(_show_option(field, option) for option in field.options)


def _show_option(field: InputField, option: InputOption) -> str:
    """Show the label of an option, and what it sends where that is not the same."""
    # Where commas part the options that are chosen, one with a comma looks like two.
    is_quoted = field.kind is InputKind.CHOICES and "," in option.label
    label = _quote(option.label) if is_quoted else _show_word(option.label)
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


def _read_options(field: InputField, text: str) -> tuple[str, ...]:
    """Read options with commas between them. Options can have commas too, or be in quotes.

    What can be read in two ways is refused: it would send what nobody has chosen.
    """
    parts = text.split(",")
    if len(parts) > _MAX_PARTS:
        raise BadAnswer(
            f"{field.name} has fewer options than that.", hint="Name each of them once."
        )
    known = _KnownOptions(field)
    names = (name for one in field.options for name in (one.label, one.value))
    #: Of what can be an option: how many parts it has.
    lengths = sorted({1, *(1 + name.count(",") for name in names)})
    if len(parts) * len(lengths) > _MAX_LOOKUPS:
        raise BadAnswer(f"{field.name} is given too many options.", hint="Name fewer of them.")
    #: Of the parts from each on: two ways to read them at most.
    ways: list[list[tuple[str, ...]]] = [[] for _ in parts] + [[()]]
    for start in reversed(range(len(parts))):
        found = dict.fromkeys(ways[start + 1]) if not parts[start].strip() else {}
        for end in (start + length for length in lengths):
            option = known.find(",".join(parts[start:end])) if end <= len(parts) else None
            if option is not None:
                found |= dict.fromkeys((option, *others) for others in ways[end])
        ways[start] = list(found)[:2]
    if not ways[0]:
        # The first that is none.
        return tuple(_read_option(field, part, known) for part in parts if part.strip())
    if len(ways[0]) > 1:
        raise BadAnswer(
            f"{text.strip()[:60]!r} can be read in two ways.",
            hint=f"Put options into quotes: {_list_for_hint(field)}.",
        )
    return ways[0][0]


def _read_option(field: InputField, text: str, known: "_KnownOptions") -> str:
    found = known.find(text)
    if found is None:
        raise BadAnswer(
            f"{text.strip()[:60]!r} is not one of the options.",
            hint=f"One of: {_list_for_hint(field)}.",
        )
    return found


class _KnownOptions:
    """Finds options by their label, which is what was shown first, else by what they send."""

    def __init__(self, field: InputField) -> None:
        self._labelled = _index((one.label, one.value) for one in field.options)
        self._sent = _index((one.value, one.value) for one in field.options)

    def find(self, text: str) -> str | None:
        for named in dict.fromkeys((text, _unquote(text))):
            for index in (self._labelled, self._sent):
                found = index.get(_to_key(named), ())
                if len(found) == 1:
                    return next(iter(found))
        return None


def _index(named: Iterable[tuple[str, str]]) -> Mapping[str, AbstractSet[str]]:
    """Collect by their names what options send."""
    index = dict[str, set[str]]()
    for name, value in named:
        index.setdefault(_to_key(name), set()).add(value)
    return index


def _list_for_hint(field: InputField) -> str:
    options = _list_options(field)
    return options if len(options) <= _MAX_HINT_CHARS else f"{options[:_MAX_HINT_CHARS]}…"


def _unquote(text: str) -> str:
    """Read what stands in quotes, as it is shown; without quotes, the text itself."""
    try:
        inner = json.loads(text) if text.strip().startswith('"') else text
    except ValueError:
        return text
    return inner if isinstance(inner, str) else text


def _is_same(one: str, other: str) -> bool:
    return _to_key(one) == _to_key(other)


def _to_key(text: str) -> str:
    return text.strip().casefold()
