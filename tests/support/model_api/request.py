"""A request to the fake model API, as received."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The outcome tools of the engines.
OUTCOME_TOOLS = ("StructuredOutput", "final_result")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    method: str
    path: str
    #: By lowercase names.
    headers: Mapping[str, str]
    raw: bytes
    #: `raw` parsed as JSON; None if it is not.
    body: Any
    #: Set once the connection is closed, by either side.
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def size(self) -> int:
        return len(self.raw)

    @property
    def tools(self) -> Sequence[str]:
        """The names of the tools that the model may call."""
        return [str(tool.get("name", "")) for tool in self._offered]

    @property
    def descriptions(self) -> Sequence[str]:
        return [str(tool.get("description", "")) for tool in self._offered]

    @property
    def schemas(self) -> Sequence[tuple[str, Any]]:
        """The names and the schemas of the tools that have one."""
        keys = ("input_schema", "parameters")
        found = [(tool, key) for tool in self._offered for key in keys if key in tool]
        return [(str(tool.get("name", "")), tool[key]) for tool, key in found]

    @property
    def _offered(self) -> Sequence[Mapping[str, Any]]:
        offered = self.body.get("tools") if isinstance(self.body, dict) else ()
        return [tool.get("function", tool) for tool in offered or ()]

    @property
    def outcome_tool(self) -> str | None:
        return next((name for name in self.tools if name in OUTCOME_TOOLS), None)

    @property
    def wants_outcome(self) -> bool:
        has_format = isinstance(self.body, dict) and bool(self.body.get("response_format"))
        return has_format or self.outcome_tool is not None

    @property
    def wants_stream(self) -> bool:
        return isinstance(self.body, dict) and bool(self.body.get("stream"))

    def full_name(self, plain: str) -> str:
        """Find a tool by its plain name: engines add the name of a server as a prefix."""
        matches = (name for name in self.tools if name == plain or name.endswith(f"__{plain}"))
        return next(matches, plain)

    def tool_of(self, server: str, tool: str) -> str:
        """Find a tool by the plain names of its server and itself."""
        names = (f"mcp__{server}__{tool}", f"{server}__{tool}", tool)
        return next(name for name in names if name in self.tools)

    def name_of(self, description: str) -> str:
        """Find a tool by its description."""
        return str(self._described(description)["name"])

    def schema_of(self, description: str) -> Any:
        """Find the schema of a tool by its description."""
        tool = self._described(description)
        return tool.get("input_schema", tool.get("parameters"))

    def _described(self, description: str) -> Mapping[str, Any]:
        (tool,) = [tool for tool in self._offered if tool.get("description") == description]
        return tool

    def holds(self, text: str) -> bool:
        """Return whether a text appears anywhere in the request."""
        parts = [self.path, *self.headers.values(), *_texts(self.body)]
        return text.encode() in self.raw or any(text in part for part in parts)


def read_json(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield str(name)
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
