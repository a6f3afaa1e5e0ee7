"""JSON Schema 2020-12, as model APIs demand it of tools, and what older drafts mean in it.

Its rules stand here because every list of tools is checked, in runs too, and the library takes more
than a second for a megabyte. Tests compare the two.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

#: Keywords that hold a schema, schemas, and schemas by name.
ONE = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames"
    " then unevaluatedItems unevaluatedProperties".split()
)
SEVERAL = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
NAMED = frozenset(
    ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
)
TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
#: Left out: nothing is read from elsewhere, and the draft is the newest.
_LEFT_OUT = frozenset(
    "$anchor $dynamicAnchor $dynamicRef $id $recursiveAnchor $recursiveRef $schema $vocabulary"
    " additionalItems".split()
)
_INDEX = re.compile(r"0|[1-9][0-9]{0,5}")


def _is_anything(_: object) -> bool:
    return True


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_filled(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)


def _is_names_by_name(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_names, value.values()))


def _is_type(value: object) -> bool:
    names = value if isinstance(value, list) and value else [value]
    return _is_names(names) and TYPES.issuperset(names)


_Shape = Callable[[Any], bool]
#: Keywords that describe, and demand nothing.
_WORDS: Mapping[str, _Shape] = {
    **dict.fromkeys("$comment contentEncoding contentMediaType".split(), _is_text),
    **dict.fromkeys("description format title".split(), _is_text),
    **dict.fromkeys("deprecated readOnly writeOnly".split(), _is_flag),
    "examples": _is_list,
}
_SHAPES: Mapping[str, _Shape] = {
    **_WORDS,
    **dict.fromkeys(SEVERAL, _is_filled),
    **dict.fromkeys(NAMED, _is_object),
    **dict.fromkeys("exclusiveMaximum exclusiveMinimum maximum minimum".split(), _is_number),
    **dict.fromkeys("maxContains maxItems maxLength maxProperties".split(), _is_count),
    **dict.fromkeys("minContains minItems minLength minProperties".split(), _is_count),
    **dict.fromkeys(("$ref", "pattern"), _is_text),
    "dependentRequired": _is_names_by_name,
    "enum": _is_list,
    "multipleOf": _is_positive,
    "required": _is_names,
    "type": _is_type,
    "uniqueItems": _is_flag,
}


def modernize(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Write a schema in this draft, where that loses nothing that its server does not check too."""
    return rewrite(dict(schema), _modernize)


def find_fault(schema: object) -> tuple[str, ...] | None:
    """Find the first part of a schema that is not valid; None: there is none."""
    if isinstance(schema, bool):
        return None
    if not isinstance(schema, dict):
        return ()
    for keyword, value in schema.items():
        if not _SHAPES.get(keyword, _is_anything)(value):
            return (keyword,)
        for place, inner in _inner(keyword, value):
            fault = find_fault(inner)
            if fault is not None:
                return (keyword, *place, *fault)
    return None


def rewrite(
    schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """Change each schema in a schema, the inner ones first."""

    def inner(part: Any) -> Any:
        return rewrite(part, change) if isinstance(part, dict) else part

    changed = dict[str, Any]()
    for keyword, value in schema.items():
        if keyword in NAMED and isinstance(value, dict):
            changed[keyword] = {name: inner(part) for name, part in value.items()}
        elif keyword in SEVERAL or keyword in ONE:
            parts = isinstance(value, list)
            changed[keyword] = [inner(part) for part in value] if parts else inner(value)
        else:
            changed[keyword] = value
    return change(changed)


def follow(root: Mapping[str, Any], reference: str) -> object:
    """Return the schema that a reference leads to, from schema to schema; None: to none of them."""
    if not re.match("#(/|$)", reference):
        return None
    found: Any = root
    names = iter([unescape(part) for part in reference.split("/")[1:]])
    for keyword in names:
        found = found.get(keyword) if isinstance(found, dict) else None
        if keyword in NAMED:
            found = found.get(next(names, None)) if isinstance(found, dict) else None
        elif keyword in SEVERAL:
            found = _at(found, next(names, ""))
        elif keyword not in ONE:
            return None
    return found if isinstance(found, dict | bool) else None


def unescape(part: str) -> str:
    """Read a part of a reference."""
    return unquote(part).replace("~1", "/").replace("~0", "~")


def _at(found: object, index: str) -> object:
    is_there = isinstance(found, list) and _INDEX.fullmatch(index) and int(index) < len(found)
    return found[int(index)] if is_there and isinstance(found, list) else None


def _inner(keyword: str, value: Any) -> Iterator[tuple[tuple[str, ...], object]]:
    """Yield the schemas that a keyword holds, with their places in it."""
    if keyword in ONE:
        yield (), value
    elif keyword in SEVERAL:
        yield from (((str(number),), part) for number, part in enumerate(value))
    elif keyword in NAMED:
        for name, part in value.items():
            # Older drafts name other properties here.
            if not (keyword == "dependencies" and _is_names(part)):
                yield (name,), part


def _modernize(schema: dict[str, Any]) -> dict[str, Any]:
    tuple_of, more = schema.get("items"), schema.get("additionalItems")
    new = {key: value for key, value in schema.items() if not _is_needless(key, value)}
    if isinstance(tuple_of, list):
        new |= {"prefixItems": tuple_of} if tuple_of else {}
        new |= {"items": more} if isinstance(more, dict | bool) else {}
    for limit, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool) and new.pop(exclusive) and limit in new:
            new[exclusive] = new.pop(limit)
    if isinstance(names := new.get("required"), list) and all(map(_is_text, names)):
        new["required"] = list(dict.fromkeys(names))
    return new


def _is_needless(keyword: str, value: object) -> bool:
    """Return whether a keyword says nothing, or what has to be said otherwise."""
    match keyword, value:
        case (("const" | "default"), _):
            return False
        case (_, None) | ("items", list()) | ("required", bool()) | ("type", "any"):
            return True
        case _ if keyword in _WORDS:
            return not _WORDS[keyword](value)
        case _:
            return keyword in _LEFT_OUT or (keyword in SEVERAL and value == [])
