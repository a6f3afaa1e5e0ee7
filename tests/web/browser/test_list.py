"""The list of conversations in a real browser: filters, search, and rows that keep their place."""

from collections.abc import AsyncIterator
from datetime import timedelta
from types import ModuleType
from typing import Any

import pytest
from support.browser.browsing import Browser, Page, Route, expect
from support.browser.visitors import CALL
from support.showcase.house import House, open_house
from support.showcase.looking import look_at, visiting
from support.showcase.pages import Look
from web.browser import crowds

pytestmark = pytest.mark.timeout(400)

MINUTE = timedelta(minutes=1)
NEW = Look("new", "/new")
DOWN = """async (number) => {
  const list = document.querySelector("#list");
  const rows = () => list.querySelectorAll(".conversation").length;
  while (rows() < number) {
    list.scrollTop = 1e9;
    await new Promise(requestAnimationFrame);
  }
  list.scrollTop = 4000;
  const top = (row) => row.getBoundingClientRect().top;
  const shown = [...list.querySelectorAll(".conversation")].find((row) => top(row) > 300);
  return [shown.id, top(shown)];
}"""


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    book = ModuleType("many conversations")
    vars(book)["begin"] = crowds.begin_many_conversations
    async with open_house(tmp_path_factory.mktemp("house"), book) as house:
        yield house


@pytest.fixture
async def page(browser: Browser, house: House) -> AsyncIterator[Page]:
    async with visiting(browser, house, "nora") as nora:
        page = await nora.new_page()
        await look_at(page, house, NEW)
        yield page


async def call(page: Page, method: str, path: str, body: Any = None) -> Any:
    return await page.evaluate(CALL, [method, path, body])


async def find(page: Page, title: str) -> str:
    """Return the id of a conversation by its title."""
    path: str = "/api/conversations?limit=100"
    while True:
        listed = await call(page, "GET", path)
        found = [one["id"] for one in listed["items"] if one["title"] == title]
        if found:
            return str(found[0])
        path = f"/api/conversations?limit=100&cursor={listed['next']}"


async def test_a_list_that_was_scrolled_far_stays_where_it_is(page: Page) -> None:
    row, top = await page.evaluate(DOWN, 150)
    moved = await find(page, "Conversation 3")

    await call(page, "PATCH", f"/api/conversations/{moved}", {"title": "Moved to the top"})

    first = page.locator("#list .conversation").first
    await expect(first.locator(".title")).to_have_text("Moved to the top")
    assert await page.locator("#list .conversation").count() >= 150
    now = await page.locator(f"#{row}").evaluate("(row) => row.getBoundingClientRect().top")
    assert abs(now - top) <= 1
    # Also when all of it is loaded again, as after what its user does.
    for pinned in (1, 0):
        await first.locator(".menu [data-call^=PATCH]").evaluate("(button) => button.click()")
        await expect(page.locator("#list [data-group=pinned]")).to_have_count(pinned)
        assert await page.locator("#list .conversation").count() >= 150
        now = await page.locator(f"#{row}").evaluate("(row) => row.getBoundingClientRect().top")
        assert abs(now - top) <= 1


async def test_rows_that_were_refused_are_asked_for_again(page: Page) -> None:
    refused = list[str]()

    async def refuse(route: Route) -> None:
        if refused:
            await route.fallback()
        else:
            refused.append(route.request.url)
            await route.fulfill(status=429)

    await page.route("**/page/rows?cursor=*", refuse)
    await page.evaluate(DOWN, 60)
    assert refused


async def test_a_filter_is_chosen_by_keyboard_kept_and_cleared(page: Page, house: House) -> None:
    task = await house.world.set_task("backup", "Backup check", "Look.", "every day at 3:00")
    rows, said = page.locator("#list .conversation"), page.locator("#said")
    await page.locator("#search").focus()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await expect(page.locator("#filters")).to_be_visible()
    await expect(page.get_by_role("button", name="All", exact=True)).to_be_focused()
    for _ in range(3):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")

    await expect(rows).to_have_count(1)
    await expect(said).to_have_text("One conversation")
    await expect(page.get_by_role("navigation", name="Conversations: Scheduled")).to_be_visible()
    await expect(page.get_by_role("button", name="Filter conversations")).to_be_focused()
    # It is kept for the tab, and follows what happens.
    await page.reload()
    await expect(rows.locator(".title")).to_have_text("Backup check")
    await call(page, "POST", f"/api/conversations/{task}/pause")
    await expect(page.locator("#list .empty")).to_contain_text("Nothing is scheduled.")
    await call(page, "POST", f"/api/conversations/{task}/resume")
    await expect(rows.locator(".title")).to_have_text("Backup check")
    house.world.clock.advance(MINUTE)
    wanted = {"prompt": "Look.", "when": "mondays at 9", "name": "Reading list"}
    await call(page, "POST", "/api/tasks", wanted)
    await expect(rows.first.locator(".title")).to_have_text("Reading list")

    clear = page.get_by_role("button", name="Scheduled: show all")
    await clear.focus()
    await page.keyboard.press("Enter")
    await expect(clear).to_have_count(0)
    await expect(page.get_by_role("button", name="Filter conversations")).to_be_focused()
    await expect(rows).to_have_count(50)


async def test_a_search_finds_old_ones_and_those_in_the_archive(page: Page) -> None:
    rows = page.locator("#list .conversation")
    await page.locator("#search").fill("Conversation 13")
    old = rows.filter(has=page.get_by_text("Conversation 13", exact=True))
    await expect(old).to_have_count(1)
    # One that is deleted among what was found is hidden at once, and comes back.
    await old.hover()
    await old.locator(".more").click()
    await old.get_by_role("button", name="Delete").click()
    await expect(old).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(old).to_have_count(1)

    await old.locator("> a").focus()
    await page.keyboard.press("e")
    await expect(old).to_have_count(0)
    await page.locator("#search").fill("xyzzy")
    await expect(page.locator("#list")).to_contain_text("Nothing matches “xyzzy”.")
    await page.get_by_role("button", name="Search in archived ones too?").click()
    await expect(page.locator("#list")).to_contain_text("Nothing matches “xyzzy” in “Archived”.")
    await page.locator("#search").fill("Conversation 13")
    await expect(old).to_have_count(1)
    await expect(rows).to_have_count(1)


async def test_keys_archive_and_delete_a_row_and_go_on_to_the_next(page: Page) -> None:
    rows = page.locator("#list .conversation")
    first, second, third = [await rows.nth(number).get_attribute("id") for number in (9, 10, 11)]
    await rows.nth(9).locator("> a").focus()
    await page.keyboard.press("e")
    await expect(page.locator(f"#{first}")).to_have_count(0)
    await expect(page.locator(f"#{second} > a")).to_be_focused()
    await page.keyboard.press("#")
    await expect(page.locator(f"#{second}")).to_have_count(0)
    await expect(page.locator(f"#{third} > a")).to_be_focused()
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(f"#{second}")).to_be_visible()


async def test_a_key_ends_the_work_of_a_row_only_after_a_question(page: Page, house: House) -> None:
    house.world.clock.advance(MINUTE)
    lights = await house.world.set_task("lights", "Lights", "Look.", "every day at 4:00")
    row, asks = page.locator(f"#row-{lights}"), page.get_by_role("dialog")
    await expect(row).to_be_visible()
    after = await page.locator("#list .conversation").nth(1).get_attribute("id")
    await row.locator("> a").focus()
    await page.keyboard.press("e")
    await expect(asks).to_contain_text("Archive this? That would stop its work for good")
    await asks.get_by_role("button", name="Cancel").click()
    await expect(row.locator("> a")).to_be_focused()

    await page.keyboard.press("e")
    await asks.get_by_role("button", name="Archive").click()
    await expect(row).to_have_count(0)
    await expect(page.locator(f"#{after} > a")).to_be_focused()
    await expect(page.get_by_role("button", name="Undo")).to_have_count(0)


async def test_a_title_is_changed_where_its_menu_is(page: Page, house: House) -> None:
    renamed = await find(page, "Conversation 30")
    await page.goto(f"{house.address}/c/{renamed}")
    header = page.locator("#head")
    field = header.get_by_role("textbox", name="Title")
    for width, title in ((1280, "On a desktop"), (390, "On a phone")):
        await page.set_viewport_size({"width": width, "height": 800})
        await header.get_by_role("button", name="More for").click()
        await header.get_by_role("button", name="Rename").click()
        await expect(field).to_be_focused()
        await expect(page.locator("#menu-head")).to_be_hidden()
        await field.fill(title)
        await page.keyboard.press("Enter")
        await expect(header.get_by_role("heading", name=title)).to_be_focused()


async def test_rows_move_when_a_menu_was_used_with_the_pointer(page: Page, house: House) -> None:
    house.world.clock.advance(MINUTE)
    plants = await house.world.set_task("plants", "Plants", "Look.", "every day at 3:00")
    row, first = page.locator(f"#row-{plants}"), page.locator("#list .conversation").first
    await row.hover()
    await row.locator(".more").click()
    await row.get_by_role("button", name="Pause").click()
    await expect(row.locator(".state")).to_have_text("Paused by you")
    await page.mouse.move(900, 500)
    house.world.clock.advance(MINUTE)
    other = await find(page, "Conversation 300")
    await call(page, "PATCH", f"/api/conversations/{other}", {"title": "Has news"})
    await expect(first.locator(".title")).to_have_text("Has news")


async def test_rows_wait_while_somebody_points_at_them_or_renames(page: Page, house: House) -> None:
    rows = page.locator("#list .conversation")
    third, fourth = [await rows.nth(number).get_attribute("data-id") for number in (2, 3)]
    await rows.nth(1).hover()
    house.world.clock.advance(MINUTE)
    await call(page, "PATCH", f"/api/conversations/{fourth}", {"title": "Has moved"})
    await expect(rows.nth(3).locator(".title")).to_have_text("Has moved")
    await page.mouse.move(900, 500)
    await expect(rows.first.locator(".title")).to_have_text("Has moved")

    row = page.locator(f"#row-{third}")
    await row.hover()
    await row.locator(".more").click()
    await row.get_by_role("button", name="Rename").click()
    field = row.get_by_role("textbox", name="Title")
    await field.fill("Half a ti")
    await call(page, "POST", f"/api/conversations/{third}/messages", {"content": "Hello."})
    await call(page, "PATCH", f"/api/conversations/{fourth}", {"title": "Has changed"})
    await expect(page.locator(f"#row-{fourth} .title")).to_have_text("Has changed")
    await field.press_sequentially("tle")
    await page.keyboard.press("Enter")
    await expect(row.locator(".title")).to_have_text("Half a title")
