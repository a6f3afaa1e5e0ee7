"""Schemas of tools as models are shown them: such that no model API refuses the request for one.

What is lost, servers check themselves. Everybody else has the schema as the server wrote it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from backburner.core.connections.json_schema import find_fault, follow, modernize, rewrite, unescape
from backburner.core.validation import canonical_json

MAX_KEY_CHARS = 64
_KEY = re.compile(f"[a-zA-Z0-9_.-]{{1,{MAX_KEY_CHARS}}}")
#: Refused at the top level.
_REFUSED = frozenset(("$ref", "allOf", "anyOf", "enum", "not", "oneOf"))


@dataclass(frozen=True, slots=True)
class ShownSchema:
    parameters: Mapping[str, Any]
    #: The names of arguments that are shown under others, by these.
    names: Mapping[str, str] = field(default_factory=dict)

    def restore(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Give the arguments of a call the names that the server knows."""
        return {self.names.get(name, name): value for name, value in arguments.items()}


def show(parameters: Mapping[str, Any]) -> ShownSchema:
    """Return what a model is shown of the schema of a tool."""
    schema = modernize(parameters)
    if find_fault(schema) is not None:
        return ShownSchema({"type": "object", "properties": {}})
    properties, required = _merge(schema)
    names = _rename(properties)
    kept = {key: value for key, value in schema.items() if key not in _REFUSED}
    renamed = {names.get(name, name): value for name, value in properties.items()}
    renamed |= {new: _describe(renamed[new], name) for name, new in names.items()}
    whole = kept | {"type": "object", "properties": renamed}
    if required:
        whole["required"] = [names.get(name, name) for name in required]
    simple = rewrite(whole, _simplify)
    shown = rewrite(simple, partial(_keep_references, root=simple, names=names))
    return ShownSchema(shown, {new: name for name, new in names.items()})


def _merge(schema: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Collect the arguments and those required, also from what is refused at the top level."""
    properties, required = dict[str, Any](), list[str]()
    variants = dict[str, dict[str, Any]]()
    for part, is_certain in _parts(schema):
        for name, value in part.get("properties", {}).items():
            if is_certain:
                properties.setdefault(name, value)
            else:
                variants.setdefault(name, {})[canonical_json(value)] = value
        required += part.get("required", ()) if is_certain else ()
    for name, different in variants.items():
        one, *others = different.values()
        properties.setdefault(name, {"anyOf": [one, *others]} if others else one)
    return properties, list(dict.fromkeys(required))


def _parts(root: dict[str, Any]) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield the schemas that apply to all arguments together, and whether they always do."""
    waiting: list[tuple[object, bool]] = [(root, True)]
    seen = set[int]()
    for part, is_certain in waiting:
        # References may lead back.
        if not isinstance(part, dict) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part, is_certain
        always = [follow(root, part["$ref"])] if "$ref" in part else []
        waiting += ((other, is_certain) for other in (*always, *part.get("allOf", ())))
        waiting += ((o, False) for o in (*part.get("anyOf", ()), *part.get("oneOf", ())))


def _rename(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return other names for arguments whose names are refused."""
    taken, renamed = {name for name in properties if _KEY.fullmatch(name)}, dict[str, str]()
    numbers = Counter[str]()
    for name in properties:
        if name in taken:
            continue
        plain = re.sub(r"[^a-zA-Z0-9_.-]+", "_", name[: 2 * MAX_KEY_CHARS]).strip("_")
        plain = new = plain[:MAX_KEY_CHARS] or "argument"
        while new in taken:
            numbers[plain] += 1
            new = f"{plain[: MAX_KEY_CHARS - 8]}_{numbers[plain] + 1}"
        taken.add(new)
        renamed[name] = new
    return renamed


def _describe(schema: Any, name: str) -> Any:
    """Tell the name that the server knows: descriptions of others may use it."""
    if not isinstance(schema, dict):
        return {"description": name} if schema else schema
    return schema | {"description": ": ".join([name, *_description(schema)])}


def _simplify(schema: dict[str, Any]) -> dict[str, Any]:
    """Say in other ways what not every model API takes: patterns, and arrays of anything."""
    new = dict(schema)
    # Each API compiles them in its own way, and refuses those that it cannot.
    if "pattern" in new:
        new["description"] = "\n".join([*_description(new), f"Pattern: {new.pop('pattern')}"])
    by_pattern = list(new.pop("patternProperties", {}).values())
    if by_pattern and new.get("additionalProperties") is False:
        new["additionalProperties"] = by_pattern[0] if len(by_pattern) == 1 else True
    types = new.get("type", ())
    if "items" not in new and "array" in ([types] if isinstance(types, str) else types):
        new["items"] = {}
    return new


def _keep_references(
    schema: dict[str, Any], *, root: dict[str, Any], names: Mapping[str, str]
) -> dict[str, Any]:
    """Leave out a reference that leads nowhere; let the others use the names that are shown."""
    if "$ref" not in schema:
        return schema
    reference = _readdress(schema["$ref"], names)
    rest = {key: value for key, value in schema.items() if key != "$ref"}
    return rest if follow(root, reference) is None else schema | {"$ref": reference}


def _description(schema: Mapping[str, Any]) -> list[str]:
    return [schema["description"]] if schema.get("description") else []


def _readdress(reference: str, names: Mapping[str, str]) -> str:
    """Change a reference to an argument to the name that is shown."""
    match reference.split("/", 3):
        case ["#", "properties", name, *rest] if unescape(name) in names:
            return "/".join(["#", "properties", names[unescape(name)], *rest])
        case _:
            return reference
