"""Serves the built-in tools to external clients over MCP.

Such a call has no run and no gate: the client asks its own user before it calls a tool. So only
tools without external effects are offered.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any

import structlog
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import (
    CLIENT_INFO_META_KEY,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.actions.work import mcp_clients
from backburner.core.accounts import Caller, Scope
from backburner.core.conversation import Use
from backburner.core.errors import BackburnerError
from backburner.ports import Offer, ToolResult
from backburner.tools.jobs import job_offers
from backburner.tools.memories import MEMORY_TOOLS, memory_offers
from backburner.tools.tasks import task_offers

SERVER_NAME = "backburner"
SERVER_INSTRUCTIONS = (
    "Backburner works in the background for its user, also after you have ended."
    " Start a job with background_task and continue; wait for it with background_block, and read"
    " its result with background_output. For work that is for later or repeats, use task_add."
    " Backburner uses its own tools and folders, not yours."
)

AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
Context = ServerRequestContext[Any, Any]
#: Makes the tools for calls from an origin.
OfferGroup = Callable[[Deps, Origin], Sequence[Offer]]
OFFER_GROUPS: tuple[OfferGroup, ...] = (job_offers, task_offers, memory_offers)

_log = structlog.get_logger(__name__)


def client_offers(
    deps: Deps, origin: Origin, groups: Iterable[OfferGroup] = OFFER_GROUPS
) -> Sequence[Offer]:
    """Collect the tools that a client may call."""
    offers = (offer for group in groups for offer in group(deps, origin))
    return [offer for offer in offers if offer.tool.free]


class McpServer:
    """Answers MCP requests over HTTP, without state between requests."""

    def __init__(self, deps: Deps, groups: Iterable[OfferGroup] = OFFER_GROUPS) -> None:
        self._deps = deps
        self._groups = tuple(groups)

    async def __call__(
        self, caller: Caller, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend
    ) -> None:
        server = self.server(caller)
        # One for each request: it is cheap, and cancelling the request ends everything it started.
        manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def server(self, caller: Caller) -> Server[Any]:
        """Make the MCP server for one caller."""
        allowed = {
            offer.tool.name: offer
            for offer in client_offers(self._deps, Origin.by(caller), self._groups)
            if _may_call(caller, offer)
        }

        async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
            return ListToolsResult(tools=[_describe(offer) for offer in allowed.values()])

        async def call_tool(context: Context, call: CallToolRequestParams) -> CallToolResult:
            if call.name not in allowed:
                return _convert(_refusal(caller, call.name))
            read_only = allowed[call.name].read_only
            return _convert(await self._call(caller, context, call, read_only=read_only))

        return Server(
            SERVER_NAME,
            version=__version__,
            title="Backburner",
            instructions=SERVER_INSTRUCTIONS,
            get_tool_input_schema=lambda name: (
                allowed[name].parameters if name in allowed else None
            ),
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )

    async def _call(
        self, caller: Caller, context: Context, call: CallToolRequestParams, *, read_only: bool
    ) -> ToolResult:
        try:
            if read_only:
                # Reading must not create the client's conversation.
                origin = await mcp_clients.find_origin(self._deps, caller)
            else:
                client = _client_name(context)
                origin = await mcp_clients.ensure_origin(self._deps, caller, client=client)
            offers = client_offers(self._deps, origin, self._groups)
            offer = next(offer for offer in offers if offer.tool.name == call.name)
            return await offer.run(call.arguments or {})
        except BackburnerError as error:
            return ToolResult(str(error), failed=True)
        except Exception:  # noqa: BLE001 (the client gets an answer without internal details)
            _log.exception("mcp_call.failed", tool=call.name)
            return ToolResult(f"{call.name} failed with an internal error.", failed=True)


def _may_call(caller: Caller, offer: Offer) -> bool:
    return caller.may(Scope.READ if offer.read_only else Scope.WRITE)


def _refusal(caller: Caller, name: str) -> ToolResult:
    missing = [scope for scope in (Scope.READ, Scope.WRITE) if not caller.may(scope)]
    reason = f" This token lacks the scope: {', '.join(missing)}." if missing else ""
    if name in MEMORY_TOOLS and not Origin.by(caller).may_use(Use.MEMORIES):
        reason += " It was created without `--with memories`."
    return ToolResult(f"There is no tool {name!r} for this token.{reason}", failed=True)


def _describe(offer: Offer) -> Tool:
    return Tool(
        name=offer.tool.name,
        description=offer.description,
        input_schema=dict(offer.parameters),
        annotations=ToolAnnotations(read_only_hint=offer.read_only, open_world_hint=False),
    )


def _convert(result: ToolResult) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=result.text)], is_error=result.failed
    )


def _client_name(context: Context) -> str:
    """Read the client's name, if the request contains it."""
    info = (context.meta or {}).get(CLIENT_INFO_META_KEY)
    if not isinstance(info, dict):
        return ""
    name = info.get("title") or info.get("name")
    return name if isinstance(name, str) else ""
