"""`/health`, `/ready` and the names the server answers to, in process."""

from typing import cast

import httpx2
import pytest
from fastapi import FastAPI

from backburner import __version__
from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.api.routes.health import Check
from backburner.app.machines import NoTools
from backburner.ports import Store


async def passes() -> None:
    pass


async def fails() -> None:
    raise OSError("a path nobody else should see")


def build(**checks: Check) -> FastAPI:
    # Nothing of what is asked here comes from a database.
    nothing = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    return build_api(nothing, hosts={"localhost", "127.0.0.1", "[::1]"}, checks=checks)


async def get(api: FastAPI, path: str, host: str = "localhost") -> httpx2.Response:
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return await client.get(path, headers={"Host": host})


async def test_health_answers_even_when_nothing_is_ready() -> None:
    answer = await get(build(database=fails), "/health")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "version": __version__}


async def test_it_is_ready_when_every_check_passes() -> None:
    answer = await get(build(database=passes, disk=passes), "/ready")

    assert answer.status_code == 200
    assert answer.json() == {"status": "ready", "checks": {"database": "ok", "disk": "ok"}}


async def test_it_names_the_check_that_failed_but_not_the_reason() -> None:
    answer = await get(build(database=fails, disk=passes), "/ready")

    assert answer.status_code == 503
    assert answer.json() == {"status": "not ready", "checks": {"database": "failed", "disk": "ok"}}


@pytest.mark.parametrize("host", ["localhost", "LocalHost:9000", "127.0.0.1:8484", "[::1]:8484"])
async def test_its_own_names_are_answered_whatever_the_port(host: str) -> None:
    assert (await get(build(), "/health", host)).status_code == 200


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
async def test_any_other_name_is_refused_with_a_problem_body(host: str) -> None:
    answer = await get(build(), "/health", host)

    assert answer.status_code == 421
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == 421
    assert "localhost" in answer.json()["detail"]


async def test_the_description_of_the_api_is_served_and_no_page_that_loads_scripts() -> None:
    api = build()

    assert "/ready" in (await get(api, "/api/openapi.json")).json()["paths"]
    assert (await get(api, "/docs")).status_code == 404
    assert (await get(api, "/redoc")).status_code == 404
