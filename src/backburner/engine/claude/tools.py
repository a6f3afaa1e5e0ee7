"""Tools as the agent's program sees them: servers that live in our process, one a connection.

The program never learns more of a tool than its name, what it takes, and what it gave.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import mcp_types as types
from claude_agent_sdk import McpSdkServerConfig
from mcp.server import Server, ServerRequestContext

from backburner.core.validation import canonical_json
from backburner.ports import Gate, Offer, ToolResult

LONGEST_NAME = 64
#: Where a schema has one of these at its top, the program would drop the tool without a word.
DROPS = ("oneOf", "anyOf", "allOf")


@dataclass(slots=True)
class Hands:
    """What an agent may call, and how, for the turn that is under way."""

    offers: Mapping[str, Mapping[str, Offer]]
    gate: Gate | None = None
    #: A call was answered with the wish that the turn end.
    stopped: bool = False

    def begin(self, offers: Sequence[Offer], gate: Gate) -> None:
        self.offers, self.gate, self.stopped = expose(offers), gate, False

    async def call(self, server: str, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Make a call by the names that the program knows."""
        offer = self.offers[server].get(name)
        if offer is None:
            return ToolResult(f"There is no tool {name}.", failed=True)
        if _was_list(arguments, offer.parameters):
            return ToolResult(f"{name} takes an object with names, not a list.", failed=True)
        return await self.make(offer, arguments)

    async def make(self, offer: Offer, arguments: Mapping[str, Any]) -> ToolResult:
        if self.gate is None:
            return ToolResult("The turn is over.", failed=True, stop=True)
        result = await self.gate.call(offer, arguments)
        self.stopped |= result.stop
        return result


def expose(offers: Sequence[Offer]) -> dict[str, dict[str, Offer]]:
    """Give every tool a name that the program can bear, by server; no two share one."""
    exposed: dict[str, dict[str, Offer]] = {}
    for offer in offers:
        server = _plain(offer.tool.server)
        named = exposed.setdefault(server, {})
        named[_name(offer.tool.name, server, named)] = offer
    return exposed


def serve(hands: Hands) -> dict[str, McpSdkServerConfig]:
    return {
        server: McpSdkServerConfig(type="sdk", name=server, instance=_server(server, hands))
        for server in hands.offers
    }


def digest(offers: Sequence[Offer]) -> str:
    """Tell sets of tools apart that an agent would see differently."""
    seen = [
        [one.tool.server, one.tool.name, one.description, dict(one.parameters)] for one in offers
    ]
    return hashlib.sha256(canonical_json({"tools": seen}).encode()).hexdigest()


def _server(name: str, hands: Hands) -> Server:
    async def list_tools(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=plain,
                    description=offer.description,
                    input_schema=_schema(offer.parameters),
                )
                for plain, offer in hands.offers[name].items()
            ]
        )

    async def call_tool(
        context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        del context
        result = await hands.call(name, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=result.text)],
            # After a call that failed the program would not stop.
            is_error=result.failed and not result.stop,
        )

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def _was_list(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """See whether the program has made an object of a list, with its numbers for names."""
    numbers = [str(number) for number in range(len(arguments))]
    return (
        bool(numbers) and list(arguments) == numbers and "0" not in parameters.get("properties", {})
    )


def _schema(parameters: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in parameters.items() if key not in DROPS}
    return {**kept, "type": "object"}


def _name(name: str, server: str, taken: Mapping[str, Offer]) -> str:
    plain, room = _plain(name), LONGEST_NAME - len(f"mcp__{server}__")
    if len(plain) <= room and plain not in taken:
        return plain
    return f"{plain[: room - 7]}_{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)
