"""What a model was asked, as it came over the wire."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: How engines call the tool that takes the outcome, each in its own way.
OUTCOME_TOOLS = ("StructuredOutput", "final_result")


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    method: str
    path: str
    #: By names in small letters.
    headers: Mapping[str, str]
    raw: bytes
    #: What `raw` says in JSON; None: it is none.
    body: Any
    #: Set once the connection is closed, by whichever side.
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def size(self) -> int:
        return len(self.raw)

    @property
    def tools(self) -> Sequence[str]:
        """Name the tools that the model may call."""
        return [str(one.get("name", "")) for one in self._offered]

    @property
    def _offered(self) -> Sequence[Mapping[str, Any]]:
        offered = self.body.get("tools") if isinstance(self.body, dict) else ()
        return [one.get("function", one) for one in offered or ()]

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
        """Find a tool by its plain name: engines put the name of a server in front."""
        found = (name for name in self.tools if name == plain or name.endswith(f"__{plain}"))
        return next(found, plain)

    def name_of(self, description: str) -> str:
        """Find a tool by what is said of it."""
        (name,) = [one["name"] for one in self._offered if one.get("description") == description]
        return str(name)

    def holds(self, words: str) -> bool:
        """See whether some words stand anywhere in it."""
        said = [self.path, *self.headers.values(), *_texts(self.body)]
        return words.encode() in self.raw or any(words in text for text in said)


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
