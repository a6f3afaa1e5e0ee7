"""Ten thousand broken outcomes: each is refused, or accepted as a second parser would."""

import copy
import json
import math
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cases.examples import examples
from support.requirements import requirement

from backburner.core.errors import BadOutcome
from backburner.core.outcome import (
    OUTCOME_SCHEMA,
    Complete,
    Continue,
    NeedsInput,
    Outcome,
    parse_outcome,
)
from backburner.core.question import NewQuestion

#: So many outcomes take long enough without being measured.
pytestmark = pytest.mark.unmeasured

Path = tuple[str | int, ...]

CHOICE = {"type": "choice", "prompt": "Which one?", "options": ["this", "that"]}
CONFIRMATION = {"type": "confirmation", "prompt": "Shall I?"}
INPUT = {"type": "input", "prompt": "Where?", "default": "here", "expires_in": "12h"}
VALID: tuple[dict[str, Any], ...] = (
    {"complete": True},
    {"complete": True, "message": "Done.", "result": {"open": [1, 2, {"id": None}]}},
    {"complete": True, "result": "green", "state_update": {"seen": ["a", 1.5, True]}},
    {"complete": True, "needs_input": False, "continue": False, "final": True, "question": None},
    {"continue": True},
    {"continue": True, "message": "Not yet.", "next_step": "waiting", "again_in": "20m"},
    {"continue": True, "state_update": {"page": {"number": 3}}, "message": "", "final": None},
    {"needs_input": True, "message": "Well?", "question": CHOICE},
    {"needs_input": True, "message": "Well?", "question": CONFIRMATION, "next_step": "asked"},
    {"needs_input": True, "message": "Well?", "question": INPUT, "state_update": {"a": "b"}},
)
TAKEN: dict[type, set[str]] = {
    NeedsInput: {"needs_input", "message", "question", "state_update", "next_step"},
    Continue: {"continue", "message", "state_update", "next_step", "again_in"},
    Complete: {"complete", "message", "result", "state_update", "next_step", "final"},
}
VERDICTS = {NeedsInput: "needs_input", Continue: "continue", Complete: "complete"}
LENGTHS = {
    "20m": timedelta(minutes=20),
    "12h": timedelta(hours=12),
    "1s": timedelta(seconds=1),
    "24h": timedelta(days=1),
    "25h": timedelta(hours=25),
}


def nested(depth: int) -> list[Any]:
    inner: list[Any] = []
    for _ in range(depth):
        inner = [inner]
    return inner


NOTHING = object()
#: What takes the place of something valid.
JUNK: tuple[object, ...] = (
    *(None, True, False, 0, 1, -1, 1.5, -0.0, 2**63 - 1, 2**63, 10**400, -(10**30)),
    *(math.nan, math.inf, -math.inf, 1e308),
    *("", " ", "yes", "true", "null", "choice", "input", "confirmation", "1s", "24h", "25h", "-5m"),
    *("\0", "\ud800", "a\udfffb", "\u202e", "🚀", "x" * 2_001, "x" * 8_001, "x" * 100_001),
    *([], {}, [None], ["a"], ["a", "a"], ["a", "A."], ["yes", "no"], ["a", ""], ["b", 2], [[]]),
    *(
        {"": ""},
        {"a": None},
        {"type": "input"},
        {"type": "input", "prompt": "?"},
        {"complete": True},
    ),
    *(["x"] * 26, [str(number) for number in range(25)], nested(29), nested(40), nested(10_000)),
    *(CHOICE, INPUT, {"a": "x" * 66_000}, {"\ud800": 1}, {"a\0": 1}),
    *(b"bytes", ("a", "b"), {1: 2}, {"a": {3}}, object(), timedelta(minutes=1)),
)
#: Names that something is given under besides.
NAMES = (
    *OUTCOME_SCHEMA["properties"],
    "Complete",
    "complete ",
    "type",
    "options",
    "",
    "\ud800",
    "x" * 5_000,
)


def paths(value: object, at: Path = ()) -> Iterator[Path]:
    yield at
    if len(at) > 5:
        return
    if isinstance(value, dict):
        for name, part in value.items():
            yield from paths(part, (*at, name))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from paths(part, (*at, number))


def put(said: Any, path: Path, junk: object) -> Any:
    """Copy an outcome with something else, or nothing, in one place."""
    if not path:
        return junk
    changed = copy.copy(said)
    if path[1:] or junk is not NOTHING:
        changed[path[0]] = put(said[path[0]], path[1:], junk)
    else:
        del changed[path[0]]
    return changed


def corpus() -> Iterator[object]:
    for said in VALID:
        for path in paths(said):
            yield from (put(said, path, junk) for junk in (NOTHING, *JUNK))
        for name in NAMES:
            yield from (said | {name: junk} for junk in (True, *JUNK[::5]))


def texts() -> Iterator[str]:
    """Write valid outcomes, but twice, in part, in quotes, or with too much in them."""
    for said in VALID:
        text = json.dumps(said)
        yield from (text * 2, f"{text} Done.", f"Here it is: {text}", f"```json\n{text}\n```")
        yield from (f"[{text}]", json.dumps(text), text.replace('"', "'"), text.upper())
        yield from (text[:length] for length in range(len(text)))
        for name in said:
            fields = json.dumps({name: said[name]})[1:-1]
            yield f"{{{fields}, {text[1:]}"
            yield f'{{"state_update": {{"a": {{{fields}, {fields}}}}}, {text[1:]}'
        for value in ("9" * 5_000, "[" * 10_000 + "]" * 10_000, "NaN", "-Infinity", "01", "'x'"):
            yield f'{{"state_update": {{"a": {value}}}, {text[1:]}'


def try_both_ways(said: object) -> int:
    """Try something as an object and, where it can be written at all, as text."""
    is_taken_whole_or_refused(said)
    try:
        text = json.dumps(said)
    except (TypeError, ValueError, RecursionError):
        return 1
    is_taken_whole_or_refused(text)
    return 2


def is_taken_whole_or_refused(said: object) -> None:
    try:
        read = parse_outcome(said)
    except BadOutcome as error:
        refused = str(error)
    else:
        return is_valid(read_strictly(said) if isinstance(said, str) else said, read)
    assert 10 < len(refused.encode()) < 1_000
    return None


def read_strictly(text: str) -> object:
    def without_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
        assert len({name for name, _ in pairs}) == len(pairs)
        return dict(pairs)

    return json.loads(text, object_pairs_hook=without_twins)


def is_valid(said: object, read: Outcome) -> None:
    """Say in other words than the parser's what was to be taken, and that it was."""
    assert isinstance(said, dict)
    assert is_plain(said)
    assert len(as_text(said).encode()) <= 512 * 1024
    given = {name: value for name, value in said.items() if value is not None}
    assert conforms(given, OUTCOME_SCHEMA)
    assert [name for name in VERDICTS.values() if given.pop(name, False)] == [VERDICTS[type(read)]]
    assert given.keys() <= TAKEN[type(read)]
    assert said.keys() <= set().union(*TAKEN.values())
    assert (read.message or "").strip() == given.get("message", "").strip()
    assert len(read.message or "") <= 100_000
    assert (read.next_step or "") == given.get("next_step", "").strip()
    assert len(read.next_step or "") <= 2_000
    assert as_text(read.state_update) == as_text(given.get("state_update", {}))
    assert len(as_text(read.state_update).encode()) <= 64 * 1024
    match read:
        case Complete(result=result, final=final):
            assert as_text(result) == as_text(given.get("result"))
            assert len(as_text(result).encode()) <= 64 * 1024
            assert final is given.get("final", False)
        case Continue(again_in=again_in):
            assert again_in == (LENGTHS[given["again_in"]] if "again_in" in given else None)
        case NeedsInput(message=message, question=question):
            assert message.strip()
            is_valid_question(given["question"], question)


def is_valid_question(said: dict[str, Any], read: NewQuestion) -> None:
    given = {name: value for name, value in said.items() if value is not None}
    assert conforms(given, OUTCOME_SCHEMA["properties"]["question"])
    assert said.keys() <= {"type", "prompt", "options", "default", "expires_in"}
    assert read.type.value == given["type"]
    assert read.prompt == given["prompt"]
    assert 0 < len(read.prompt.strip()) <= len(read.prompt) <= 8_000
    silent = ["yes", "no"] if read.type.value == "confirmation" else []
    assert list(read.options) == (given.get("options") or silent)
    assert len({option.strip().casefold() for option in read.options}) == len(read.options)
    assert (
        len(read.options)
        in {"choice": range(2, 26), "input": (0,), "confirmation": (2,)}[read.type.value]
    )
    assert read.default == given.get("default")
    assert read.expires_in == (LENGTHS[given["expires_in"]] if "expires_in" in given else None)
    assert (read.default is None) == (read.expires_in is None)


def conforms(value: object, schema: dict[str, Any]) -> bool:
    """Check the little of JSON Schema that ours uses."""
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool}
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        return False
    if isinstance(value, list) and "items" in schema:
        return all(conforms(part, schema["items"]) for part in value)
    if isinstance(value, dict) and "properties" in schema:
        return set(schema.get("required", ())) <= value.keys() <= schema["properties"].keys() and (
            all(
                part is None or conforms(part, schema["properties"][name])
                for name, part in value.items()
            )
        )
    return value in schema.get("enum", [value])


def is_plain(value: object, depth: int = 1) -> bool:
    if depth > 32:
        return False
    match value:
        case dict():
            return all(is_plain(name) and isinstance(name, str) for name in value) and all(
                is_plain(part, depth + 1) for part in value.values()
            )
        case list():
            return all(is_plain(part, depth + 1) for part in value)
        case str():
            return "\0" not in value and value == value.encode(errors="replace").decode()
        case bool() | None:
            return True
        case int():
            return abs(value) < 2**63
        case float():
            return math.isfinite(value)
    return False


def as_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=12,
)
snippets = st.sampled_from(
    (
        *("", '"', "{", "}", "[", "]", ",", ":", "\\", "\\ud800", "\0", "null", "true", "NaN"),
        *("1e999", '"complete": true,', '"continue": true,', "```", "\n", " ", "\ufeff", "'"),
    )
)


junk = st.sampled_from((NOTHING, *JUNK)) | json_values
names = st.sampled_from(NAMES)
valid = st.sampled_from(VALID)


@st.composite
def mutants(draw: st.DrawFn) -> Any:
    """Break a valid outcome in one to three places."""
    said: Any = draw(valid)
    for _ in range(draw(st.integers(1, 3))):
        if isinstance(said, dict) and draw(st.booleans()):
            said = said | {draw(names): draw(json_values)}
        path = draw(st.sampled_from(list(paths(said))))
        said = put(said, path, draw(junk))
    return said


@requirement("A-prompt-format")
def test_ten_thousand_broken_outcomes_are_refused_or_taken_whole() -> None:
    tried = sum(try_both_ways(said) for said in corpus())

    assert tried >= 10_000


@requirement("A-prompt-format")
def test_broken_texts_are_refused_or_taken_whole() -> None:
    for text in texts():
        is_taken_whole_or_refused(text)


@examples(250)
@given(mutants())
def test_an_outcome_broken_in_several_places_is_refused_or_taken_whole(said: object) -> None:
    try_both_ways(said)


@examples(200)
@given(json_values)
def test_any_json_is_refused_or_taken_whole(said: object) -> None:
    try_both_ways(said)


@examples(400)
@given(st.sampled_from(VALID), st.integers(0, 200), st.integers(0, 9), snippets)
def test_a_damaged_text_is_refused_or_taken_whole(
    said: dict[str, Any], at: int, cut: int, snippet: str
) -> None:
    text = json.dumps(said)

    is_taken_whole_or_refused(text[:at] + snippet + text[at + cut :])


@examples(300)
@given(st.text() | st.binary())
def test_any_text_or_bytes_are_refused_or_taken_whole(said: object) -> None:
    is_taken_whole_or_refused(said)
