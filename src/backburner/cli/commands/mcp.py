"""`backburner mcp`: our tools for an editor, or another agent, that talks to a program it starts.

It holds nothing itself: whatever it is asked, it asks the server, found anew each time, because
that may have been started again meanwhile.
"""

import asyncio
import signal
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import click
import httpx2
from mcp import MCPError
from mcp.server import Server as McpServer
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp_types import (
    CLIENT_INFO_META_KEY,
    INTERNAL_ERROR,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)

from backburner import __version__
from backburner.cli.client import NoServer, NotSignedIn, Server, check_address
from backburner.cli.server_options import Find, finds
from backburner.core.errors import BackburnerError
from backburner.tools.mcp_server import SERVER_INSTRUCTIONS, SERVER_NAME

#: Seconds until it answers that somebody is there; what is asked for may take its time.
CONNECT = 10.0
_HELP = """Let an editor or another agent use the tools, over its pipes.

It is started by the program that uses it, and needs a server that runs. For Claude Code, once:

\b
    claude mcp add backburner -- backburner mcp

Other programs take the command and its argument in a file of theirs:

\b
    {"mcpServers": {"backburner": {"command": "backburner", "args": ["mcp"]}}}

Programs that speak HTTP can do without it, and ask the server at /mcp with a token:

\b
    claude mcp add --transport http backburner http://127.0.0.1:8484/mcp \\
      --header "Authorization: Bearer $(backburner token create --name editor \\
      --scope read --scope write)"
"""
Context = ServerRequestContext[Any, Any]


@click.command("mcp", help=_HELP)
@finds
def command(find: Find) -> None:
    # It holds nothing that would have to be put away, and waits for a line that may never come.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    asyncio.run(_serve(find))


async def _serve(find: Find) -> None:
    # Nothing of the environment: a proxy named there would get the token.
    timeout = httpx2.Timeout(None, connect=CONNECT)
    context = await asyncio.to_thread(ssl.create_default_context)
    async with (
        httpx2.AsyncClient(timeout=timeout, verify=context, trust_env=False) as http,
        stdio_server() as (reading, writing),
    ):
        server = build_server(Asking(find, http))
        await server.run(reading, writing, server.create_initialization_options())


class Asking:
    """Passes on what was asked, one request for each, and what came of it."""

    def __init__(self, find: Find, http: httpx2.AsyncClient) -> None:
        self._find = find
        self._http = http

    async def __call__(self, context: Context, method: str, asked: Mapping[str, Any]) -> Any:
        server = await asyncio.to_thread(self._find)
        check_address(server.address)
        params = {**asked, "_meta": _who_asks(context)}
        answer = await self._post(server, {"method": method, "params": params})
        if "error" in answer:
            error = answer["error"]
            raise MCPError(error["code"], error["message"], error.get("data"))
        return answer["result"]

    async def _post(self, server: Server, request: Mapping[str, Any]) -> Any:
        headers = {"authorization": f"Bearer {server.token}", "accept": "application/json"}
        body = {"jsonrpc": "2.0", "id": 1, **request}
        try:
            answer = await self._http.post(f"{server.address}/mcp", json=body, headers=headers)
            return _read(answer)
        except httpx2.HTTPError as error:
            raise NoServer(
                f"No Backburner answers at {server.address}.", hint="Start it with `backburner up`."
            ) from error


def build_server(ask: Callable[..., Any]) -> McpServer[Any]:
    async def list_tools(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        try:
            return ListToolsResult.model_validate(await ask(context, "tools/list", {}))
        except BackburnerError as error:
            raise MCPError(INTERNAL_ERROR, _complain(error)) from error

    async def call_tool(context: Context, asked: CallToolRequestParams) -> CallToolResult:
        call = {"name": asked.name, "arguments": asked.arguments or {}}
        try:
            return CallToolResult.model_validate(await ask(context, "tools/call", call))
        except BackburnerError as error:
            told = TextContent(type="text", text=_complain(error))
            return CallToolResult(content=[told], is_error=True)

    return McpServer(
        SERVER_NAME,
        version=__version__,
        title="Backburner",
        instructions=SERVER_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _complain(error: BackburnerError) -> str:
    """Say it to whoever looks at the program too: not every editor shows what it is told."""
    click.echo(str(error), err=True)
    return str(error)


def _read(answer: httpx2.Response) -> Any:
    try:
        found = answer.json()
    except ValueError:
        found = {}
    if "jsonrpc" in found:
        return found
    if answer.status_code == 401:
        raise NotSignedIn(
            "The server does not know this token.",
            hint="Start `backburner up` with this data folder, or give another with --token-file.",
        )
    detail = found.get("detail") or f"The server answered {answer.status_code}."
    raise BackburnerError(str(detail), hint=str(found.get("hint", "")))


def _who_asks(context: Context) -> dict[str, Any]:
    """Pass on who the client is, so that what it hands out has a name."""
    client = context.session.client_params
    if client is None:
        return {}
    return {CLIENT_INFO_META_KEY: client.client_info.model_dump(by_alias=True, exclude_none=True)}
