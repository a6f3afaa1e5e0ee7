"""The fragments of the page over a stage: people ask for them as they ask the API."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from support.stage.api_stage import ask, ask_as, mate
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.api.app import build_api
from backburner.web.page_routes import add_pages

__all__ = ["ask", "ask_as", "client", "clock", "database", "mate", "set_up", "stage"]


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    add_pages(api)
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client
