"""Clients that speak MCP, and a few tools that say where they were called from."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from fastapi import FastAPI
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation, TextContent
from pydantic import Field

from backburner.actions.deps import Deps
from backburner.actions.origin import Origin
from backburner.api.app import build_api
from backburner.core.accounts import Scope
from backburner.core.errors import Conflict
from backburner.core.ids import UserId
from backburner.ports import Offer
from backburner.tools.define import Arguments, define_tool
from backburner.tools.mcp_server import McpServer
from support.people.tokens import issue_token
from support.stage.make import USER
from support.stage.stage import Stage

ALL = (Scope.READ, Scope.WRITE)
INFO = Implementation(name="an-editor", title="An Editor", version="1")


class Text(Arguments):
    text: str = Field(default="", description="Any.")


class Bench:
    def __init__(self) -> None:
        self.began, self.ended = asyncio.Event(), asyncio.Event()
        self.origins: list[Origin] = []

    def offers(self, deps: Deps, origin: Origin) -> Sequence[Offer]:
        async def look(asked: Text) -> str:
            """Look."""
            self.origins.append(origin)
            return f"seen: {asked.text}"

        async def change(asked: Text) -> str:
            """Change something."""
            self.origins.append(origin)
            if asked.text == "conflict":
                raise Conflict("It does not fit.", hint="Try another.")
            if asked.text == "fault":
                raise ZeroDivisionError("inside")
            return f"changed: {asked.text}"

        async def wait(asked: Text) -> str:
            """Wait for ever."""
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.ended.set()
            return asked.text

        del deps
        return (
            define_tool("look", Text, look, free=True, read_only=True),
            define_tool("change", Text, change, free=True),
            define_tool("wait", Text, wait, free=True),
            define_tool("costly", Text, change),
        )


def build(stage: Stage, bench: Bench) -> FastAPI:
    tools = McpServer(stage.deps, [bench.offers])
    return build_api(stage.deps, hosts={"localhost", "127.0.0.1"}, checks={}, tools=tools)


async def make_token(
    stage: Stage, user: UserId = USER, scopes: Iterable[Scope] = ALL, **more: Any
) -> str:
    given = {"name": "editor"} | more
    return await issue_token(stage.deps, stage.user(user), scopes, **given)


@asynccontextmanager
async def over_http(
    http: httpx2.AsyncClient, secret: str, mode: Any = "auto"
) -> AsyncIterator[Client]:
    http.headers["authorization"] = f"Bearer {secret}"
    transport = streamable_http_client("http://localhost/mcp", http_client=http)
    async with Client(transport, mode=mode, client_info=INFO) as opened:
        yield opened


@asynccontextmanager
async def over_pipes(
    *arguments: str, env: dict[str, str] | None = None, mode: Any = "auto"
) -> AsyncIterator[Client]:
    """Start `backburner mcp`, as an editor does it."""
    program = ["-P", "-m", "backburner", "mcp", *arguments]
    started = StdioServerParameters(
        command=sys.executable, args=program, env={**os.environ, **(env or {})}
    )
    async with Client(started, mode=mode, client_info=INFO) as opened:
        yield opened


def text(result: CallToolResult) -> str:
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
