"""A stage with the API in front of it, asked in this process."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from stages import clock, database

from backburner.api.app import build_api
from backburner.bus.local import LocalBus
from backburner.store.db import Database
from backburner.testing.engine import ScriptedEngine
from backburner.testing.stage import Stage

__all__ = ["clock", "database"]


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine())


@pytest.fixture
async def browser(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    """Something that keeps cookies and sends JSON."""
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    transport = httpx2.ASGITransport(app=api)
    headers = {"content-type": "application/json"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as client:
        yield client
