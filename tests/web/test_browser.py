"""The pages in a real browser, with a real server: signing in, theft of the cookie, downloads."""

import json
import tomllib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from support.browser.browsing import Browser, BrowserContext, Page, browsing, expect, person
from support.programs.programs import Start, starter
from support.requirements import requirement
from support.servers.web import answer, web

from backburner.api.http.auth import SESSION_COOKIE, SESSION_HEADER

# The first time, Chromium may have to be fetched.
pytestmark = pytest.mark.timeout(400)

#: Shows all that a script finds for its own origin.
THIEF = """<!doctype html><link rel="icon" href="data:,"><script>
document.title = JSON.stringify({ stored: { ...localStorage }, cookie: document.cookie });
</script>"""

#: Puts a link to an export into a page.
ADD_LINK = """async () => {
  const key = localStorage.getItem("backburner-session");
  const made = await fetch("/api/downloads", {
    method: "POST",
    headers: { "content-type": "application/json", "x-backburner-session": key },
    body: JSON.stringify({ item: "export" }),
  });
  const link = document.createElement("a");
  link.href = (await made.json()).address;
  link.textContent = "Download";
  document.body.append(link);
}"""


#: Asks the API from within a page, with both halves of its session.
CALL = """async ([method, path, body]) => {
  const key = localStorage.getItem("backburner-session");
  const headers = { "content-type": "application/json", "x-backburner-session": key };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  return response.json();
}"""


#: Waits for the question of a conversation.
FIND_QUESTION = """async (conversation) => {
  const headers = { "x-backburner-session": localStorage.getItem("backburner-session") };
  for (const end = Date.now() + 30_000; Date.now() < end;) {
    const page = await (await fetch("/api/questions", { headers })).json();
    const found = page.items.find((question) => question.conversation_id === conversation);
    if (found) return found;
    await new Promise((go) => setTimeout(go, 100));
  }
}"""


@dataclass(frozen=True)
class Server:
    address: str
    #: Signs in once.
    printed_link: str
    data: Path
    start: Start

    def make_link(self) -> str:
        running = self.start("user", "link", "--data", self.data)
        return running.read_line()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data = tmp_path_factory.mktemp("data")
    with starter() as start:
        running = start("up", "--port", "0", "--data", data)
        address = running.wait_until_ready()
        link = [running.read_line() for _ in range(3)][-1].split()[-1]
        yield Server(address, link, data, start)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest.fixture
async def user(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with person(browser) as user:
        yield user


async def sign_in(user: BrowserContext, link: str) -> Page:
    page = await user.new_page()
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    await expect_signed_in(page)
    return page


async def expect_signed_in(page: Page) -> None:
    await expect(page.get_by_role("heading", name="You are signed in")).to_be_visible()


async def expect_signed_out(page: Page) -> None:
    await expect(page.get_by_label("Password")).to_be_visible()
    # Without the key the page does not even ask whether somebody is signed in.
    assert await page.evaluate("localStorage.length") == 0


async def test_a_user_signs_in_by_link_stays_signed_in_and_signs_out(
    server: Server, user: BrowserContext
) -> None:
    page = await sign_in(user, server.printed_link)
    # The secret of the link is not left in the history.
    assert page.url == f"{server.address}/sign-in"
    await page.reload()
    await expect_signed_in(page)

    await page.get_by_role("button", name="Sign out").click()
    await expect_signed_out(page)
    await page.reload()
    await expect_signed_out(page)


async def test_a_page_on_another_port_gets_half_a_session_which_opens_nothing(
    server: Server, user: BrowserContext
) -> None:
    page = await sign_in(user, server.make_link())
    async with web(lambda _: answer(THIEF, "text/html")) as thief:
        visited = await user.new_page()
        await visited.goto(thief.url())
        found = json.loads(await visited.title())
    stolen = read_headers(thief.asked[0])
    key = await page.evaluate("localStorage.getItem('backburner-session')")

    assert stolen["cookie"].startswith(f"{SESSION_COOKIE}=")
    assert found == {"stored": {}, "cookie": ""}
    assert await request_statuses(server, stolen) == [401, 401]
    # Only the other half was missing.
    assert await request_statuses(server, {**stolen, SESSION_HEADER: key}) == [200, 201]


async def test_a_link_downloads_an_export(server: Server, user: BrowserContext) -> None:
    page = await sign_in(user, server.make_link())
    await page.evaluate(ADD_LINK)
    async with page.expect_download() as downloading:
        await page.get_by_role("link", name="Download").click()
    download = await downloading.value

    assert download.suggested_filename == "backburner-export.json"
    exported = json.loads((await download.path()).read_text())
    assert exported["format"] == "backburner"
    # The page stays.
    await expect_signed_in(page)


async def test_the_address_of_a_notice_shows_its_conversation(
    server: Server, user: BrowserContext
) -> None:
    page = await sign_in(user, server.make_link())
    text = "<img src=x onerror=alert(1)> watch this"
    made = await page.evaluate(CALL, ["POST", "/api/conversations", {"message": text}])
    await page.goto(f"{server.address}/c/{made['id']}")

    await expect(page.get_by_role("heading", level=1)).to_have_text(made["title"])
    await expect(page.get_by_text(text, exact=True).last).to_be_visible()
    # Text stays text.
    await expect(page.locator("main article img")).to_have_count(0)


async def test_the_address_of_a_question_shows_it_with_its_options(
    server: Server, user: BrowserContext
) -> None:
    page = await sign_in(user, server.make_link())
    message = {"message": "every second ask me whether to go on"}
    made = await page.evaluate(CALL, ["POST", "/api/conversations", message])
    asked = await page.evaluate(FIND_QUESTION, made["id"])
    await page.goto(f"{server.address}/q/{asked['id']}")

    await expect(page.get_by_text(asked["prompt"], exact=True)).to_be_visible()
    await expect(page.get_by_role("listitem")).to_have_text(["yes", "no"])
    link = page.get_by_role("link", name="Open the conversation")
    await expect(link).to_have_attribute("href", f"/c/{made['id']}")

    await page.evaluate(CALL, ["POST", f"/api/conversations/{made['id']}/pause", None])
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("This question is not open")


async def test_without_a_session_the_address_of_a_notice_leads_to_the_sign_in(
    server: Server, user: BrowserContext
) -> None:
    page = await user.new_page()
    for path in ("/c/c_1", "/q/q_1"):
        await page.goto(f"{server.address}{path}")
        await expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
    await page.get_by_role("link", name="Sign in").click()
    await expect(page.get_by_label("Password")).to_be_visible()


def read_headers(head: str) -> dict[str, str]:
    """Read the headers of a request, apart from the name of the server it was for."""
    lines = (line.split(": ", 1) for line in head.splitlines()[1:] if line)
    return {name.lower(): value for name, value in lines if name.lower() != "host"}


async def request_statuses(server: Server, headers: dict[str, str]) -> list[int]:
    """Try to read the account and to create a token; return the statuses."""
    async with httpx2.AsyncClient(base_url=server.address, headers=headers) as client:
        read = await client.get("/api/me")
        created = await client.post("/api/tokens", json={"name": "mine", "scopes": ["read"]})
        return [read.status_code, created.status_code]


@requirement("Z-zone")
async def test_a_sign_in_takes_the_zone_of_the_browser(server: Server, browser: Browser) -> None:
    async with person(browser, timezone_id="Asia/Tokyo") as user:
        await sign_in(user, server.make_link())
    token = tomllib.loads((server.data / "client.toml").read_text())["token"]
    bearer = {"authorization": f"Bearer {token}"}
    me = httpx2.get(f"{server.address}/api/me", headers=bearer).json()

    assert (me["zone"], me["zone_source"]) == ("Asia/Tokyo", "browser")
