"""`backburner mcp`: serves the tools over stdio to an editor or agent that starts it.

It keeps no state: every request is forwarded to the server, which is looked up each time because
it may have been restarted.
"""

import asyncio
import json
import shlex
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
from backburner.cli.command_name import command_name, program_path
from backburner.cli.server_options import FindServer, with_server_finder
from backburner.core.errors import BackburnerError
from backburner.tools.mcp_server import SERVER_INSTRUCTIONS, SERVER_NAME

#: For connecting only; a tool call may take as long as it needs.
CONNECT_TIMEOUT_SECONDS = 10.0
_CONFIGURATION = {"command": program_path(), "args": ["mcp"]}
_HELP = f"""Serve the tools over stdio (MCP).

An editor or agent starts this command; the server must be running. To add it to Claude Code:

\b
    claude mcp add backburner -- {shlex.quote(program_path())} mcp

Other clients have a configuration file:

\b
    {json.dumps({"mcpServers": {"backburner": _CONFIGURATION}})}

Clients that support HTTP can connect to the server directly, with a token:

\b
    claude mcp add --transport http backburner http://127.0.0.1:8484/mcp \\
      --header "Authorization: Bearer $({command_name()} token create \\
      --name editor --scope read --scope write)"
"""
Context = ServerRequestContext[Any, Any]


@click.command("mcp", help=_HELP)
@with_server_finder
def mcp(find_server: FindServer) -> None:
    # There is nothing to clean up, and reading stdin could block forever.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    asyncio.run(_serve(find_server))


async def _serve(find_server: FindServer) -> None:
    # Without the environment: a proxy configured there would receive the token.
    timeout = httpx2.Timeout(None, connect=CONNECT_TIMEOUT_SECONDS)
    context = await asyncio.to_thread(ssl.create_default_context)
    async with (
        httpx2.AsyncClient(timeout=timeout, verify=context, trust_env=False) as http,
        stdio_server() as (reading, writing),
    ):
        server = build_server(Forwarder(find_server, http))
        await server.run(reading, writing, server.create_initialization_options())


class Forwarder:
    """Forwards each MCP request to the server in one HTTP request."""

    def __init__(self, find_server: FindServer, http: httpx2.AsyncClient) -> None:
        self._find_server = find_server
        self._http = http

    async def __call__(self, context: Context, method: str, params: Mapping[str, Any]) -> Any:
        server = await asyncio.to_thread(self._find_server)
        check_address(server.address)
        request = {"method": method, "params": {**params, "_meta": _client_info(context)}}
        response = await self._post(server, request)
        if "error" in response:
            error = response["error"]
            raise MCPError(error["code"], error["message"], error.get("data"))
        return response["result"]

    async def _post(self, server: Server, request: Mapping[str, Any]) -> Any:
        headers = {"authorization": f"Bearer {server.token}", "accept": "application/json"}
        body = {"jsonrpc": "2.0", "id": 1, **request}
        try:
            response = await self._http.post(f"{server.address}/mcp", json=body, headers=headers)
            return _read(response)
        except httpx2.HTTPError as error:
            raise NoServer(
                f"Cannot reach Backburner at {server.address}.",
                hint="Start it with `backburner up`.",
            ) from error


def build_server(forward: Callable[..., Any]) -> McpServer[Any]:
    async def list_tools(context: Context, _: PaginatedRequestParams | None) -> ListToolsResult:
        try:
            return ListToolsResult.model_validate(await forward(context, "tools/list", {}))
        except BackburnerError as error:
            raise MCPError(INTERNAL_ERROR, _report(error)) from error

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        call = {"name": params.name, "arguments": params.arguments or {}}
        try:
            return CallToolResult.model_validate(await forward(context, "tools/call", call))
        except BackburnerError as error:
            content = TextContent(type="text", text=_report(error))
            return CallToolResult(content=[content], is_error=True)

    return McpServer(
        SERVER_NAME,
        version=__version__,
        title="Backburner",
        instructions=SERVER_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _report(error: BackburnerError) -> str:
    """Print an error to stderr as well: not every editor shows those of a tool."""
    click.echo(str(error), err=True)
    return str(error)


def _read(response: httpx2.Response) -> Any:
    try:
        content = response.json()
    except ValueError:
        content = {}
    if "jsonrpc" in content:
        return content
    if response.status_code == 401:
        raise NotSignedIn(
            "The server does not accept this token.",
            hint="Restart `backburner up` with this data folder, or use --token-file.",
        )
    detail = content.get("detail") or f"The server responded with status {response.status_code}."
    raise BackburnerError(str(detail), hint=str(content.get("hint", "")))


def _client_info(context: Context) -> dict[str, Any]:
    """Pass on the name of the client, after which its conversation is named."""
    client = context.session.client_params
    if client is None:
        return {}
    return {CLIENT_INFO_META_KEY: client.client_info.model_dump(by_alias=True, exclude_none=True)}
