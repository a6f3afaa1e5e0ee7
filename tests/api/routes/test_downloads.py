"""Addresses of downloads: who makes them, and who opens them."""

from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from io import BytesIO
from typing import IO

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.people import people
from support.people.page import Page
from support.people.tokens import issue_credential
from support.stage.api_stage import AskAs
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.actions.accounts import users
from backburner.api.app import build_api
from backburner.api.http.auth import SESSION_HEADER
from backburner.core.accounts import Act, Role, Scope
from backburner.store import tables

EXPORT, BACKUP = {"item": "export"}, {"item": "backup"}
OpenBrowser = Callable[[], Page]


async def copy_database() -> IO[bytes]:
    return BytesIO(b"all of it")


@pytest.fixture
def stage(set_up: Callable[..., Stage]) -> Stage:
    return set_up(copy_database=copy_database)


@pytest.fixture
async def open_browser(stage: Stage) -> AsyncIterator[OpenBrowser]:
    """Give a way to open browsers, each at a server of its own."""
    opened = list[Page]()

    def open_one() -> Page:
        api = build_api(stage.deps, hosts={"localhost"}, checks={})
        transport = httpx2.ASGITransport(app=api)
        opened.append(Page(transport=transport, base_url="http://localhost"))
        return opened[-1]

    yield open_one
    for browser in opened:
        await browser.aclose()


async def make(browser: httpx2.AsyncClient, body: dict[str, str] = EXPORT) -> str:
    made = await browser.post("/api/downloads", json=body)
    assert made.status_code == 201, made.text
    assert made.headers["cache-control"] == "no-store"
    return str(made.json()["address"])


async def follow(browser: Page, address: str) -> httpx2.Response:
    """Follow a link, with which a browser sends its cookie only."""
    request = browser.build_request("GET", address)
    request.headers.pop(SESSION_HEADER, None)
    return await browser.send(request)


async def signed_in(stage: Stage, browser: Page, login: str = "ada", **more: Role) -> Page:
    await people.add(stage, login, **more)
    await people.sign_in(browser, login)
    return browser


async def test_a_link_downloads_an_export_for_a_minute_at_any_server(
    stage: Stage, open_browser: OpenBrowser, clock: SetClock
) -> None:
    browser = await signed_in(stage, open_browser())
    address = await make(browser)
    at_another = open_browser()
    at_another.cookies = browser.cookies

    clock.advance(timedelta(seconds=59))
    for asked in (browser, browser, at_another):
        answer = await follow(asked, address)
        assert answer.status_code == 200
        assert answer.json()["profile"]["login"] == "ada"
        assert answer.headers["content-disposition"].startswith("attachment;")
        assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"

    clock.advance(timedelta(seconds=1))
    expired = await follow(browser, address)
    assert expired.status_code == 404
    assert "expired" in expired.json()["detail"]


async def test_without_the_cookie_of_its_session_an_address_opens_nothing(
    stage: Stage, open_browser: OpenBrowser, ask_as: AskAs
) -> None:
    browser = await signed_in(stage, open_browser())
    address = await make(browser)
    same_user, other_user = open_browser(), open_browser()
    await people.sign_in(same_user)
    await signed_in(stage, other_user, "bob", role=Role.OPERATOR)

    nobody = await follow(open_browser(), address)
    assert (nobody.status_code, nobody.json()["detail"]) == (401, "You are not signed in.")
    for stranger in (same_user, other_user):
        assert (await follow(stranger, address)).status_code == 404
    program = await ask_as(USER)
    assert (await program("GET", address)).status_code == 404
    assert (await follow(browser, address)).status_code == 200


async def test_a_changed_address_opens_nothing(stage: Stage, open_browser: OpenBrowser) -> None:
    browser = await signed_in(stage, open_browser(), role=Role.OPERATOR)
    other = await signed_in(stage, open_browser(), "bob")
    address = await make(browser)
    user, credential, expires, code = address.rpartition("/")[2].split(".")
    their = (await make(other)).rpartition("/")[2].split(".")
    for changed in (
        address.replace("export", "backup"),
        address.replace("export", "exports"),
        address[:-1],
        address + "0",
        address.removesuffix(code),
        "/api/downloads/export/x",
        "/api/downloads/export/%00.%00.1.2",
        f"/api/downloads/export/{user}.{credential}.{expires}.%C3%A9",
        f"/api/downloads/export/{user}.{credential}.{int(expires) + 60}.{code}",
        f"/api/downloads/export/{user}.{credential}.{expires}.{their[3]}",
        f"/api/downloads/export/{their[0]}.{their[1]}.{expires}.{code}",
        f"/api/downloads/export/{their[0]}.{credential}.{expires}.{code}",
    ):
        answer = await follow(browser, changed)
        assert (changed, answer.status_code) == (changed, 404)


async def test_the_cookie_alone_makes_no_address(stage: Stage, open_browser: OpenBrowser) -> None:
    """Every port of a host gets its cookies."""
    browser = await signed_in(stage, open_browser())
    thief = open_browser()
    thief.cookies = browser.cookies

    for headers in ({}, {SESSION_HEADER: "x"}):
        refused = await thief.post("/api/downloads", json=EXPORT, headers=headers)
        assert refused.status_code == 401
    # Nor does a page of another site, with both halves.
    refused = await browser.post(
        "/api/downloads", json=EXPORT, headers={"origin": "http://localhost:81"}
    )
    assert refused.status_code == 403


async def test_a_sign_out_ends_an_address(stage: Stage, open_browser: OpenBrowser) -> None:
    browser = await signed_in(stage, open_browser())
    address, cookies = await make(browser), dict(browser.cookies)
    left = open_browser()
    left.cookies.update(cookies)
    assert (await follow(left, address)).status_code == 200

    await browser.post("/api/sign-out", json={})

    assert (await follow(left, address)).status_code == 404


async def test_a_disabled_user_downloads_nothing(stage: Stage, open_browser: OpenBrowser) -> None:
    browser = await signed_in(stage, open_browser())
    address = await make(browser)
    # Not by the way that ends sessions as well: each of both has to be enough.
    stage.database.run(
        lambda tx: tx.connection.execute(tables.users.update().values(disabled_at=tx.now))
    )

    assert (await follow(browser, address)).status_code == 404


async def test_a_backup_needs_the_role_when_it_is_made_and_when_it_is_served(
    stage: Stage, open_browser: OpenBrowser
) -> None:
    browser = await signed_in(stage, open_browser(), role=Role.OPERATOR)
    member = await signed_in(stage, open_browser(), "bob")
    assert (await member.post("/api/downloads", json=BACKUP)).status_code == 403

    address = await make(browser, BACKUP)
    served = await follow(browser, address)
    assert (served.status_code, served.content) == (200, b"all of it")
    assert served.headers["content-security-policy"] == "sandbox; default-src 'none'"
    acts = await users.list_acts(stage.deps, None, limit=9)
    assert [entry.act for entry in acts.items].count(Act.BACKUP_MADE) == 1

    # Not by the way that ends sessions as well.
    stage.database.run(
        lambda tx: tx.connection.execute(tables.users.update().values(role="member"))
    )
    assert (await follow(browser, address)).status_code == 403


async def test_a_token_opens_what_it_made_and_what_its_scopes_allow(
    ask_as: AskAs, client: httpx2.AsyncClient
) -> None:
    reader, again = await ask_as(USER, Scope.READ), await ask_as(USER, Scope.READ)
    address = (await reader.do("POST", "/api/downloads", EXPORT))["address"]

    assert (await reader("GET", address)).status_code == 200
    for stranger in (again, await ask_as(MATE, Scope.READ)):
        assert (await stranger("GET", address)).status_code == 404
    assert (await client.get(address)).status_code == 401
    client.cookies.set("backburner", reader.token)
    assert (await client.get(address)).status_code == 404
    assert (await reader("POST", "/api/downloads", BACKUP)).status_code == 403
    writer = await ask_as(USER, Scope.WRITE)
    assert (await writer("POST", "/api/downloads", EXPORT)).status_code == 403
    assert (await reader("POST", "/api/downloads", {"item": "other"})).status_code == 422


async def test_a_revoked_token_ends_its_addresses(stage: Stage, ask_as: AskAs) -> None:
    owner = await ask_as(USER)
    token = await issue_credential(stage.deps, USER, [Scope.READ], name="A program")
    program = {"authorization": f"Bearer {token.secret}"}
    made = await owner("POST", "/api/downloads", EXPORT, headers=program)

    await owner.do("DELETE", f"/api/tokens/{token.id}")

    gone = await owner("GET", made.json()["address"], headers=program)
    assert gone.status_code == 401
