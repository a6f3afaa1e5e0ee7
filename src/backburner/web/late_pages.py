"""Loads the page at the first request for it: its libraries take a tenth of a second and 6 MB.

Nothing that renders is imported here.
"""

import asyncio
from importlib import import_module

from fastapi import FastAPI
from starlette.routing import Route
from starlette.types import Receive, Scope, Send


def add_late_pages(api: FastAPI) -> None:
    """Add what answers each address that the API does not have."""
    late = _LatePages(api)
    late.route = Route("/{path:path}", late, include_in_schema=False)
    api.routes.append(late.route)


class _LatePages:
    route: Route

    def __init__(self, api: FastAPI) -> None:
        self._api = api
        self._loading: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._loading is None or (self._loading.done() and self._loading.exception()):
            self._loading = asyncio.create_task(self._load())
        await asyncio.shield(self._loading)
        # Again from the beginning, now that the page is there.
        await self._api.router(scope, receive, send)

    async def _load(self) -> None:
        pages = await asyncio.to_thread(import_module, "backburner.web.page_routes")
        self._api.routes.remove(self.route)
        pages.add_pages(self._api)
