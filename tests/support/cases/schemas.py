"""Schemas of tools, as careless and as hostile servers write them: for properties."""

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

_NAMES = ["a", "$b", "a b", "ä/ö~", "x" * 70, ""]
_REFERENCES = (
    "# #/ #a b.json #/$defs/a #/definitions/%24b #/properties #/properties/a #/properties/a%20b"
    " #/properties/%24b/items #/properties/ä~1ö~0 #/properties/ #/anyOf/0 #/anyOf/x".split()
)
_JUNK: list[Any] = [None, True, 0, -1, 1.5, "a", "any", "object", [], ["a"], ["a", "a"], {}]
_ONE = "items additionalItems additionalProperties not if then propertyNames".split()
_SEVERAL = "allOf anyOf oneOf prefixItems items".split()
_NAMED = "properties $defs definitions patternProperties dependencies".split()
#: With some of their values, besides any other.
_VALUES: dict[str, Sequence[Any]] = {
    "$ref": _REFERENCES,
    "type": ["array", "string", ["array", "null"]],
    "required": [["$b"], ["a", "a"], True],
    **dict.fromkeys("title description pattern $schema $id $anchor".split(), ("^a",)),
    **dict.fromkeys("exclusiveMinimum exclusiveMaximum".split(), (True, False, 1)),
    **dict.fromkeys("minimum maximum minLength multipleOf".split(), (0, 1, 1.5)),
    **dict.fromkeys("enum const default examples dependentRequired x-other".split(), (["a"],)),
}
_KEYWORDS = ["$ref", "anyOf", "$defs", *sorted({*_ONE, *_SEVERAL, *_NAMED, *_VALUES})]


@st.composite
def schemas(draw: st.DrawFn, depth: int = 3) -> Any:
    """Make a schema, or what stands in its place."""
    if depth == 0 or draw(st.integers(0, 7)) == 0:
        return draw(st.sampled_from([True, False, {}, {"type": "string"}, *_JUNK[:1]]))
    keywords = draw(st.lists(st.sampled_from(_KEYWORDS), max_size=3, unique=True))
    return {keyword: draw(_value(keyword, depth - 1)) for keyword in keywords}


@st.composite
def tool_schemas(draw: st.DrawFn) -> dict[str, Any]:
    keywords = draw(st.lists(st.sampled_from(_KEYWORDS), max_size=3, unique=True))
    root = {keyword: draw(_value(keyword, 2)) for keyword in ("properties", *keywords)}
    return root | {"type": "object"}


@st.composite
def _value(draw: st.DrawFn, keyword: str, depth: int) -> Any:
    if draw(st.integers(0, 19)) == 0:
        return draw(st.sampled_from(_JUNK))
    if keyword in _VALUES:
        return draw(st.sampled_from(_VALUES[keyword]))
    if keyword in _NAMED:
        return draw(st.dictionaries(st.sampled_from(_NAMES), schemas(depth), max_size=3))
    if keyword in _SEVERAL and (keyword != "items" or draw(st.booleans())):
        return draw(st.lists(schemas(depth), max_size=2))
    return draw(schemas(depth))
