"""Schemas of tools as models are shown them, and the arguments that models give for these."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from support.cases.schemas import tool_schemas
from support.model_api.strict_schemas import about_schema

from backburner.core.connections.shown_schema import show

OBJECT = {"type": "object"}
TEXT = {"type": "string"}
NUMBER = {"type": "number"}
NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TOOLS = Path(__file__).parents[2] / "support" / "cases" / "all_tools.json"


def shown(**schema: Any) -> Any:
    return show(OBJECT | schema).parameters


def shown_argument(schema: object, **root: Any) -> Any:
    return shown(properties={"a": schema}, **root)["properties"]["a"]


def test_our_own_tools_are_shown_as_they_are() -> None:
    for tool in json.loads(TOOLS.read_text())["tools"]:
        parameters = tool["parameters"]
        assert json.dumps(show(parameters).parameters) == json.dumps(parameters)


@given(tool_schemas())
def test_no_model_api_refuses_what_is_shown(schema: dict[str, Any]) -> None:
    found = show(schema)

    assert about_schema(found.parameters, "messages") is None
    assert about_schema(found.parameters, "completions") is None
    assert found.names.keys() <= found.parameters["properties"].keys()


def test_a_schema_that_is_not_valid_allows_everything() -> None:
    assert shown(properties=["x"]) == NOTHING


def test_names_of_arguments_that_are_refused_are_replaced_and_restored() -> None:
    names = ["$filter", "filter", "page size", "page_size", "顧客", "名前", "x" * 65, "ok.-_9"]
    properties = dict.fromkeys(names, TEXT) | {"@": True, "!": False, "#": {"title": "Number"}}

    found = show(OBJECT | {"properties": properties, "required": ["$filter", "filter", "none"]})

    assert list(found.parameters["properties"]) == [
        *["filter_2", "filter", "page_size_2", "page_size", "argument", "argument_2", "x" * 64],
        *["ok.-_9", "argument_3", "argument_4", "argument_5"],
    ]
    assert found.parameters["required"] == ["filter_2", "filter", "none"]
    given = {name: number for number, name in enumerate(found.parameters["properties"])}
    assert list(found.restore(given).items()) == [(key, n) for n, key in enumerate(properties)]
    assert found.restore({"$filter": 1, "other": 2}) == {"$filter": 1, "other": 2}


def test_the_name_that_the_server_knows_is_told() -> None:
    found = shown(properties={"$a": TEXT | {"description": "A word."}, "$b": TEXT, "$c": True})

    about = [one["description"] for one in found["properties"].values()]
    assert about == ["$a: A word.", "$b", "$c"]


def test_names_inside_of_arguments_stay() -> None:
    inner = OBJECT | {"properties": {"$filter": TEXT}, "required": ["$filter"]}

    assert shown_argument(inner) == inner


def test_a_reference_to_an_argument_finds_it_under_its_new_name() -> None:
    to_it = {"$ref": "#/properties/%24a~1b/items"}
    found = shown(properties={"$a/b": {"type": "array", "items": TEXT}, "c": to_it})

    assert found["properties"]["c"] == {"$ref": "#/properties/a_b/items"}


@pytest.mark.parametrize(
    "reference",
    ["#/$defs/lost", "#/anyOf/0", "#/patternProperties/a", "#/required", "#name", "a.json"],
)
def test_references_that_lead_nowhere_are_left_out(reference: str) -> None:
    to_it = {"$ref": reference, "description": "A word."}

    found = shown_argument(to_it, anyOf=[{}], patternProperties={"a": {}})

    assert found == {"description": "A word."}


def test_references_within_the_schema_stay() -> None:
    tree = OBJECT | {"properties": {"left": {"$ref": "#/$defs/tree"}}}
    schema = OBJECT | {"properties": {"top": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}}

    assert show(schema).parameters == schema


@pytest.mark.parametrize(
    ("schema", "properties", "required"),
    [
        ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"a": TEXT, "b": TEXT}, None),
        ({"allOf": [{"properties": {"a": NUMBER, "c": NUMBER}, "required": ["c"]}]}, None, ["c"]),
        ({"oneOf": [{"properties": {"c": NUMBER}, "required": ["c"]}]}, None, None),
        ({"$ref": "#/$defs/more"}, None, ["c"]),
        ({"allOf": [{"oneOf": [{"$ref": "#/$defs/more"}, True]}]}, None, None),
        ({"required": ["a"], "allOf": [{"required": ["a", "c"]}, {"$ref": "#"}]}, 2, ["a", "c"]),
        ({"enum": [{"a": "b"}], "not": {"required": ["a"]}}, 2, None),
    ],
    ids=str,
)
def test_what_is_refused_at_the_top_level_is_merged_into_the_arguments(
    schema: dict[str, Any], properties: Any, required: list[str] | None
) -> None:
    two, more = {"a": TEXT, "b": TEXT}, {"c": NUMBER}
    defs = {"$defs": {"more": {"properties": more, "required": ["c"]}}}

    found = shown(**{"properties": two, **defs, **schema})

    expected = (two if properties in (two, 2) else two | more) | {}
    wanted = OBJECT | defs | {"properties": expected}
    assert found == (wanted | {"required": required} if required else wanted)


def test_an_argument_that_differs_between_alternatives_is_one_of_them() -> None:
    mail = {"properties": {"kind": {"const": "mail"}, "to": TEXT}, "required": ["kind", "to"]}
    call = {"properties": {"kind": {"const": "call"}, "to": TEXT}, "required": ["kind", "to"]}

    found = shown(oneOf=[mail, call])

    assert found["properties"] == {
        "kind": {"anyOf": [{"const": "mail"}, {"const": "call"}]},
        "to": TEXT,
    }


def test_schemas_that_refer_to_each_other_again_and_again_are_merged_once() -> None:
    twice = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(100)}
    last = {"d100": {"properties": {"a": TEXT}, "$ref": "#/$defs/d0"}}

    assert shown(**{"$ref": "#/$defs/d0"}, **{"$defs": twice | last})["properties"] == {"a": TEXT}


def test_patterns_are_told_in_words() -> None:
    country = {"type": "string", "description": "A country.", "pattern": r"^\p{Lu}{2}$"}

    assert shown_argument(country) == TEXT | {"description": "A country.\nPattern: ^\\p{Lu}{2}$"}
    assert shown_argument({"pattern": "a"}) == {"description": "Pattern: a"}


@pytest.mark.parametrize(
    ("schema", "rest"),
    [
        ({"patternProperties": {"^a": TEXT}}, {}),
        ({"patternProperties": {"^a": TEXT}, "additionalProperties": TEXT}, TEXT),
        ({"patternProperties": {"^a": TEXT}, "additionalProperties": False}, TEXT),
        ({"patternProperties": {"a": {}, "b": {}}, "additionalProperties": False}, True),
        ({"patternProperties": {}, "additionalProperties": False}, False),
    ],
    ids=str,
)
def test_patterns_of_names_become_names_of_any_kind(schema: dict[str, Any], rest: object) -> None:
    assert shown_argument(schema) == ({"additionalProperties": rest} if rest != {} else {})


@pytest.mark.parametrize("kind", ["array", ["null", "array"]])
def test_an_array_says_what_is_in_it(kind: object) -> None:
    assert shown_argument({"type": kind}) == {"type": kind, "items": {}}
    assert shown_argument({"type": kind, "items": TEXT}) == {"type": kind, "items": TEXT}
