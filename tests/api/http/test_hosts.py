"""The Host check."""

from typing import cast

import httpx2
import pytest

from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.app.machines import NoTools
from backburner.ports import Store


async def get_health(host: str) -> httpx2.Response:
    no_deps = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    api = build_api(no_deps, hosts={"localhost", "127.0.0.1", "[::1]"}, checks={})
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get("/health", headers={"Host": host})


@pytest.mark.parametrize("host", ["localhost", "LocalHost:9000", "127.0.0.1:8484", "[::1]:8484"])
async def test_known_hosts_are_served_on_any_port(host: str) -> None:
    assert (await get_health(host)).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example:8484",
        "localhost:x",
        "",
        ":1",
    ],
)
async def test_other_hosts_are_refused_with_problem_details(host: str) -> None:
    answer = await get_health(host)

    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 421
    assert "localhost" in answer.json()["detail"]
