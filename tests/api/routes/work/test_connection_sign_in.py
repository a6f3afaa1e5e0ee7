"""`/api/connections/.../sign-in`, with a real authorization server and a real MCP server."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from support.faults.canaries import found_in
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.people import people
from support.people.page import Page
from support.programs.programs import Start
from support.stage.api_stage import AskAs, Asker
from support.stage.connections import LOOPBACK, add_connection
from support.stage.make import MATE, USER
from support.stage.stage import Stage

from backburner.api.app import build_api
from backburner.core.accounts import Scope
from backburner.core.connections.connection import Connection
from backburner.core.ids import UserId
from backburner.gateway.oauth.flow import CheckedOAuth
from backburner.gateway.upstream.servers import UpstreamServers
from backburner.ports.oauth import issuer_key
from backburner.vault.master_keys import MasterKeys
from backburner.vault.vault import SealingVault

PATH = "/api/connections"
FINISH = f"{PATH}/finish-sign-in"


@pytest.fixture
def peer(start: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(start) as peer:
        yield peer


@pytest.fixture
def stage(set_up: Callable[..., Stage], tmp_path: Path) -> Stage:
    return set_up(
        vault=SealingVault(MasterKeys(tmp_path / "master_keys")),
        oauth=CheckedOAuth(allow=LOOPBACK),
        tool_servers=UpstreamServers(allow=LOOPBACK),
    )


@pytest.fixture
async def mail(ask: Asker, stage: Stage, peer: OAuthPeer) -> Connection:
    del ask
    return add_connection(stage.database, peer, stage.user(USER))


@pytest.fixture
async def other_browser(stage: Stage) -> AsyncIterator[Page]:
    transport = httpx2.ASGITransport(app=build_api(stage.deps, hosts={"localhost"}, checks={}))
    headers = {"content-type": "application/json"}
    async with Page(transport=transport, base_url="http://localhost", headers=headers) as page:
        yield page


async def begin(ask: Asker, connection: Connection, **body: Any) -> Any:
    return await ask.do("POST", f"{PATH}/{connection.id}/sign-in", body)


async def test_a_command_shows_where_to_go_and_finishes_with_the_pasted_address(
    ask: Asker, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(ask, mail)
    host = peer.issuer.removeprefix("http://")
    shown = begun["host"], begun["issuer"], begun["token_host"]
    assert shown == (host, peer.issuer, host)
    assert begun["scopes"] == ["mail.read", "mail.send"]
    final = peer.approve(begun["url"], "bob")

    refused = await ask("POST", FINISH, {"address": final})
    assert (refused.status_code, refused.json()["detail"]) == (
        403,
        "This sign-in was started elsewhere.",
    )
    end = await ask.do("POST", FINISH, {"address": final, "secret": begun["secret"]})

    assert end["check"]["error"] == ""
    connection = end["check"]["connection"]
    assert connection["state"] == "ready"
    # Its tools are there at once.
    assert {tool["name"] for tool in connection["tools"]} == {
        *("whoami", "list_mails", "read_mail", "send")
    }
    assert peer.count("exchanged") == 1


async def test_a_browser_hands_on_to_the_command_that_waits(
    ask: Asker, browser: Page, stage: Stage, peer: OAuthPeer
) -> None:
    ada = await people.add(stage)
    mail = add_connection(stage.database, peer, ada)
    (header,) = (await people.token(stage, ada)).items()
    mine = {"headers": dict([header])}
    begun = (await ask("POST", f"{PATH}/{mail.id}/sign-in", {}, **mine)).json()
    wait = f"{PATH}/{mail.id}/sign-in/wait"
    body = {"secret": begun["secret"], "seconds": 0}
    assert (await ask("POST", wait, body, **mine)).json()["check"] is None
    waiting = asyncio.create_task(ask("POST", wait, {**body, "seconds": 20}, **mine))

    await people.sign_in(browser)
    handed_on = await browser.post(FINISH, json={"address": peer.approve(begun["url"])})

    assert handed_on.json() == {"connection_name": "mail", "check": None}
    ended = (await waiting).json()
    assert ended["check"]["connection"]["counts"]["offered"] == 4


async def test_a_browser_comes_back_to_the_page_that_it_left(
    browser: Page, stage: Stage, peer: OAuthPeer
) -> None:
    mail = add_connection(stage.database, peer, await people.add(stage))
    await people.sign_in(browser)

    begun = (await browser.post(f"{PATH}/{mail.id}/sign-in", json={})).json()
    final = peer.approve(begun["url"])
    assert begun["secret"] == ""
    assert final.startswith("http://localhost/oauth/from/")
    end = await browser.post(FINISH, json={"address": final})

    assert end.json()["check"]["connection"]["state"] == "ready"
    again = await browser.post(FINISH, json={"address": final})
    assert again.status_code == 404
    assert "expired or been used" in again.json()["detail"]


async def test_a_browser_signed_in_as_somebody_else_is_refused(
    browser: Page, other_browser: Page, stage: Stage, peer: OAuthPeer
) -> None:
    mail = add_connection(stage.database, peer, await people.add(stage))
    await people.add(stage, "eve")
    await people.sign_in(browser)
    await people.sign_in(other_browser, "eve")
    begun = (await browser.post(f"{PATH}/{mail.id}/sign-in", json={})).json()
    final = peer.approve(begun["url"])

    theirs = await other_browser.post(FINISH, json={"address": final})
    await people.sign_in(other_browser)
    mine_elsewhere = await other_browser.post(FINISH, json={"address": final})

    assert theirs.status_code == 404
    assert "not yours" in theirs.json()["detail"]
    assert mine_elsewhere.status_code == 403
    assert peer.count("exchanged") == 0


async def test_half_a_session_finishes_nothing(
    browser: Page, stage: Stage, peer: OAuthPeer
) -> None:
    """As any other page of this host could send it, with the cookie alone."""
    mail = add_connection(stage.database, peer, await people.add(stage))
    await people.sign_in(browser)
    begun = (await browser.post(f"{PATH}/{mail.id}/sign-in", json={})).json()
    final = peer.approve(begun["url"])
    del browser.headers["x-backburner-session"]

    assert (await browser.post(FINISH, json={"address": final})).status_code == 401
    assert peer.count("exchanged") == 0


async def test_other_users_can_neither_start_nor_wait(
    ask: Asker, ask_as: AskAs, peer: OAuthPeer, mail: Connection
) -> None:
    begun = await begin(ask, mail)
    mate = await ask_as(MATE)

    for path, body in (
        (f"{PATH}/{mail.id}/sign-in", {}),
        (f"{PATH}/{mail.id}/sign-in/wait", {"secret": begun["secret"]}),
        (FINISH, {"address": peer.approve(begun["url"]), "secret": begun["secret"]}),
    ):
        assert (await mate("POST", path, body)).status_code == 404
    assert peer.count("exchanged") == 0


async def test_a_client_that_was_registered_by_hand_is_given_with_its_secret(
    ask: Asker, peer: OAuthPeer, mail: Connection
) -> None:
    peer.switch(registration=False)
    refused = await ask("POST", f"{PATH}/{mail.id}/sign-in", {})
    assert refused.status_code == 502
    assert "beforehand" in refused.json()["detail"]

    path = f"{PATH}/{mail.id}/sign-in"
    given = {"client_id": "mine", "client_secret": "x y"}
    assert "would get your client" in (await ask("POST", path, given)).json()["detail"]
    begun = await ask.do("POST", path, {**given, "issuer": peer.issuer})
    assert "client_id=mine" in begun["url"]
    for body in ({"client_secret": "x"}, {"client_id": "ü"}):
        wrong = await ask("POST", path, body)
        assert wrong.status_code in (400, 422)


async def test_no_secret_is_in_a_response_or_a_log(
    ask: Asker, peer: OAuthPeer, mail: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    begun = await begin(ask, mail)
    final = peer.approve(begun["url"])
    end = await ask("POST", FINISH, {"address": final, "secret": begun["secret"]})
    shown = await ask("GET", f"{PATH}/{mail.id}")
    exported = await ask("GET", "/api/export")

    assert found_in(final.encode())
    texts = [end.text, shown.text, exported.text, *capsys.readouterr()]
    assert not [text for text in texts if found_in(text.encode())]


async def test_our_document_is_public_where_there_is_a_public_address(stage: Stage) -> None:
    public = "https://backburner.example"
    assert (await fetch_document(stage, "")).status_code == 404
    assert (await fetch_document(stage, "http://backburner.example")).status_code == 404
    found = await fetch_document(stage, public)

    assert found.headers["content-type"] == "application/json"
    assert found.json()["client_id"] == f"{public}/oauth/client.json"
    assert found.json()["redirect_uris"] == [f"{public}/oauth/callback"]


async def test_each_authorization_server_has_a_document_of_its_own(stage: Stage) -> None:
    public = "https://backburner.example"
    key = issuer_key("https://login.example")
    found = await fetch_document(stage, public, f"/oauth/client/{key}.json")

    assert found.json()["client_id"] == f"{public}/oauth/client/{key}.json"
    assert found.json()["redirect_uris"] == [f"{public}/oauth/from/{key}"]
    assert (await fetch_document(stage, "", f"/oauth/client/{key}.json")).status_code == 404
    for wrong in (key[1:], f"{key}0", key.upper(), "..", "%2e%2e", f"{key}%0a"):
        answer = await fetch_document(stage, public, f"/oauth/client/{wrong}.json")
        assert answer.status_code == 404


async def fetch_document(
    stage: Stage, public_url: str, path: str = "/oauth/client.json"
) -> httpx2.Response:
    api = build_api(stage.deps, hosts={"localhost"}, checks={}, public_url=public_url)
    transport = httpx2.ASGITransport(app=api)
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as anybody:
        return await anybody.get(path)


async def test_signing_in_needs_consent(ask_as: AskAs, stage: Stage, mail: Connection) -> None:
    writer = await ask_as(UserId(USER), Scope.READ, Scope.WRITE)

    assert (await writer("POST", f"{PATH}/{mail.id}/sign-in", {})).status_code == 403
    assert stage.database.run(lambda tx: tx.started_sign_ins.find(USER, mail.id)) is None
