"""Signing in to the server of a connection in a real browser: there, and back to its own page."""

import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser.browsing import Browser, BrowserContext, Page, browsing, expect, person
from support.browser.visitors import expect_signed_in
from support.faults.canaries import in_files
from support.oauth_peer.peer import OAuthPeer, oauth_peer
from support.programs.programs import Start, starter

# The first time, Chromium may have to be fetched.
pytestmark = pytest.mark.timeout(400)

#: Asks the API from within a page, with both halves of its session.
CALL = """async ([path, body]) => {
  const key = localStorage.getItem("backburner-session");
  const headers = { "content-type": "application/json", "x-backburner-session": key };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  return response.json();
}"""


class Server:
    def __init__(self, start: Start, data: Path) -> None:
        self._start, self.data = start, data
        env = {**os.environ, "BACKBURNER_PRIVATE_NETWORKS": "127.0.0.1/32"}
        env["BACKBURNER_LOG_LEVEL"] = "debug"
        running = start("up", "--port", "0", "--data", data, env=env)
        # By its other name, so that the authorization server is another site.
        self.address = running.wait_until_ready().replace("127.0.0.1", "localhost")

    def make_link(self) -> str:
        running = self._start("user", "link", "--data", self.data)
        secret = running.read_line().partition("#")[2]
        return f"{self.address}/sign-in#{secret}"


@pytest.fixture(scope="module")
def starting() -> Iterator[Start]:
    with starter() as start:
        yield start


@pytest.fixture(scope="module")
def server(starting: Start, tmp_path_factory: pytest.TempPathFactory) -> Server:
    return Server(starting, tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def peer(starting: Start) -> Iterator[OAuthPeer]:
    with oauth_peer(starting) as peer:
        yield peer


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest.fixture
async def user(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with person(browser) as user:
        yield user


async def signed_in(user: BrowserContext, server: Server) -> Page:
    page = await user.new_page()
    await page.goto(server.make_link())
    await page.get_by_role("button", name="Sign in").click()
    await expect_signed_in(page)
    return page


async def begin(page: Page, peer: OAuthPeer, name: str) -> Any:
    body = {"url": peer.server, "name": name}
    added = await page.evaluate(CALL, ["/api/connections", body])
    assert added["connection"]["state"] == "signing_in", added
    path = f"/api/connections/{added['connection']['id']}/sign-in"
    begun = await page.evaluate(CALL, [path, {}])
    return {**begun, "connection": added["connection"]["id"]}


async def allow(page: Page, begun: Any) -> None:
    await page.goto(begun["url"])
    await page.get_by_role("button", name="Allow").click()


async def test_a_browser_is_sent_away_and_comes_back_signed_in(
    server: Server, peer: OAuthPeer, user: BrowserContext
) -> None:
    page = await signed_in(user, server)
    begun = await begin(page, peer, "mail")

    await allow(page, begun)

    await expect(page.locator(".toast")).to_contain_text("Signed in to Mail.")
    await expect(page.get_by_role("heading", name="Mail")).to_be_visible()
    # The code is not left in the history.
    assert page.url == f"{server.address}/connections/{begun['connection']}"
    await page.go_back()
    assert "code=" not in page.url
    assert not in_files(server.data)


async def test_a_browser_that_nobody_is_signed_in_to_shows_the_address_and_finishes_nothing(
    server: Server, peer: OAuthPeer, user: BrowserContext, browser: Browser
) -> None:
    begun = await begin(await signed_in(user, server), peer, "other")
    exchanged = peer.count("exchanged")
    async with person(browser) as stranger:
        page = await stranger.new_page()
        await allow(page, begun)

        await expect(page.get_by_role("heading", name="One more step")).to_be_visible()
        await expect(page.get_by_text("give the address to nobody")).to_be_visible()
        shown = await page.locator("pre").inner_text()

    assert shown.startswith(f"{server.address}/oauth/from/")
    assert "code=" in shown
    assert peer.count("exchanged") == exchanged


async def test_a_second_session_of_the_same_user_is_refused_in_words(
    server: Server, peer: OAuthPeer, user: BrowserContext, browser: Browser
) -> None:
    begun = await begin(await signed_in(user, server), peer, "third")
    # Not `person`: the browser reports the refusal as an error.
    async with await browser.new_context() as phone:
        page = await signed_in(phone, server)
        await allow(page, begun)

        await expect(page.get_by_text("This sign-in was started elsewhere.")).to_be_visible()
