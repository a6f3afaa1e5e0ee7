"""The pages in a real browser, with a real server: signing in, theft of the cookie, downloads."""

import asyncio
import json
import tomllib
from urllib.parse import quote

import httpx2
import pytest
from support.browser.browsing import Browser, BrowserContext, Page, Route, expect, person
from support.browser.visitors import CALL, Server, expect_signed_in, sign_in
from support.people.people import PASSWORD
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


async def expect_signed_out(page: Page) -> None:
    await expect(page.get_by_label("Password")).to_be_visible()


async def test_a_user_signs_in_by_link_stays_signed_in_and_signs_out(
    server: Server, browser: Browser
) -> None:
    # Its stream may be refused before it leaves.
    async with person(browser, allowed=("status of 401",)) as user:
        await sign_in_and_out(server, user)


async def sign_in_and_out(server: Server, user: BrowserContext) -> None:
    page = await sign_in(user, server.make_link())
    # The secret of the link is not left in the history.
    assert page.url == f"{server.address}/"
    await page.reload()
    await expect_signed_in(page)

    await page.evaluate(CALL, ["POST", "/api/sign-out", None])
    # The page leaves by itself.
    await expect_signed_out(page)
    await page.evaluate("localStorage.clear()")
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


async def test_without_a_session_an_address_leads_to_the_sign_in_and_back(
    server: Server, user: BrowserContext
) -> None:
    page = await user.new_page()
    await page.goto(f"{server.address}/needs-you")
    await expect(page.get_by_label("Password")).to_be_visible()
    assert page.url == f"{server.address}/sign-in?next=%2Fneeds-you"

    link = server.make_link().replace("/sign-in#", "/sign-in?next=%2Fneeds-you#")
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", name="Needs you")).to_be_visible()
    assert page.url == f"{server.address}/needs-you"


async def test_a_link_that_was_used_says_which_command_makes_another(
    server: Server, browser: Browser
) -> None:
    # Not `person`: the browser reports refusals as errors.
    async with await browser.new_context() as user:
        link = server.make_link()
        await sign_in(user, link)
        page = await user.new_page()
        await page.goto(link)
        await page.get_by_role("button", name="Sign in").click()

        told = page.get_by_role("alert")
        await expect(told).to_contain_text("Create a new one with “python3 dev.py run user link”.")
        await expect(page.locator(".aside code")).to_have_text("python3 dev.py run user link")


async def test_a_sign_in_leads_to_no_page_of_others(server: Server, user: BrowserContext) -> None:
    page = await user.new_page()
    for place in (
        *("https://evil.example/", "//evil.example/", "/\\evil.example/", "javascript:alert(1)"),
        *("data:text/html,x", f"blob:{server.address}/x"),
    ):
        link = server.make_link().replace("/sign-in#", f"/sign-in?next={quote(place, safe='')}#")
        await page.goto(link)
        if await page.get_by_role("button", name="Sign in").is_visible():
            await page.get_by_role("button", name="Sign in").click()
        await expect_signed_in(page)
        assert page.url == f"{server.address}/"


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


async def add_user(server: Server, user: BrowserContext, login: str) -> Page:
    """Sign in as somebody new, who sets a password."""
    link = server.start("user", "add", login, "--data", server.data).read_line()
    page = await user.new_page()
    await page.goto(link)
    await page.get_by_label("New password").fill(PASSWORD)
    await page.get_by_role("button", name="Set password").click()
    await expect_signed_in(page)
    return page


async def test_who_erases_their_account_is_unknown_from_then_on(
    server: Server, browser: Browser
) -> None:
    async with person(browser, allowed=("status of 401", "status of 400")) as user:
        page = await add_user(server, user, "erna")
        await page.evaluate(CALL, ["POST", "/api/conversations", {"message": "hello there"}])
        await page.goto(f"{server.address}/settings/data")
        await page.get_by_role("button", name="Erase").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("textbox").fill("yes")
        await dialog.get_by_role("button", name="Erase").click()
        await expect(dialog).to_be_visible()
        await dialog.get_by_role("textbox").fill("erase everything of mine")
        await dialog.get_by_role("button", name="Erase").click()

        await page.get_by_label("Login").fill("erna")
        await page.get_by_role("textbox", name="Password", exact=True).fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_be_visible()


async def test_a_new_password_leaves_the_other_tabs_of_its_browser_signed_in(
    server: Server, browser: Browser
) -> None:
    replaced = asyncio.Event()

    async def hold(route: Route) -> None:
        await replaced.wait()
        await route.continue_()

    async with person(browser, allowed=("status of 401",)) as user:
        page = await add_user(server, user, "grace")
        beside = await user.new_page()
        await beside.goto(f"{server.address}/tasks")
        await expect_signed_in(beside)
        # It was asked for with the session that ends now.
        await beside.route("**/page/connections", hold)
        await beside.get_by_role("link", name="Connections").click()

        await page.goto(f"{server.address}/settings/you")
        await page.get_by_label("Password now").fill(PASSWORD)
        await page.get_by_label("New password").fill(f"{PASSWORD} again")
        await page.get_by_role("button", name="Set password").click()
        await expect(page.get_by_role("status").last).to_contain_text("signed out")
        replaced.set()

        await expect(beside.get_by_role("heading", name="Add a connection")).to_be_visible()
        await page.goto(f"{server.address}/tasks")
        await expect_signed_in(page)


async def test_who_signs_in_next_finds_nothing_of_who_was_there_before(
    server: Server, browser: Browser
) -> None:
    async with person(browser, allowed=("status of 401", "status of 404")) as user:
        await sign_in_one_after_the_other(server, user, browser)


async def sign_in_one_after_the_other(
    server: Server, user: BrowserContext, browser: Browser
) -> None:
    page = await sign_in(user, server.make_link())
    made = await page.evaluate(CALL, ["POST", "/api/conversations", {"message": "hello there"}])
    beside = await user.new_page()
    await beside.goto(f"{server.address}/c/{made['id']}")
    await expect(beside.locator(".message.theirs[id]")).to_be_visible()
    await beside.locator("#composer").fill("a secret of the first")
    await page.goto(f"{server.address}/new")
    await page.locator("#composer").fill("another secret")

    # A session that ends by itself keeps what its user was writing.
    await page.evaluate(CALL, ["POST", "/api/sign-out", None])
    for one in (page, beside):
        await expect(one.get_by_label("Password")).to_be_visible()
        assert "hello there" not in await one.content()
    await page.goto(f"{server.address}/needs-you")
    await expect(page.get_by_label("Password")).to_be_visible()
    await page.goto(server.make_link())
    await page.get_by_role("button", name="Sign in").click()
    await expect_signed_in(page)
    await page.goto(f"{server.address}/new")
    await expect(page.locator("#composer")).to_have_value("another secret")

    # Somebody else is shown none of it, and it does not stay.
    await beside.close()
    beside = await user.new_page()
    await beside.goto(f"{server.address}/c/{made['id']}")
    await expect(beside.locator(".message.theirs[id]")).to_be_visible()
    async with person(browser) as other:
        await add_user(server, other, "tomas")
    await page.evaluate(CALL, ["POST", "/api/sign-out", None])
    await page.get_by_label("Login").fill("tomas")
    await page.get_by_role("textbox", name="Password", exact=True).fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect_signed_in(page)
    await page.goto(f"{server.address}/new")
    await expect(page.locator("#composer")).to_have_value("")
    assert "secret" not in str(await page.evaluate("({ ...localStorage })"))
    await expect(beside.locator(".message")).to_have_count(0)

    # Who signs out leaves nothing, and no page of theirs stays open.
    await page.locator("#composer").fill("a secret of the second")
    await beside.goto(f"{server.address}/settings/you")
    await expect(beside.locator("#who")).to_contain_text("tomas")
    await beside.get_by_role("button", name="Sign out").click()
    for one in (page, beside):
        await expect(one.get_by_label("Password")).to_be_visible()
    assert "secret" not in str(await page.evaluate("({ ...localStorage })"))
