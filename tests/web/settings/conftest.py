"""A stage with the API and the page in front of it, asked in this process."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from support.people.page import Page
from support.stage.api_stage import ask, ask_as, mate
from support.stage.make import USER
from support.stage.stage import Stage
from support.stage.stages import clock, database, set_up, stage

from backburner.actions.accounts import sign_in
from backburner.api.app import build_api
from backburner.web.page_routes import add_pages

__all__ = ["ask", "ask_as", "clock", "database", "mate", "set_up", "stage"]


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    add_pages(api)
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.fixture
async def browser(stage: Stage, client: httpx2.AsyncClient) -> AsyncIterator[httpx2.AsyncClient]:
    """The browser of the user, with both halves of its session."""
    link = await sign_in.issue_link(stage.deps, stage.user(USER))
    headers = {"content-type": "application/json", "user-agent": "Mozilla/5.0 (Linux) Firefox/130"}
    transport = client._transport
    async with Page(transport=transport, base_url="http://localhost", headers=headers) as page:
        assert (await page.post("/api/sign-in", json={"link": link.secret})).status_code == 200
        yield page
