"""Signing in and out: who gets a session, and what ends it."""

import asyncio
from datetime import timedelta

import httpx2
import pytest
from support.doubles.clock import SetClock
from support.people import people
from support.people.people import PASSWORD
from support.people.tokens import issue_token
from support.stage.make import OPERATOR
from support.stage.stage import Stage

from backburner.actions.accounts import credentials, sign_in, users
from backburner.api.http.auth import SESSION_COOKIE, SESSION_HEADER
from backburner.core.accounts import MAX_SIGN_IN_ATTEMPTS, Caller, Role, Scope
from backburner.core.errors import TooManyAttempts
from backburner.ports import HintKind

OTHER = "four words or even more"


async def is_in(browser: httpx2.AsyncClient, **more: object) -> bool:
    answer = await browser.get("/api/tokens", **more)  # type: ignore[arg-type]
    assert answer.status_code in (200, 401)
    return answer.status_code == 200


async def caller_of(stage: Stage, browser: httpx2.AsyncClient) -> Caller:
    secret = browser.cookies[SESSION_COOKIE] + browser.headers[SESSION_HEADER]
    caller = await credentials.identify(stage.deps, secret)
    assert caller
    return caller


def is_still_good(stage: Stage, caller: Caller) -> bool:
    held = [(caller.user, caller.credential)]
    return bool(stage.database.run(lambda tx: tx.credentials.valid(held, now=tx.now)))


async def test_with_login_and_password_one_gets_a_cookie(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    answer = await people.sign_in(browser, " Ada ")

    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"].lower()
    for part in ("httponly", "samesite=lax", "path=/"):
        assert part in cookie
    assert "secure" not in cookie
    assert browser.cookies[SESSION_COOKIE] not in answer.text
    assert await is_in(browser)
    # A page forgets what it keeps of somebody else.
    assert answer.json()["user"] == (await browser.get("/api/me")).json()["id"]


async def test_over_tls_the_cookie_never_leaves_it(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    body = {"login": "ada", "password": PASSWORD}
    answer = await browser.post("https://localhost/api/sign-in", json=body)

    assert "; secure" in answer.headers["set-cookie"].lower()


async def test_wrong_ones_are_told_nothing_about_what_is_wrong(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    disabled, _ = await people.add(stage), await people.add(stage, "bob")
    await users.add(stage.deps, actor=OPERATOR, login="new", name="", role=Role.MEMBER)
    await users.change(stage.deps, disabled, actor=OPERATOR, disabled=True)

    answers = [
        await people.sign_in(browser, "bob", OTHER),
        await people.sign_in(browser, "nobody"),
        await people.sign_in(browser, "ada"),
        await people.sign_in(browser, "new"),
        await people.sign_in(browser, "new", ""),
    ]

    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.text for answer in answers}) == 1
    assert SESSION_COOKIE not in browser.cookies


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"login": "ada"},
        {"password": PASSWORD},
        {"link": "x", "login": "ada", "password": PASSWORD},
        {"login": "ada", "password": PASSWORD, "scopes": ["operate"]},
        {"login": "ada", "password": "x" * 201},
    ],
)
async def test_a_request_that_is_neither_way_is_refused_and_not_quoted(
    browser: httpx2.AsyncClient, body: dict[str, str]
) -> None:
    answer = await browser.post("/api/sign-in", json=body)

    assert answer.status_code == 422
    assert PASSWORD not in answer.text
    assert "x" * 201 not in answer.text


async def test_no_page_of_somebody_else_signs_a_browser_in(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    answer = await people.sign_in(browser, headers={"origin": "http://evil.example"})

    assert answer.status_code == 403
    assert SESSION_COOKIE not in browser.cookies


async def test_an_account_is_tried_so_often_and_no_more(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    await people.add(stage)
    # From everywhere: one address would be stopped for itself.
    for number in range(MAX_SIGN_IN_ATTEMPTS):
        address = f"192.0.2.{number}"
        assert await sign_in.sign_in(stage.deps, "ada", OTHER, address=address) is None
    clock.advance(timedelta(minutes=5))

    with pytest.raises(TooManyAttempts) as caught:
        await sign_in.sign_in(stage.deps, "ada", PASSWORD, address="198.51.100.1")
    assert caught.value.retry_after == timedelta(minutes=10)
    # Whoever sits at the machine is not locked out by others.
    assert (await people.sign_in(browser)).status_code == 200
    clock.advance(timedelta(minutes=10))
    assert await sign_in.sign_in(stage.deps, "ada", PASSWORD, address="198.51.100.1")


async def test_attempts_on_this_machine_are_counted_together(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    for number in range(MAX_SIGN_IN_ATTEMPTS):
        address = ("::1", "127.0.0.77", "::ffff:127.0.0.2")[number % 3]
        assert await sign_in.sign_in(stage.deps, "ada", OTHER, address=address) is None

    answer = await people.sign_in(browser)

    assert (answer.status_code, answer.headers["retry-after"]) == (429, "900")


async def test_an_address_tries_so_often_and_no_more(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    await people.add(stage)
    for number in range(MAX_SIGN_IN_ATTEMPTS):
        assert (await people.sign_in(browser, f"user{number}")).status_code == 401

    assert (await people.sign_in(browser)).status_code == 429
    assert (await browser.post("/api/sign-in", json={"link": "x"})).status_code == 429
    clock.advance(timedelta(minutes=15))
    assert (await people.sign_in(browser)).status_code == 200


async def test_many_attempts_at_once_are_no_way_around_the_limit(stage: Stage) -> None:
    await people.add(stage)
    tries = [
        sign_in.sign_in(stage.deps, "ada", "", address=f"192.0.2.{number}")
        for number in range(2 * MAX_SIGN_IN_ATTEMPTS)
    ]
    results = await asyncio.gather(*tries, return_exceptions=True)

    assert results.count(None) == MAX_SIGN_IN_ATTEMPTS


async def test_who_signs_in_all_day_is_not_taken_for_somebody_who_guesses(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    for _ in range(MAX_SIGN_IN_ATTEMPTS + 1):
        assert (await people.sign_in(browser)).status_code == 200


async def test_signing_in_again_replaces_the_session(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    before = browser.cookies[SESSION_COOKIE]
    await people.sign_in(browser)

    assert browser.cookies[SESSION_COOKIE] != before
    assert await credentials.identify(stage.deps, before) is None
    assert await is_in(browser)


async def test_a_session_lives_from_its_last_use_on(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    clock.advance(timedelta(days=29))
    assert await is_in(browser)
    clock.advance(timedelta(days=29))
    assert await is_in(browser)
    clock.advance(timedelta(days=30))

    assert not await is_in(browser)


async def test_a_session_ends_however_often_it_is_used(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    await people.add(stage)
    cookie = (await people.sign_in(browser)).headers["set-cookie"]
    for _ in range(3):
        clock.advance(timedelta(days=29))
        assert await is_in(browser)
    clock.advance(timedelta(days=3))

    assert not await is_in(browser)
    assert f"Max-Age={90 * 24 * 3600};" in cookie


async def test_its_use_is_written_down_once_an_hour(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    times = []
    for _ in range(4):
        times.append((await browser.get("/api/sessions")).json()["items"][0]["used_at"])
        clock.advance(timedelta(minutes=25))

    assert times == ["2026-11-16T12:00:00Z"] * 3 + ["2026-11-16T13:15:00Z"]


async def test_a_link_signs_in_once_and_not_late(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    owner = await people.owner(stage)
    for wait, link_of, status in (
        (timedelta(minutes=14), "http://localhost/sign-in#{}", 200),
        (timedelta(minutes=15), "{}", 401),
    ):
        made = await sign_in.issue_link(stage.deps, owner.id)
        clock.advance(wait)
        body = {"link": link_of.format(made.secret)}
        assert (await browser.post("/api/sign-in", json=body)).status_code == status
        assert (await browser.post("/api/sign-in", json=body)).status_code == 401


async def test_a_link_signs_in_however_many_others_were_wrong(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    owner = await people.owner(stage)
    for _ in range(MAX_SIGN_IN_ATTEMPTS):
        wrong = await browser.post("/api/sign-in", json={"link": "bb_wrong"})
        assert wrong.status_code == 401
    assert (await browser.post("/api/sign-in", json={"link": "bb_wrong"})).status_code == 429

    link = await sign_in.issue_link(stage.deps, owner.id)

    assert (await browser.post("/api/sign-in", json={"link": link.secret})).status_code == 200


async def test_a_link_that_two_use_at_once_lets_one_in(stage: Stage) -> None:
    owner = await people.owner(stage)
    made = await sign_in.issue_link(stage.deps, owner.id)
    both = [sign_in.sign_in_by_link(stage.deps, made.secret, address="192.0.2.1") for _ in range(2)]

    assert sorted(one is None for one in await asyncio.gather(*both)) == [False, True]


async def test_a_new_link_ends_the_one_before(stage: Stage, browser: httpx2.AsyncClient) -> None:
    owner = await people.owner(stage)
    headers = await people.token(stage, owner.id)
    links = [
        (await browser.post("/api/sign-in-links", headers=headers)).json()["link"] for _ in range(2)
    ]

    answers = [await browser.post("/api/sign-in", json={"link": link}) for link in links]
    assert [answer.status_code for answer in answers] == [401, 200]


async def test_a_narrow_token_makes_no_link_and_sets_no_password(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    owner = await people.owner(stage)
    soon = clock.now + timedelta(days=1)
    ends = await issue_token(stage.deps, owner.id, Scope, name="", expires_at=soon)
    for headers in (
        await people.token(stage, owner.id, Scope.READ, Scope.WRITE),
        {"authorization": f"Bearer {ends}"},
    ):
        body = {"login": "owner", "password": OTHER}
        assert (await browser.post("/api/sign-in-links", headers=headers)).status_code == 403
        answer = await browser.put("/api/password", json=body, headers=headers)
        assert answer.status_code == 403


async def test_signing_out_ends_the_session_and_nothing_else(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    headers = await people.token(stage, await people.add(stage))
    await people.sign_in(browser)
    secret = browser.cookies[SESSION_COOKIE]
    answer = await browser.post("/api/sign-out")

    assert answer.status_code == 204
    assert SESSION_COOKIE not in browser.cookies
    assert await credentials.identify(stage.deps, secret) is None
    assert await is_in(browser, headers=headers)


@pytest.mark.parametrize("how", ["everywhere", "password", "reset", "disabled", "role"])
async def test_what_shuts_out_ends_every_session_and_token_at_once(
    stage: Stage, browser: httpx2.AsyncClient, how: str
) -> None:
    user = await people.add(stage)
    headers = await people.token(stage, user)
    await people.sign_in(browser)
    caller = await caller_of(stage, browser)
    link = await sign_in.issue_link(stage.deps, user)
    bus = stage.database.bus
    assert bus
    with bus.listen(HintKind.CHANGED, user=user) as hints:
        match how:
            case "everywhere":
                assert (await browser.post("/api/sign-out-everywhere")).status_code == 204
            case "password":
                body = {"current": PASSWORD, "password": OTHER}
                assert (await browser.put("/api/password", json=body)).status_code == 200
            case "reset":
                made = await users.reset_password(stage.deps, user, actor=OPERATOR)
                await sign_in.redeem_reset(stage.deps, made.secret, OTHER, address="")
            case "disabled":
                await users.change(stage.deps, user, actor=OPERATOR, disabled=True)
            case "role":
                await users.change(stage.deps, user, actor=OPERATOR, role=Role.OPERATOR)
        async with asyncio.timeout(5):
            assert await hints.take()

    assert not is_still_good(stage, caller)
    assert not await is_in(browser, headers=headers)
    found = await sign_in.sign_in_by_link(stage.deps, link.secret, address="")
    assert found is None


async def test_a_session_that_is_good_stays_good(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    caller = await caller_of(stage, browser)

    assert is_still_good(stage, caller)
    clock.advance(timedelta(days=30))
    assert not is_still_good(stage, caller)


async def test_the_owner_sets_a_login_and_a_password(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    owner = await people.owner(stage)
    link = await sign_in.issue_link(stage.deps, owner.id)
    await browser.post("/api/sign-in", json={"link": link.secret})

    assert (await browser.put("/api/password", json={"password": OTHER})).status_code == 400
    body = {"login": "Owner", "password": OTHER}
    assert (await browser.put("/api/password", json=body)).status_code == 200
    assert await is_in(browser)
    browser.cookies.clear()
    assert (await people.sign_in(browser, "owner", OTHER)).status_code == 200


async def test_a_password_is_not_changed_without_the_one_before(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    for number in range(MAX_SIGN_IN_ATTEMPTS):
        # Under whatever login: it is the same account.
        body = {"password": OTHER, "current": "x", "login": f"ada{number}"}
        assert (await browser.put("/api/password", json=body)).status_code == 403
    body = {"password": OTHER, "current": PASSWORD}
    assert (await browser.put("/api/password", json=body)).status_code == 429


@pytest.mark.parametrize("password", ["short", "Password-1234", "aaaaaaaaaaaaaa", "x" * 201])
async def test_a_bad_password_is_refused_and_not_quoted(
    stage: Stage, browser: httpx2.AsyncClient, password: str
) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    body = {"current": PASSWORD, "password": password}
    answer = await browser.put("/api/password", json=body)

    assert answer.status_code in (400, 422)
    assert password not in answer.text


async def test_a_login_of_somebody_else_is_not_taken_over(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    await people.add(stage, "bob")
    await people.add(stage)
    await people.sign_in(browser)
    body = {"login": "bob", "current": PASSWORD, "password": OTHER}

    assert (await browser.put("/api/password", json=body)).status_code == 409
    assert await is_in(browser)
