"""The tools that a server lists: those that can be offered, and why others are left out."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from backburner.core.connections.connection import ToolDefinition
from backburner.core.connections.json_schema import find_fault, modernize
from backburner.core.connections.naming import MAX_TOOL_NAME_CHARS, check_tool_name
from backburner.core.errors import BadRequest
from backburner.core.validation import (
    canonical_json,
    check_json,
    escape_hidden,
    hidden_characters,
    json_size,
    replace_invalid_characters,
)
from backburner.gateway.upstream.limits import (
    MAX_DESCRIPTION_CHARS,
    MAX_LEFT_OUT,
    MAX_LIST_BYTES,
    MAX_SCHEMA_BYTES,
    MAX_TOOLS,
)
from backburner.ports import ToolList

TOO_MANY = f"The server lists more than {MAX_TOOLS:,} tools."
TOO_LARGE = f"The definitions of its tools are larger than {MAX_LIST_BYTES // 2**20} MB."
TWICE = "The server lists it more than once, with different definitions."
BAD_HEADERS = "It wants arguments in headers of requests in a way that is not valid."
#: Of a schema, words for people and models.
_WORDS_OF_SCHEMA = frozenset({"$comment", "description", "title"})
#: The name under which those are counted that are not named.
OTHERS = "({:,} others)"
OTHERS_WHY = "They are not valid either."


@dataclass
class ToolCollection:
    """The tools of all pages of a list."""

    tools: list[ToolDefinition] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    #: How many were left out without being named.
    unnamed: int = 0
    size: int = 0

    @property
    def is_full(self) -> bool:
        return bool(self._why_full())

    async def add_page(self, listed: object) -> list[dict[str, Any]]:
        """Add the tools of a page; return them in a form that the SDK accepts."""
        accepted = []
        for number, tool in enumerate(listed if isinstance(listed, list) else (), 1):
            # A page can take a second.
            await asyncio.sleep(0)
            name = _name(tool, number)
            try:
                definition = read_tool(tool)
            except BadRequest as error:
                self.leave_out(name, error.message)
                continue
            size = json_size(definition.parameters) + len(definition.description)
            if full := self._why_full(size):
                self.leave_out(name, full)
                continue
            self.size += size
            self.tools.append(definition)
            schema = modernize(definition.parameters)
            accepted.append({"name": definition.name, "inputSchema": schema})
        return accepted

    def leave_out(self, name: str, why: str) -> None:
        if len(self.left_out) < MAX_LEFT_OUT:
            self.left_out[name] = why
        else:
            self.unnamed += 1

    def drop(self, names: set[str], why: str) -> None:
        self.tools = [tool for tool in self.tools if tool.name not in names]
        for name in sorted(names):
            self.leave_out(name, why)

    def to_list(self) -> ToolList:
        """Make the list; of tools with one name, an agent could not tell which one it calls."""
        different = dict.fromkeys(self.tools_by_text())
        counts = Counter(name for name, _ in different)
        self.drop({name for name, count in counts.items() if count > 1}, TWICE)
        if self.unnamed:
            self.left_out[OTHERS.format(self.unnamed)] = self._why_full() or OTHERS_WHY
        return ToolList(
            tools=list({tool.name: tool for tool in self.tools}.values()), left_out=self.left_out
        )

    def _why_full(self, more: int = 0) -> str:
        if len(self.tools) >= MAX_TOOLS:
            return TOO_MANY
        return TOO_LARGE if self.size + more > MAX_LIST_BYTES else ""

    def tools_by_text(self) -> Sequence[tuple[str, str]]:
        return [
            (tool.name, f"{tool.description}\n{canonical_json(tool.parameters)}")
            for tool in self.tools
        ]


def read_tool(tool: object) -> ToolDefinition:
    """Read a definition as a server sends it. Raises `BadRequest` with the reason it is useless."""
    if not isinstance(tool, dict):
        raise BadRequest("It is not an object.")
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict):
        raise BadRequest("It has no schema for its arguments.")
    if schema.get("type") != "object":
        raise BadRequest("The schema of its arguments has not the type `object`.")
    check_json("The schema of its arguments", schema, limit=MAX_SCHEMA_BYTES)
    annotations = tool.get("annotations")
    return ToolDefinition(
        name=check_tool_name(tool.get("name")),
        description=clean_description(tool.get("description")),
        parameters=_check_valid(_clean_schema(schema)),
        says_read_only=isinstance(annotations, dict) and annotations.get("readOnlyHint") is True,
    )


def _clean_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Remove what cannot be seen from its words; what a call has to repeat must have none."""
    return {_check_visible(key): _clean_value(value, key) for key, value in schema.items()}


def _clean_value(value: object, key: str) -> object:
    match value:
        case dict():
            return _clean_schema(value)
        case list():
            return [_clean_value(each, "") for each in value]
        case str() if key in _WORDS_OF_SCHEMA:
            return clean_words(value, limit=len(value))
        case str():
            return _check_visible(value)
        case _:
            return value


def _check_visible(text: str) -> str:
    if hidden_characters(text):
        raise BadRequest("The schema of its arguments contains characters that cannot be seen.")
    return text


def _check_valid(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuse what no model API takes, also if models are shown it in the newest draft."""
    fault = find_fault(modernize(schema))
    if fault is not None:
        place = "/".join(fault)[:MAX_TOOL_NAME_CHARS]
        raise BadRequest(f"The schema of its arguments is not valid JSON Schema at {place!r}.")
    return schema


def clean_description(text: object) -> str:
    """Remove what cannot be seen, so that what its owner reads is all that the agent reads."""
    if not isinstance(text, str):
        return ""
    plain = clean_words(text, limit=MAX_DESCRIPTION_CHARS)
    if len(text) > MAX_DESCRIPTION_CHARS:
        plain += f"\n[The rest of {len(text):,} characters was left out.]"
    return plain


def clean_words(text: str, *, limit: int) -> str:
    """Return the beginning of a text, without characters that cannot be seen."""
    plain = replace_invalid_characters(text[:limit]).replace("\r\n", "\n")
    hidden = hidden_characters(plain)
    return "".join(char for char in plain if char not in hidden).strip()


def _name(tool: object, number: int) -> str:
    name = tool.get("name") if isinstance(tool, Mapping) else None
    if not isinstance(name, str) or not name.strip():
        return f"tool {number}"
    return escape_hidden(replace_invalid_characters(name[:MAX_TOOL_NAME_CHARS]))
