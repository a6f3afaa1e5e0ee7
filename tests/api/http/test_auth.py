"""Who is let in, and what becomes of errors."""

from collections.abc import AsyncIterator

import httpx2
import pytest
from fastapi import APIRouter
from support.doubles.clock import SetClock
from support.people.tokens import issue_token
from support.stage.make import STRANGER, USER
from support.stage.stage import Stage

from backburner.actions.accounts import sign_in
from backburner.api.app import build_api
from backburner.api.http.auth import (
    SESSION_COOKIE,
    SESSION_HEADER,
    Operator,
    Reader,
    Writer,
    split_session_secret,
)
from backburner.core.accounts import Scope
from backburner.core.errors import Conflict
from backburner.core.ids import UserId


def routes() -> APIRouter:
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

    return router


@pytest.fixture
async def client(stage: Stage) -> AsyncIterator[httpx2.AsyncClient]:
    api = build_api(stage.deps, hosts={"localhost"}, checks={})
    api.include_router(routes())
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


async def token(stage: Stage, *scopes: Scope, user: UserId = USER) -> str:
    return await issue_token(stage.deps, stage.user(user), scopes, name="Test")


async def session(stage: Stage) -> str:
    user = stage.user()
    issued = await stage.deps.store.transact(lambda tx: sign_in.start_session(tx, user))
    return issued.secret


def keep(client: httpx2.AsyncClient, secret: str) -> None:
    """Have both halves of a session, as our page does."""
    cookie, client.headers[SESSION_HEADER] = split_session_secret(secret)
    client.cookies.set(SESSION_COOKIE, cookie)


async def test_half_a_session_opens_nothing(stage: Stage, client: httpx2.AsyncClient) -> None:
    """Every port of a host gets its cookies."""
    secret = await session(stage)
    cookie, key = split_session_secret(secret)
    for stolen in (cookie, key, secret):
        client.cookies.set(SESSION_COOKIE, stolen)
        for more in ({}, {SESSION_HEADER: ""}, {SESSION_HEADER: cookie}, {SESSION_HEADER: "x"}):
            assert (await client.get("/see", headers=more)).status_code == 401
        client.cookies.clear()
        for headers in ({SESSION_HEADER: stolen}, {"authorization": f"Bearer {stolen}"}):
            assert (await client.get("/see", headers=headers)).status_code == 401

    keep(client, secret)
    assert (await client.get("/see")).json() == "u_user"


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
    keep(client, await session(stage))
    assert (await client.get("/see")).json() == "u_user"


async def test_a_header_counts_before_a_cookie_and_a_bad_one_is_not_made_up_for(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    mine, theirs = await session(stage), await token(stage, Scope.READ, user=STRANGER)
    keep(client, mine)

    answer = await client.get("/see", headers={"authorization": f"Bearer {theirs}"})
    assert answer.json() == STRANGER
    for bad in ("Bearer no", "Bearer", "Basic eDp5", "", f"Bearer {mine}"):
        answer = await client.get("/see", headers={"authorization": bad})
        assert answer.status_code == 401, bad
    keep(client, theirs)
    assert (await client.get("/see")).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 409),
        ({"content-type": "application/json; charset=utf-8", "origin": "http://localhost"}, 409),
        ({"content-type": "application/json", "sec-fetch-site": "same-origin"}, 409),
        ({}, 415),
        ({"content-type": "text/plain", "origin": "http://localhost"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/json", "origin": "http://evil.example"}, 403),
        ({"content-type": "application/json", "origin": "https://localhost"}, 403),
        ({"content-type": "application/json", "origin": "http://localhost:81"}, 403),
        ({"content-type": "application/json", "origin": "null"}, 403),
        ({"content-type": "application/json", "sec-fetch-site": "cross-site"}, 403),
        ({"content-type": "application/json", "sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_with_a_cookie_only_our_own_pages_change_something(
    stage: Stage, client: httpx2.AsyncClient, headers: dict[str, str], status: int
) -> None:
    keep(client, await session(stage))
    assert (await client.post("/change", headers=headers)).status_code == status

    # A token is in the header because somebody put it there.
    headers["authorization"] = f"Bearer {await token(stage, Scope.WRITE)}"
    assert (await client.post("/change", headers=headers)).status_code == 409


async def test_with_a_cookie_pages_of_others_do_not_read_either(
    stage: Stage, client: httpx2.AsyncClient
) -> None:
    keep(client, await session(stage))

    assert (await client.get("/see", headers={"origin": "http://evil.example"})).status_code == 403
    assert (await client.get("/see", headers={"origin": "http://localhost"})).status_code == 200


async def test_behind_a_proxy_the_public_address_is_ours(stage: Stage) -> None:
    api = build_api(
        stage.deps, hosts={"localhost", "b.example"}, checks={}, public_url="https://b.example"
    )
    api.include_router(routes())
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://b.example") as client:
        keep(client, await session(stage))
        kind = {"content-type": "application/json"}
        ours = await client.post("/change", headers=kind | {"origin": "https://b.example"})
        plain = await client.post("/change", headers=kind | {"origin": "http://b.example"})

    assert (ours.status_code, plain.status_code) == (409, 403)


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
    secret = await issue_token(
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
