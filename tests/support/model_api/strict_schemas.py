"""Schemas of tools for which the real APIs refuse a whole request.

Both check them with `jsonschema`, which shows in the words of their refusals: OpenAI with the
formats of the meta-schema, so that patterns have to be valid in Python, and Anthropic with the
references. Of the names of properties, Anthropic checks those at the top level.
"""

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

Api = Literal["messages", "completions"]
_KEY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_AT_THE_TOP: Mapping[Api, tuple[str, ...]] = {
    "messages": ("oneOf", "allOf", "anyOf"),
    "completions": ("oneOf", "anyOf", "allOf", "enum", "not"),
}


def about_schema(schema: object, api: Api) -> str | None:
    """Return what is wrong with a schema, or None."""
    return _about_text(json.dumps(schema), api)


@lru_cache(maxsize=10_000)  # Each request has the same tools.
def _about_text(text: str, api: Api) -> str | None:
    schema = json.loads(text)
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "schema must have type 'object'."
    if refused := [key for key in _AT_THE_TOP[api] if key in schema]:
        return f"does not support {refused} at the top level."
    formats = FormatChecker() if api == "completions" else FormatChecker(())
    try:
        Draft202012Validator.check_schema(schema, format_checker=formats)
    except SchemaError as error:
        return f"JSON schema is invalid: {error.message[:200]}"
    about = _about_openai(schema) if api == "completions" else _about_anthropic(schema)
    return next(about, None)


def _about_openai(schema: dict[str, Any]) -> Iterator[str]:
    if "properties" not in schema:
        yield "object schema missing properties."
    for part in _schemas(schema):
        if re.search(r"\(\?<?[=!]", part.get("pattern", "")):
            yield "regex lookaround is not supported."
        types = part.get("type")
        if "array" in (types if isinstance(types, list) else [types]) and "items" not in part:
            yield "array schema missing items."


def _about_anthropic(schema: dict[str, Any]) -> Iterator[str]:
    for key in schema.get("properties", {}):
        if not _KEY.fullmatch(key):
            yield f"Property keys should match pattern '^{_KEY.pattern}$', and {key!r} does not."
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    resolver = Registry().resolver_with_root(resource)
    for part in _schemas(schema):
        try:
            if "$ref" in part:
                resolver.lookup(part["$ref"])
        except Unresolvable as error:
            yield f"Error resolving schema reference: {error}"


def _schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield schema
    for inner in DRAFT202012.subresources_of(schema):
        if isinstance(inner, dict):
            yield from _schemas(inner)
