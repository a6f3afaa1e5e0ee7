"""API tokens: listed, ended, and never wider than whoever asks for one."""

from datetime import timedelta
from typing import Any

import httpx2
from support.doubles.clock import SetClock
from support.people import people
from support.stage.stage import Stage

from backburner.actions.accounts import credentials
from backburner.core.accounts import LOCAL_CLIENT_NAME, Role, Scope


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


async def test_a_token_is_shown_once_and_lets_in(stage: Stage, browser: httpx2.AsyncClient) -> None:
    await people.add(stage)
    await people.sign_in(browser)
    body = {"name": "calendar", "scopes": ["read"], "expires": "90d"}
    made = (await browser.post("/api/tokens", json=body)).json()
    listed = await browser.get("/api/tokens")
    browser.cookies.clear()

    assert made["token"].startswith("bb_")
    assert made["expires_at"] == "2027-02-14T12:00:00Z"
    assert made["token"] not in listed.text
    (item,) = listed.json()["items"]
    assert (item["name"], item["scopes"], item["is_this"]) == ("calendar", ["read"], False)
    again = await browser.get("/api/tokens", headers=bearer(made["token"]))
    assert again.json()["items"][0]["is_this"] is True


async def test_a_token_ends_when_it_is_revoked_and_by_itself(
    stage: Stage, browser: httpx2.AsyncClient, clock: SetClock
) -> None:
    headers = await people.token(stage, await people.add(stage))
    made = []
    for _ in range(2):
        answer = await browser.post("/api/tokens", json={"name": "x"}, headers=headers)
        made.append(answer.json())

    gone = await browser.delete(f"/api/tokens/{made[0]['id']}", headers=headers)
    assert gone.status_code == 204
    for token, status in zip(made, (401, 200), strict=True):
        answer = await browser.get("/api/tokens", headers=bearer(token["token"]))
        assert answer.status_code == status
    clock.advance(timedelta(days=90))
    answer = await browser.get("/api/tokens", headers=bearer(made[1]["token"]))
    assert answer.status_code == 401


async def test_nobody_ends_what_is_somebody_elses(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    mine = await people.token(stage, await people.add(stage, role=Role.OPERATOR))
    theirs = await people.token(stage, await people.add(stage, "bob"))
    token = (await browser.get("/api/tokens", headers=theirs)).json()["items"][0]["id"]
    await people.sign_in(browser, "bob")
    session = (await browser.get("/api/sessions")).json()["items"][0]["id"]
    browser.cookies.clear()

    for path in (f"tokens/{token}", "tokens/k_nothing", f"sessions/{session}", f"tokens/{session}"):
        answer = await browser.delete(f"/api/{path}", headers=mine)
        nothing = await browser.delete("/api/tokens/k_none", headers=mine)
        assert (answer.status_code, answer.text) == (404, nothing.text)
    assert token not in (await browser.get("/api/tokens", headers=mine)).text
    assert (await browser.get("/api/tokens", headers=theirs)).status_code == 200


async def test_another_browser_can_be_signed_out(stage: Stage, browser: httpx2.AsyncClient) -> None:
    headers = await people.token(stage, await people.add(stage))
    await people.sign_in(browser)
    (session,) = (await browser.get("/api/sessions", headers=headers)).json()["items"]

    gone = await browser.delete(f"/api/sessions/{session['id']}", headers=headers)
    assert gone.status_code == 204
    assert (await browser.get("/api/tokens")).status_code == 401


async def test_a_token_that_reads_makes_and_ends_nothing(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    reads = await people.token(stage, await people.add(stage), Scope.READ)
    answers = [
        await browser.post("/api/tokens", json={"name": "x"}, headers=reads),
        await browser.delete("/api/tokens/k_none", headers=reads),
        await browser.delete("/api/sessions/k_none", headers=reads),
        await browser.post("/api/sign-out-everywhere", headers=reads),
    ]

    assert [answer.status_code for answer in answers] == [403] * 4


async def test_nobody_gives_what_they_do_not_have(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    member = await people.token(stage, await people.add(stage))
    body = {"name": "x", "scopes": ["read", "operate"]}

    answer = await browser.post("/api/tokens", json=body, headers=member)

    assert answer.status_code == 403
    assert "operate" in answer.json()["detail"]


async def test_lists_come_in_pages(stage: Stage, browser: httpx2.AsyncClient) -> None:
    user = await people.add(stage)
    headers = await people.token(stage, user)
    for _ in range(4):
        await people.token(stage, user)
    seen: list[str] = []
    params: dict[str, Any] = {"limit": 2}
    while params.get("cursor", "") is not None:
        page = (await browser.get("/api/tokens", params=params, headers=headers)).json()
        seen += [item["id"] for item in page["items"]]
        params["cursor"] = page["next"]

    assert len(seen) == len(set(seen)) == 5
    for query, status in (("cursor=%27--", 400), ("limit=0", 422), ("limit=201", 422)):
        answer = await browser.get(f"/api/tokens?{query}", headers=headers)
        assert answer.status_code == status


async def test_bad_wishes_are_refused(stage: Stage, browser: httpx2.AsyncClient) -> None:
    headers = await people.token(stage, await people.add(stage))
    for body, status in (
        ({}, 422),
        ({"name": ""}, 422),
        ({"name": " "}, 400),
        ({"name": LOCAL_CLIENT_NAME}, 400),
        ({"name": "x", "scopes": []}, 422),
        ({"name": "x", "scopes": ["all"]}, 422),
        ({"name": "x", "expires": "soon"}, 400),
        ({"name": "x", "user": "u_other"}, 422),
    ):
        answer = await browser.post("/api/tokens", json=body, headers=headers)
        assert answer.status_code == status, body


async def test_there_are_so_many_tokens_and_no_more(
    stage: Stage, browser: httpx2.AsyncClient
) -> None:
    user = await people.add(stage)
    headers = await people.token(stage, user)
    for _ in range(credentials.MAX_TOKENS - 1):
        await people.token(stage, user)

    answer = await browser.post("/api/tokens", json={"name": "x"}, headers=headers)
    assert answer.status_code == 429


async def test_a_session_is_listed_with_its_browser_in_our_words(
    browser: httpx2.AsyncClient, stage: Stage
) -> None:
    await people.add(stage)
    odd = "<script> Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0"
    await people.sign_in(browser, headers={"user-agent": odd})

    listed = await browser.get("/api/sessions")

    (session,) = listed.json()["items"]
    assert (session["device"], session["is_this"]) == ("Firefox on Linux", True)
    assert "script" not in listed.text
    new = {"current": people.PASSWORD, "password": "other words than before"}
    await browser.put(
        "/api/password", json=new, headers={"user-agent": "Mozilla/5.0 (iPad) Safari/1"}
    )
    (session,) = (await browser.get("/api/sessions")).json()["items"]
    assert session["device"] == "Safari on iPad"
