"""Tools as Claude Code sees them: MCP servers in our process, one for each server of a tool.

The program knows only the name, the schema, the description and the results of a tool.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from claude_agent_sdk import McpSdkServerConfig
from mcp.server import Server, ServerRequestContext

from backburner.core.ids import CallId
from backburner.core.validation import canonical_json
from backburner.engine.fence import fence
from backburner.engine.shown_tools import ShownTool, show_tool, shown_name
from backburner.ports import Gate, Offer, ToolResult

#: The program would replace results of more than 50,000 characters by their start. More than any
#: result has: the gate cuts them.
MAX_RESULT_CHARS = 400_000
#: In the metadata of a call.
TOOL_USE_FIELD = "claudecode/toolUseId"


@dataclass(slots=True)
class TurnTools:
    """The tools of the turn in progress, and the gate to call them through."""

    #: By server, and by the names that the program knows.
    tools: Mapping[str, Mapping[str, ShownTool]]
    gate: Gate | None = None
    #: The result of a call asked for the end of the turn.
    stopped: bool = False
    has_called: bool = False
    #: By the ids of their tool uses: calls whose results the session does not have yet.
    _calls: dict[str, CallId] = field(default_factory=dict)

    def begin(self, offers: Sequence[Offer], gate: Gate) -> None:
        self.tools, self.gate = expose(offers), gate
        self.stopped = self.has_called = False

    async def call(
        self, server: str, name: str, arguments: Mapping[str, Any], *, tool_use_id: str
    ) -> ToolResult:
        """Call a tool by the names that the program knows."""
        tool = self.tools[server].get(name)
        if tool is None:
            return ToolResult(f"Unknown tool: {name}.", failed=True)
        if _is_list(arguments, tool.parameters):
            return ToolResult(
                f"The arguments of {name} have to be an object, not a list.", failed=True
            )
        restored = tool.schema.restore(arguments)
        result = await self.make(tool.offer, restored, tool_use_id=tool_use_id)
        return fence(tool.offer, result)

    async def make(
        self, offer: Offer, arguments: Mapping[str, Any], *, tool_use_id: str
    ) -> ToolResult:
        if self.gate is None:
            return ToolResult("The turn is over.", failed=True, stop=True)
        self.has_called = True
        result = await self.gate.call(offer, arguments)
        self.stopped |= result.stop
        if tool_use_id and result.call_id is not None:
            self._calls[tool_use_id] = result.call_id
        return result

    def take_calls(self, tool_use_ids: Iterable[str]) -> tuple[CallId, ...]:
        """Take the calls whose results the session has by now."""
        return tuple(self._calls.pop(one) for one in tool_use_ids if one in self._calls)


def expose(offers: Sequence[Offer]) -> dict[str, dict[str, ShownTool]]:
    """Give every tool a name that the program accepts, by server."""
    exposed: dict[str, dict[str, ShownTool]] = {}
    for offer in offers:
        server = re.sub(r"[^A-Za-z0-9_-]", "_", offer.tool.server)
        prefix = f"mcp__{server}__"
        name = shown_name(offer.tool.name, prefix=prefix).removeprefix(prefix)
        exposed.setdefault(server, {})[name] = show_tool(offer)
    return exposed


def serve(turn_tools: TurnTools) -> dict[str, McpSdkServerConfig]:
    return {
        server: McpSdkServerConfig(type="sdk", name=server, instance=_server(server, turn_tools))
        for server in turn_tools.tools
    }


def digest(offers: Sequence[Offer]) -> str:
    """Hash everything that an agent sees of its tools."""
    shown = [
        [offer.tool.server, offer.tool.name, offer.description, dict(offer.parameters)]
        for offer in offers
    ]
    return hashlib.sha256(canonical_json({"tools": shown}).encode()).hexdigest()


def _server(name: str, turn_tools: TurnTools) -> Server:
    async def list_tools(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=shown,
                    description=tool.offer.description,
                    input_schema=dict(tool.parameters),
                    _meta={"anthropic/maxResultSizeChars": MAX_RESULT_CHARS},
                )
                for shown, tool in turn_tools.tools[name].items()
            ]
        )

    async def call_tool(
        context: ServerRequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool_use_id = str((context.meta or {}).get(TOOL_USE_FIELD, ""))
        result = await turn_tools.call(
            name, params.name, params.arguments or {}, tool_use_id=tool_use_id
        )
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=result.text), *_images(result)],
            # The program would not stop after a failed call.
            is_error=result.failed and not result.stop,
        )

    return Server(name, on_list_tools=list_tools, on_call_tool=call_tool)


def _images(result: ToolResult) -> list[types.ImageContent]:
    return [
        types.ImageContent(
            type="image",
            data=base64.b64encode(blob.data).decode(),
            mime_type=blob.media_type,
        )
        for blob in result.blobs
    ]


def _is_list(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Return whether the program made an object of a list, with the indexes as names."""
    numbers = [str(number) for number in range(len(arguments))]
    return (
        bool(numbers) and list(arguments) == numbers and "0" not in parameters.get("properties", {})
    )
