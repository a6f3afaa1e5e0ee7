"""Serves our tools to clients outside, over MCP: the same ones that agents are offered.

There is no run and no gate behind such a call. The client asks its own user before it makes one,
so only tools are offered that change nothing outside.
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
from backburner.core.errors import BackburnerError
from backburner.ports import Offer, ToolResult
from backburner.tools.jobs import job_offers
from backburner.tools.memories import memory_offers
from backburner.tools.tasks import task_offers

SERVER_NAME = "backburner"
SERVER_INSTRUCTIONS = (
    "Backburner works in the background for its user, also when you are gone."
    " Hand it work with background_task and go on; wait with background_block, and read with"
    " background_output. What comes back later or again and again is a task: task_add."
    " What it works with are its own tools and folders, not yours."
)

#: Requests as ASGI has them.
AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
Context = ServerRequestContext[Any, Any]
#: Makes tools for wherever work is handed out from.
OfferGroup = Callable[[Deps, Origin], Sequence[Offer]]
OFFER_GROUPS: tuple[OfferGroup, ...] = (job_offers, task_offers, memory_offers)

_log = structlog.get_logger(__name__)


def client_offers(
    deps: Deps, origin: Origin, groups: Iterable[OfferGroup] = OFFER_GROUPS
) -> Sequence[Offer]:
    """Collect what a client may be offered."""
    everything = (offer for group in groups for offer in group(deps, origin))
    return [offer for offer in everything if offer.tool.free]


class McpServer:
    """Answers requests over HTTP, each by itself: none needs what another left behind."""

    def __init__(self, deps: Deps, groups: Iterable[OfferGroup] = OFFER_GROUPS) -> None:
        self._deps = deps
        self._groups = tuple(groups)

    async def __call__(
        self, caller: Caller, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend
    ) -> None:
        server = self.server(caller)
        # One for each request: it costs little, and cancelling the request ends all it began.
        manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def server(self, caller: Caller) -> Server[Any]:
        """Make what one caller talks to."""
        shown = {
            offer.tool.name: offer
            for offer in client_offers(
                self._deps, Origin(caller.user, mcp_clients.NOWHERE), self._groups
            )
            if _may_call(caller, offer)
        }

        async def list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
            return ListToolsResult(tools=[_describe(offer) for offer in shown.values()])

        async def call_tool(context: Context, asked: CallToolRequestParams) -> CallToolResult:
            if asked.name not in shown:
                return _tell(_refusal(caller, asked.name))
            reads = shown[asked.name].read_only
            return _tell(await self._call(caller, context, asked, reads=reads))

        return Server(
            SERVER_NAME,
            version=__version__,
            title="Backburner",
            instructions=SERVER_INSTRUCTIONS,
            get_tool_input_schema=lambda name: shown[name].parameters if name in shown else None,
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )

    async def _call(
        self, caller: Caller, context: Context, asked: CallToolRequestParams, *, reads: bool
    ) -> ToolResult:
        try:
            if reads:
                # Nothing is made by looking.
                origin = await mcp_clients.find_origin(self._deps, caller)
            else:
                client = _client(context)
                origin = await mcp_clients.make_origin(self._deps, caller, client=client)
            offers = client_offers(self._deps, origin, self._groups)
            offer = next(offer for offer in offers if offer.tool.name == asked.name)
            return await offer.run(asked.arguments or {})
        except BackburnerError as error:
            return ToolResult(str(error), failed=True)
        except Exception:  # noqa: BLE001 (whoever called is to be told, and nothing of the inside)
            _log.exception("a tool failed that was called from outside", tool=asked.name)
            return ToolResult(f"{asked.name} failed because of a fault of its own.", failed=True)


def _may_call(caller: Caller, offer: Offer) -> bool:
    return caller.may(Scope.READ if offer.read_only else Scope.WRITE)


def _refusal(caller: Caller, name: str) -> ToolResult:
    missing = [scope for scope in (Scope.READ, Scope.WRITE) if not caller.may(scope)]
    why = f" This token is not good for: {', '.join(missing)}." if missing else ""
    return ToolResult(f"There is no tool {name!r} for you.{why}", failed=True)


def _describe(offer: Offer) -> Tool:
    return Tool(
        name=offer.tool.name,
        description=offer.description,
        input_schema=dict(offer.parameters),
        annotations=ToolAnnotations(read_only_hint=offer.read_only, open_world_hint=False),
    )


def _tell(result: ToolResult) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=result.text)], is_error=result.failed
    )


def _client(context: Context) -> str:
    """Read what the client calls itself, where it says so with each request."""
    said = (context.meta or {}).get(CLIENT_INFO_META_KEY)
    if not isinstance(said, dict):
        return ""
    name = said.get("title") or said.get("name")
    return name if isinstance(name, str) else ""
