"""What a newcomer does first, with the demo and a real mouse."""

import pytest
from support.browser.browsing import Page, Route, expect
from support.browser.visitors import Visitor

pytestmark = pytest.mark.timeout(400)

CAT = "pick a name for my new cat, but ask me first"


async def test_what_is_typed_first_is_the_message_however_late_the_list_comes(
    visitor: Visitor,
) -> None:
    page = visitor.page

    async def wait_for_the_composer(route: Route) -> None:
        await page.locator("#composer").wait_for(state="attached")
        await route.continue_()

    await page.route("**/page/sidebar", wait_for_the_composer)
    await page.goto(visitor.server.address)

    await expect(page.locator("#composer")).to_be_focused()
    # N alone would open another page.
    await page.keyboard.type("nothing now, thanks")
    await page.keyboard.press("Enter")
    await expect(page.locator(".message.yours p")).to_contain_text("nothing now, thanks")


async def test_one_click_answers_wherever_it_hits_a_button(cut_off: Visitor) -> None:
    # Nobody else asks anything there.
    visitor = cut_off
    async with visitor.page.expect_response("**/page/stream*"):
        page = await visitor.open("/needs-you")
    conversation_id = await visitor.say(CAT)

    await click_slowly(page, "Olive")
    lead = page.locator("#needs > .lead")
    await expect(lead).to_contain_text("Nothing needs you")
    # The run that the answer started is over.
    await expect(page.locator(f"#row-{conversation_id}")).to_contain_text("called Olive")
    await expect(lead).not_to_contain_text("working")

    await visitor.open(f"/c/{conversation_id}")
    answered = page.locator(".answered")
    await expect(answered).to_contain_text("Olive. You answered")
    await expect(answered).to_contain_text("Which name for your new cat?")
    # The first step of work is no news.
    await expect(page.locator("#about")).to_contain_text("Last 2 runs")
    await expect(page.locator("#about")).not_to_contain_text("What it knows")

    # Its runs stay, although the chat is no task any more.
    await page.locator("#about").get_by_role("link", name="Last 2 runs").click()
    await expect(page.locator("#task-runs")).to_contain_text("Your new cat is called Olive.")
    await expect(page.get_by_role("button", name="Try it once")).to_have_count(0)
    await page.go_back()
    await expect(answered).to_be_visible()

    # On a phone a long title shares its line with the buttons, and nothing stands below it.
    await page.set_viewport_size({"width": 390, "height": 844})
    box = await page.locator("#head").bounding_box()
    assert box is not None
    assert box["height"] < 60


async def click_slowly(page: Page, name: str) -> None:
    """Press near the first edge of a button, and let go there."""
    box = await page.get_by_role("button", name=name).bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 4, box["y"] + 8)
    await page.mouse.down()
    await expect(page.locator(".question:focus-within")).to_be_visible()
    await page.mouse.up()
