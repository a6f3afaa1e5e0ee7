"""Conversations in a real browser: what is said, asked and done is shown at once, everywhere."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
from support.browser.browsing import Browser, BrowserContext, Page, Route, expect, person
from support.browser.visitors import Server, Visitor, sign_in
from support.requirements import requirement

pytestmark = pytest.mark.timeout(400)

ASK = "every second ask me whether to go on"


@pytest.fixture
async def other(browser: Browser, server: Server) -> AsyncIterator[Visitor]:
    """Give a second browser of the same user."""
    async with person(browser) as user:
        yield Visitor(await sign_in(user, server.make_link()), server)


async def write(page: Page, text: str) -> None:
    await page.locator("#composer").fill(text)
    await page.keyboard.press("Enter")


async def test_a_conversation_begins_with_a_message_and_goes_on(visitor: Visitor) -> None:
    page = await visitor.open("/new")
    await write(page, "hello <b>there</b>")

    await expect(page.locator(".message.yours")).to_contain_text("hello <b>there</b>")
    await expect(page.locator(".message.theirs[id]")).to_contain_text("I am a demo")
    await expect(page).to_have_url(f"{visitor.server.address}/c/{page.url.rpartition('/')[2]}")
    # Markdown of the reply is rendered, and what was typed is text.
    await expect(page.locator(".message.theirs[id] li").first).to_contain_text("remind me")
    await expect(page.locator(".message.yours b")).to_have_count(0)

    await write(page, "thanks")
    await expect(page.locator(".message.theirs[id]").last).to_contain_text("You are welcome")
    await expect(page.locator("#composer")).to_have_value("")
    # Somebody looks at it, however soon it came after the message.
    row = page.locator(f"#row-{page.url.rpartition('/')[2]}")
    await expect(row.locator(".state")).to_contain_text("You are welcome")
    await expect(row).not_to_have_class(re.compile("unread"))
    # Only the last message of one's own can be changed.
    await expect(page.get_by_role("button", name="Edit")).to_have_count(1)
    await page.keyboard.press("ArrowUp")
    await expect(page.locator("#composer")).to_have_value("thanks")
    await page.locator("#composer").fill("what are you working on?")
    # An edit that is not finished is still there after a reload.
    await page.reload()
    await expect(page.locator(".edits-this")).to_be_visible()
    await expect(page.locator("#composer")).to_have_value("what are you working on?")
    await page.keyboard.press("Enter")
    await expect(page.locator(".message.yours")).to_have_count(2)
    await expect(page.locator(".message.yours").last).to_contain_text("working on")
    await expect(page.locator(".message.theirs[id]")).to_have_count(2)
    await expect(page.locator(".edits-this")).to_be_hidden()

    await write(page, "Pick a name for my new cat, but ask me first.")
    question = page.locator(".question")
    await expect(page.locator("#said")).to_contain_text("asks: ")
    await question.get_by_role("button", name="Something else").click()
    own = question.get_by_role("textbox", name="Say it in your own words")
    await expect(own).to_be_focused()
    # The question has three answers: anything else is said to the agent, and it stays open.
    await own.fill("thanks")
    await own.press("Enter")
    await expect(page.locator(".message.yours").last).to_contain_text("thanks")
    await expect(page.locator(".message.theirs[id]").last).to_contain_text("You are welcome")
    await question.get_by_role("button", name="Olive").click()
    await expect(page.locator(".answered")).to_contain_text("Olive. You answered")


async def test_on_a_phone_enter_is_a_new_line_and_a_chat_that_was_deleted_says_so(
    browser: Browser, visitor: Visitor
) -> None:
    conversation_id = await visitor.say("hello there")
    phone = {"viewport": {"width": 390, "height": 800}, "is_mobile": True, "has_touch": True}
    async with person(browser, allowed=("404",), **phone) as user:
        page = await sign_in(user, visitor.server.make_link())
        await page.goto(f"{visitor.server.address}/c/{conversation_id}")
        await page.locator("#composer").press_sequentially("one\ntwo")
        await expect(page.locator("#composer")).to_have_value("one\ntwo")

        await visitor.call("DELETE", f"/api/conversations/{conversation_id}")
        await expect(page.get_by_role("heading", name="Nothing here")).to_be_visible()


@requirement("A-question")
async def test_a_question_is_answered_in_its_chat_and_folds_everywhere(
    visitor: Visitor, other: Visitor
) -> None:
    conversation_id = await visitor.say(ASK)
    page = await visitor.open(f"/c/{conversation_id}")
    beside = await other.open("/needs-you")

    card = page.get_by_role("region", name="Shall I go on?")
    await expect(card.get_by_role("button", name="Yes")).to_be_visible()
    waiting = beside.locator(".question", has=beside.locator(f"a[href='/c/{conversation_id}']"))
    await expect(waiting).to_be_visible()
    await expect(page.locator(f"#row-{conversation_id} .state")).to_contain_text("Asks")

    await card.locator("h2").focus()
    await page.keyboard.press("2")
    await expect(page.locator(".answered").first).to_contain_text("No. You answered")
    await expect(waiting).to_have_count(0)


async def test_the_list_follows_what_is_done_in_another_browser(
    visitor: Visitor, other: Visitor
) -> None:
    conversation_id = await visitor.say("hello there")
    page, row = await other.open("/new"), f"#row-{conversation_id}"
    await expect(page.locator(row)).to_be_visible()

    api = f"/api/conversations/{conversation_id}"
    await visitor.call("PATCH", api, {"title": "Flats in <i>Porto</i>"})
    await expect(page.locator(f"{row} .title")).to_have_text("Flats in <i>Porto</i>")

    await page.locator(row).hover()
    await page.locator(f"{row} .more").click()
    await page.get_by_role("button", name="Pin", exact=True).click()
    await page.mouse.move(800, 10)
    await expect(page.locator(f"{row}[data-group=pinned]")).to_be_visible()
    await page.locator(row).hover()
    await page.locator(f"{row} .more").click()
    await page.get_by_role("button", name="Rename").click()
    await page.keyboard.type("Lisbon")
    await page.keyboard.press("Enter")
    await expect(page.locator(f"{row} .title")).to_have_text("Lisbon")

    await page.locator(row).hover()
    await page.locator(f"{row} .more").click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.locator(row)).to_have_count(0)
    await page.get_by_role("button", name="Undo").click()
    await expect(page.locator(row)).to_be_visible()

    await page.locator("#search").fill("lisb")
    await expect(page.locator("#list .conversation")).to_have_count(1)
    await page.locator("#search").fill("xyzzy")
    await expect(page.locator("#list")).to_contain_text("Nothing matches")


async def test_a_conversation_with_news_moves_to_the_top(visitor: Visitor) -> None:
    older, newer = [await visitor.say("hello there") for _ in range(2)]
    page = await visitor.open("/new")
    first = page.locator("#list .conversation:not([data-group=pinned])").first
    await expect(first).to_have_id(f"row-{newer}")

    await visitor.call("POST", f"/api/conversations/{older}/messages", {"content": "thanks"})
    await expect(first).to_have_id(f"row-{older}")


async def test_a_menu_says_what_can_be_done_now(visitor: Visitor) -> None:
    conversation_id = await visitor.say("every 10 minutes check the file notes.txt")
    page, row = await visitor.open("/new"), f"#row-{conversation_id}"
    pause = page.locator(row).get_by_role("button", name="Pause")
    # The menu is of the moment in which it is opened.
    await expect(page.locator(f"{row} .state")).to_contain_text("Every 10 minutes")
    await page.locator(row).hover()
    await page.locator(f"{row} .more").click()
    await expect(pause).to_be_visible()

    # One that is open stays as it is.
    await visitor.call("PATCH", f"/api/conversations/{conversation_id}", {"title": "Notes"})
    await expect(page.locator(f"{row} .title")).to_have_text("Notes")
    await pause.click()
    await expect(page.locator(f"{row} .state")).to_contain_text("Paused by you")
    await page.locator(f"{row} .more").click()
    await expect(page.locator(row).get_by_role("button", name="Resume")).to_be_visible()


async def test_a_server_that_is_killed_under_an_open_page_is_missed_and_found_again(
    cut_off: Visitor,
) -> None:
    conversation_id = await cut_off.say("hello there")
    page = await cut_off.open(f"/c/{conversation_id}")
    await expect(page.locator(".message.theirs[id]")).to_be_visible()
    await page.evaluate("window.sameDocument = true")
    await page.locator("#composer").fill("half a sentence")

    server = cut_off.server
    port = server.address.rpartition(":")[2]
    server.running.process.kill()
    server.running.process.wait()
    await expect(page.locator(".toast")).to_contain_text("No connection. Your draft is safe.")
    again = server.start("up", "--port", port, "--data", server.data)
    await asyncio.to_thread(again.wait_until_ready)
    # Somebody else writes before the page is connected again.
    told = server.start("say", "--in", conversation_id, "thanks", "--data", server.data)
    await asyncio.to_thread(told.process.wait)
    await expect(page.locator(".toast")).to_have_count(0)
    await expect(page.locator(".message.theirs[id]").last).to_contain_text("You are welcome")
    await expect(page.locator("#composer")).to_have_value("half a sentence")
    assert await page.evaluate("window.sameDocument")


async def test_eight_tabs_share_one_stream(visitor: Visitor, user: BrowserContext) -> None:
    conversation_id = await visitor.say("hello there")
    streams = list[str]()
    user.on("request", lambda asked: streams.append(asked.url) if "stream" in asked.url else None)
    tabs = [await user.new_page() for _ in range(8)]
    for tab in tabs:
        await tab.goto(f"{visitor.server.address}/c/{conversation_id}")
    await write(tabs[0], "thanks")
    for tab in tabs:
        await expect(tab.locator(".message.theirs[id]").last).to_contain_text("You are welcome")
    # The first page has it; whoever takes over when it goes, opens another.
    assert len(streams) == 0
    await visitor.page.close()
    await write(tabs[1], "what are you working on?")
    for tab in tabs:
        await expect(tab.locator(".message.yours")).to_have_count(3)
    assert len(streams) == 1


async def test_a_change_while_a_page_is_on_its_way_is_shown(
    visitor: Visitor, other: Visitor
) -> None:
    conversation_id = await visitor.say("hello there")
    api, view = f"/api/conversations/{conversation_id}", f"/page/c/{conversation_id}"
    page, replies = other.page, other.page.locator(".message.theirs[id]")
    await visitor.open(f"/c/{conversation_id}")
    await expect(visitor.page.locator(".message.theirs[id]")).to_have_count(1)
    texts = iter(["thanks", "are you there?"])

    async def answer_late(route: Route) -> None:
        """Hand over a page in which what was said meanwhile is missing."""
        answer = await route.fetch()
        text = next(texts)
        replies = visitor.page.locator(".message.theirs[id]")
        known = await replies.count()
        await visitor.call("POST", f"{api}/messages", {"content": text})
        await expect(replies).to_have_count(known + 1)
        await route.fulfill(response=answer)

    await page.route(f"**{view}", answer_late)
    # Before the page follows changes, and while it does.
    await other.open(f"/c/{conversation_id}")
    await expect(page.locator(".message.yours").last).to_contain_text("thanks")
    await expect(replies).to_have_count(2)
    await page.get_by_role("link", name="New conversation").click()
    await page.locator(f"#row-{conversation_id} > a").click()
    await expect(page.locator(".message.yours").last).to_contain_text("are you there?")
    await expect(replies).to_have_count(3)
    await page.unroute_all(behavior="wait")
