"""Our tools for clients outside, made when the first one comes: what speaks MCP loads slowly."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from backburner.actions.deps import Deps
from backburner.api.routes.mcp import Serve


def serve_tools(deps: Deps) -> Serve:
    loading: asyncio.Task[Serve] | None = None

    async def serve(*call: Any) -> None:
        nonlocal loading
        if loading is None:
            # In a thread: everybody else goes on meanwhile.
            loading = asyncio.create_task(asyncio.to_thread(_load, deps))
        await (await asyncio.shield(loading))(*call)

    return serve


def _load(deps: Deps) -> Callable[..., Awaitable[None]]:
    from backburner.tools.mcp_server import McpServer  # noqa: PLC0415

    return McpServer(deps)
