"""Parts that are loaded at their first use: their libraries are slow to import, and large."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from backburner.actions.deps import Deps
from backburner.gateway.addresses import IpNetwork
from backburner.ports import Network, WebPage

T = TypeVar("T")


def load_once(load: Callable[[], T]) -> Callable[[], Awaitable[T]]:
    """Return a function that loads something when it is first awaited, and again if that failed."""
    loading: asyncio.Task[T] | None = None

    async def loaded() -> T:
        nonlocal loading
        if loading is None or (loading.done() and loading.exception() is not None):
            # In a thread, so that everything else continues meanwhile.
            loading = asyncio.create_task(asyncio.to_thread(load))
        return await asyncio.shield(loading)

    return loaded


class LateNetwork:
    """The network of agents; `allow` are networks besides public addresses."""

    def __init__(self, *, allow: Iterable[IpNetwork] = ()) -> None:
        def load() -> Network:
            from backburner.gateway.network import CheckedNetwork  # noqa: PLC0415

            return CheckedNetwork(allow=allow)

        self._loaded = load_once(load)

    async def fetch(self, url: str, *, other_hosts: bool = False) -> WebPage:
        network = await self._loaded()
        return await network.fetch(url, other_hosts=other_hosts)


def serve_tools(deps: Deps) -> Callable[..., Awaitable[None]]:
    """Serve our tools to MCP clients."""

    def load() -> Callable[..., Awaitable[None]]:
        from backburner.tools.mcp_server import McpServer  # noqa: PLC0415

        return McpServer(deps)

    loaded = load_once(load)

    async def serve(*call: Any) -> None:
        await (await loaded())(*call)

    return serve
