"""Connections with many tools: these are found by words, and called by their names.

The tools of a request have a limit: a model that is shown hundreds chooses badly, and each request
would pay for them. The gate sees the tool that is meant, not these two.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from backburner.core.memory import topic_words
from backburner.core.tool_policy import FIND_TOOL, USE_TOOL, qualified_name
from backburner.core.validation import json_size
from backburner.ports import MeantCall, Offer, ToolResult
from backburner.tools.define import Arguments, define_tool

#: Of names, descriptions and schemas of tools of connections; about 10,000 tokens.
MAX_OFFERED_BYTES = 40_000
#: OpenAI's API refuses requests with more than 128 tools, ours among them.
MAX_OFFERED_TOOLS = 80
MAX_FOUND = 8
#: Of what is told of one tool that was found.
MAX_DESCRIPTION_CHARS = 1_000
MAX_SCHEMA_CHARS = 4_000


class FindToolsArguments(Arguments):
    words: str = Field(description="What the tool should do or is called, in a few words.")


class UseToolArguments(Arguments):
    name: str = Field(description="The name, as find_tools gave it: `connection/tool`.")
    arguments: dict[str, Any] = Field(
        default_factory=dict, description="Its arguments, by the schema that find_tools gave."
    )


def fit(offers: Sequence[Offer]) -> Sequence[Offer]:
    """Offer the tools that fit; those of the largest connections are found by words instead."""
    sizes, counts = Counter[str](), Counter[str]()
    for offer in offers:
        sizes[offer.tool.server] += _size(offer)
        counts[offer.tool.server] += 1
    hidden = set[str]()
    for server in sorted(sizes, key=lambda name: (-sizes[name], name)):
        if sizes.total() <= MAX_OFFERED_BYTES and counts.total() <= MAX_OFFERED_TOOLS:
            break
        hidden.add(server)
        del sizes[server], counts[server]
    if not hidden:
        return offers
    shown = [offer for offer in offers if offer.tool.server not in hidden]
    return [*shown, *_finders([offer for offer in offers if offer.tool.server in hidden])]


def _size(offer: Offer) -> int:
    return json_size([offer.tool.name, offer.description, dict(offer.parameters)])


def _finders(hidden: Sequence[Offer]) -> Sequence[Offer]:
    by_name = {qualified_name(offer.tool): offer for offer in hidden}
    servers = sorted({offer.tool.server for offer in hidden})
    counts = {name: sum(1 for one in hidden if one.tool.server == name) for name in servers}
    listed = ", ".join(f"{name} ({count} tools)" for name, count in counts.items())

    async def find(arguments: FindToolsArguments) -> str:
        """Find tools of connections that are not in your list, to call them with use_tool."""
        found = search(by_name, arguments.words)
        if not found:
            return "Nothing fits. Try other words."
        return "\n\n".join(_describe(name, by_name[name]) for name in found)

    async def use(arguments: UseToolArguments) -> str:
        """Call a tool that find_tools has found."""
        return f"{arguments.name} was not called."

    finder = define_tool(
        FIND_TOOL, FindToolsArguments, find, read_only=True, free=True, outside=True
    )
    user = define_tool(USE_TOOL, UseToolArguments, use, outside=True)

    def resolve(arguments: Mapping[str, Any]) -> MeantCall | ToolResult:
        name, given = arguments.get("name"), arguments.get("arguments", {})
        offer = by_name.get(name) if isinstance(name, str) else None
        if offer is None:
            text = f"There is no tool {str(name)[:200]!r}. Find its name with {FIND_TOOL}."
            return ToolResult(text, failed=True)
        if not isinstance(given, Mapping):
            return ToolResult("The arguments have to be a JSON object.", failed=True)
        return offer, given

    return [
        replace(finder, description=f"{finder.description} It searches: {listed}."),
        replace(user, resolve=resolve),
    ]


def search(offers: Mapping[str, Offer], words: str) -> Sequence[str]:
    """Find tools by words in their names, then in their descriptions; the best first."""
    wanted = topic_words(words)
    scores = {name: _score(wanted, name, offer.description) for name, offer in offers.items()}
    best = sorted((name for name in offers if scores[name]), key=lambda one: (-scores[one], one))
    return best[:MAX_FOUND]


def _score(words: Sequence[str], name: str, description: str) -> int:
    # Once for all words: descriptions of a user's tools may have megabytes together.
    name, description = name.casefold(), description.casefold()
    return sum(3 * (word in name) + (word in description) for word in words)


def _describe(name: str, offer: Offer) -> str:
    schema = json.dumps(dict(offer.parameters), ensure_ascii=False)
    if len(schema) > MAX_SCHEMA_CHARS:
        schema = f"{schema[:MAX_SCHEMA_CHARS]} [the rest of the schema is left out]"
    return f"{name}: {offer.description[:MAX_DESCRIPTION_CHARS]}\nArguments: {schema}"
