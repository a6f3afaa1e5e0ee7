"""Valid JSON Schema, compared with the library, and what older drafts mean in the newest."""

from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from support.cases.schemas import schemas

from backburner.core.connections.json_schema import find_fault, follow, modernize

TEXT = {"type": "string"}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({"minimum": 0, "exclusiveMinimum": True}, {"exclusiveMinimum": 0}),
        ({"maximum": 9, "exclusiveMaximum": False}, {"maximum": 9}),
        ({"exclusiveMaximum": True}, {}),
        ({"exclusiveMaximum": 9}, {"exclusiveMaximum": 9}),
        ({"items": [TEXT, {}]}, {"prefixItems": [TEXT, {}]}),
        (
            {"items": [{"required": True}], "additionalItems": False},
            {"prefixItems": [{}], "items": False},
        ),
        ({"items": [], "additionalItems": 3}, {}),
        ({"items": TEXT, "additionalItems": False}, {"items": TEXT}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$id": "https://a.example"}, {}),
        ({"properties": {"a": {"type": "any", "required": True}}}, {"properties": {"a": {}}}),
        ({"required": ["a", "b", "a"]}, {"required": ["a", "b"]}),
        ({"minimum": None, "default": None, "const": None}, {"default": None, "const": None}),
        ({"title": 3, "examples": {}, "readOnly": "no", "format": "date"}, {"format": "date"}),
        ({"anyOf": [], "allOf": [{"oneOf": []}]}, {"allOf": [{}]}),
        ({"default": {"required": True}, "x-other": [1]}, None),
        ({"properties": {"required": {}, "$id": {}, "title": {"type": "string"}}}, None),
        ({"dependencies": {"a": ["b"], "c": {}}}, None),
    ],
    ids=str,
)
def test_older_drafts_and_slips_are_written_as_they_are_meant(
    written: dict[str, Any], meant: dict[str, Any] | None
) -> None:
    assert modernize(written) == (written if meant is None else meant)
    assert find_fault(modernize(written)) is None


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "int"}, "type"),
        ({"type": ["string", "any"]}, "type"),
        ({"type": []}, "type"),
        ({"required": "a"}, "required"),
        ({"required": [1]}, "required"),
        ({"properties": ["x"]}, "properties"),
        ({"properties": {"a": 1}}, "properties/a"),
        ({"properties": {"a": {"anyOf": [{}, {"items": {"minimum": "1"}}]}}}, None),
        ({"minLength": -1}, "minLength"),
        ({"minLength": 1.5}, "minLength"),
        ({"maximum": True}, "maximum"),
        ({"multipleOf": 0}, "multipleOf"),
        ({"enum": "a"}, "enum"),
        ({"$ref": 1}, "$ref"),
        ({"dependentRequired": {"a": "b"}}, "dependentRequired"),
        ({"dependencies": {"a": "b"}}, "dependencies/a"),
        ({"anyOf": {}}, "anyOf"),
    ],
    ids=str,
)
def test_the_place_of_a_fault_is_found(schema: dict[str, Any], place: str | None) -> None:
    assert find_fault({"items": True, "else": {}, "x-other": 1, **schema}) == tuple(
        (place or "properties/a/anyOf/1/items/minimum").split("/")
    )


@given(schemas())
def test_the_library_agrees_on_what_is_valid(schema: Any) -> None:
    modern = modernize(schema) if isinstance(schema, dict) else schema
    try:
        Draft202012Validator.check_schema(modern, format_checker=FormatChecker(()))
    except SchemaError:
        assert find_fault(modern) is not None, modern
    else:
        assert find_fault(modern) is None, modern


ROOT = {
    "properties": {"a/b~ c": {"items": TEXT}, "all": True},
    "anyOf": [{"required": ["a"]}, 3],
    "x-other": {"a": {}},
}


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", ROOT),
        ("#/properties/a~1b~0%20c/items", TEXT),
        ("#/properties/all", True),
        ("#/anyOf/0", {"required": ["a"]}),
        ("#/anyOf/1", None),
        ("#/anyOf/2", None),
        ("#/anyOf/one", None),
        ("#/anyOf", None),
        ("#/allOf/0", None),
        ("#/anyOf/0/required", None),
        ("#/properties", None),
        ("#/properties/none/items", None),
        ("#/properties/all/items", None),
        ("#/$defs/a", None),
        ("#/x-other/a", None),
        ("#name", None),
        ("", None),
        ("https://a.example/schema#/properties/all", None),
    ],
)
def test_references_lead_from_schema_to_schema_within_one(reference: str, found: object) -> None:
    assert follow(ROOT, reference) == found
