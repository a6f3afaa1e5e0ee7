"""People of the showcase who look at its pages in a real browser."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.browser.browsing import Browser, BrowserContext, Page, ViewportSize, expect, person
from support.showcase.house import PASSWORD, House
from support.showcase.pages import Look
from support.showcase.world import NOW

Size = ViewportSize
DESKTOP, PHONE = Size(width=1440, height=900), Size(width=390, height=844)
#: What the browser says of pages that are about errors.
EXPECTED = ("404", "net::ERR", "Failed to load resource")


@asynccontextmanager
async def visiting(
    browser: Browser, house: House, login: str = "", **options: Any
) -> AsyncIterator[BrowserContext]:
    """Give the browser of somebody of the showcase; of nobody without a login."""
    settings = {"viewport": DESKTOP, "locale": "en", "timezone_id": "Europe/Lisbon", **options}
    async with person(browser, allowed=EXPECTED, **settings) as context:
        await context.clock.set_fixed_time(NOW)
        if login:
            await sign_in(context, house, login)
        yield context


async def sign_in(context: BrowserContext, house: House, login: str) -> None:
    page = await context.new_page()
    await page.goto(f"{house.address}/sign-in")
    await page.get_by_label("Login").fill(login)
    await page.get_by_label("Password").fill(PASSWORD)
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator("#sidebar #list")).to_be_attached()
    await page.close()


async def look_at(page: Page, house: House, look: Look) -> None:
    """Open a page, do what is to be done before one looks, and wait until it is at rest."""
    if look.cut_off:
        await page.route("**/page/stream", lambda route: route.abort())
    await page.goto(f"{house.address}{fill(house, look.path)}")
    if look.who == "":
        await expect(page.locator("form:visible, main:visible").first).to_be_visible()
        return
    await expect(page.locator("#main [data-title], #main form").first).to_be_attached()
    await expect(page.locator("#main[aria-busy]")).to_have_count(0)
    await expect(page.locator("#sidebar #list")).to_be_attached()
    for selector in look.presses:
        await page.locator(selector).first.click()
        await expect(page.locator(":popover-open:empty")).to_have_count(0)
    if look.types is not None:
        await _type(page, *look.types)
        if look.types[0] == "#search":
            await expect(page.locator("#list mark, #list .empty").first).to_be_visible()
    if look.cut_off:
        await expect(page.locator(".toast")).to_be_visible()


async def _type(page: Page, selector: str, text: str) -> None:
    if selector == "#composer":
        # What was typed before is kept.
        await page.locator(selector).fill("")
    await page.locator(selector).press_sequentially(
        text
    ) if selector != "body" else await page.keyboard.type(text)


def fill(house: House, path: str) -> str:
    """Put ids into an address."""

    def find(found: re.Match[str]) -> str:
        kind, _, name = found[1].rpartition(":")
        if kind == "run":
            return house.world.history(house.world.by_id(house.world.places[name]))[0].id
        if kind == "connection":
            return house.world.connections[name]
        return house.world.places[name]

    return re.sub(r"\{([^}]*)\}", find, path)
