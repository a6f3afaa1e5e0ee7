"""What tests of the API share: a stage with the API in front of it, asked in this process."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from support.people.page import Page
from support.stage.api_stage import ask, ask_as, client, mate
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.api.app import build_api

__all__ = ["ask", "ask_as", "client", "clock", "database", "mate", "set_up", "stage"]


@pytest.fixture
async def browser(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    """A page of ours that sends JSON."""
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    transport = httpx2.ASGITransport(app=api)
    headers = {"content-type": "application/json"}
    async with Page(transport=transport, base_url="http://localhost", headers=headers) as page:
        yield page
