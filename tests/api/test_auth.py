"""Who is let in, and what becomes of errors."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter
from stages import clock, database

from backburner.actions import accounts
from backburner.api.app import build_api
from backburner.api.auth import COOKIE, Operator, Reader, Writer
from backburner.bus.local import LocalBus
from backburner.core.accounts import Scope
from backburner.core.errors import Conflict
from backburner.store.db import Database
from backburner.testing.clock import SetClock
from backburner.testing.engine import ScriptedEngine
from backburner.testing.stage import Stage

__all__ = ["clock", "database"]


@pytest.fixture
def stage(database: Database) -> Stage:
    return Stage(database, LocalBus(), ScriptedEngine())


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    router = APIRouter()

    @router.get("/see")
    async def see(caller: Reader) -> str:
        return caller.user

    @router.post("/change")
    async def change(caller: Writer) -> str:
        raise Conflict(f"{caller.user} cannot.", hint="Ask.")

    @router.get("/operate")
    async def operate(caller: Operator) -> str:
        return caller.user

    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    api.include_router(router)
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def token(stage: Stage, *scopes: Scope) -> str:
    return await accounts.issue_token(stage.deps, stage.user(), scopes, name="Test")


async def test_nobody_is_let_in_without_a_credential_that_is_good(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    good = await token(stage, Scope.READ)
    for headers in ({}, {"authorization": "Bearer no"}, {"authorization": f"Basic {good}"}):
        answer = await client.get("/see", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"

    assert (
        await client.get("/see", headers={"authorization": f"Bearer {good}"})
    ).json() == "u_user"
    client.cookies.set(COOKIE, good)
    assert (await client.get("/see")).json() == "u_user"


async def test_a_credential_is_good_for_its_scopes_only(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    reads = {"authorization": f"Bearer {await token(stage, Scope.READ)}"}
    all_of_them = {"authorization": f"Bearer {await token(stage, *Scope)}"}

    assert (await client.post("/change", headers=reads)).status_code == 403
    # A member cannot be given what needs the role.
    assert (await client.get("/operate", headers=all_of_them)).status_code == 403


async def test_one_that_has_expired_is_good_no_longer(
    stage: Stage, client: httpx2.AsyncClient, clock: SetClock
) -> None:
    until = clock.now
    secret = await accounts.issue_token(
        stage.deps, stage.user(), [Scope.READ], name="Test", expires_at=until
    )

    answer = await client.get("/see", headers={"authorization": f"Bearer {secret}"})

    assert answer.status_code == 401


async def test_an_error_says_what_is_wrong_and_what_to_do(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    headers = {"authorization": f"Bearer {await token(stage, Scope.WRITE)}"}
    answer = await client.post("/change", headers=headers)

    assert answer.status_code == 409
    assert answer.json() == {
        "type": "about:blank",
        "title": "Conflict",
        "status": 409,
        "detail": "u_user cannot.",
        "hint": "Ask.",
    }
