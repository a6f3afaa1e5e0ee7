"""Trouble between browser and server: nothing is done twice, lost, or shown as it no longer is."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.browser.browsing import (
    Browser,
    BrowserContext,
    FilePayload,
    Page,
    Route,
    expect,
    person,
)
from support.browser.visitors import Server, Visitor, sign_in

from backburner.web.rendering import VERSION_HEADER

pytestmark = pytest.mark.timeout(400)

#: As a browser does whose storage for the page is full.
FILL_STORAGE = """() => {
  Storage.prototype.setItem = () => { throw new DOMException("", "QuotaExceededError"); };
}"""
#: Tells all tabs of many changes at the same time, as the one that reads the stream does.
TELL = """(ids) => {
  const channel = new BroadcastChannel("backburner-stream");
  for (const conversation of ids) {
    channel.postMessage({ name: "change", data: { kind: "conversation", conversation } });
  }
}"""


async def lose_answer(page: Page, address: str) -> None:
    """Let the server do what is asked there next, and lose its answer."""

    async def lose(route: Route) -> None:
        await route.fetch()
        await route.abort()

    await page.route(address, lose, times=1)


async def list_own(visitor: Visitor, conversation_id: str) -> list[Any]:
    listed = await visitor.call("GET", f"/api/conversations/{conversation_id}/messages")
    return [one["content"] for one in listed["items"] if one["role"] == "user"][::-1]


async def count_conversations(visitor: Visitor) -> int:
    return len((await visitor.call("GET", "/api/conversations?limit=100"))["items"])


async def test_what_is_sent_again_after_a_lost_answer_is_done_once(
    server: Server, browser: Browser
) -> None:
    async with person(browser, allowed=("net::ERR_",)) as user:
        visitor = Visitor(await sign_in(user, server.make_link()), server)
        conversation_id = await visitor.say("hello there")
        page = await visitor.open(f"/c/{conversation_id}")
        composer = page.locator("#composer")
        await lose_answer(page, "**/messages")
        await composer.fill("thanks")
        await composer.press("Enter")
        await expect(page.locator(".composer .problem")).to_contain_text("does not respond")
        await expect(composer).to_have_value("thanks")
        await composer.press("Enter")
        await expect(composer).to_have_value("")
        await expect(page.locator(".message.theirs[id]").last).to_contain_text("You are welcome")
        # The same words are another message once they have arrived.
        await composer.fill("thanks")
        await composer.press("Enter")
        await expect(page.locator(".message.yours:not(.sending)")).to_have_count(3)
        assert await list_own(visitor, conversation_id) == ["hello there", "thanks", "thanks"]

        page = await visitor.open("/new")
        before = await count_conversations(visitor)
        await lose_answer(page, "**/api/conversations")
        await composer.fill("hello again")
        await composer.press("Enter")
        await expect(composer).to_have_value("hello again")
        await composer.press("Enter")
        await expect(page.locator(".message.yours")).to_have_count(1)
        assert await count_conversations(visitor) == before + 1

        # Forms and buttons as well.
        page = await visitor.open("/tasks/new")
        before = await count_conversations(visitor)
        await page.locator("#task-prompt").fill("check the file notes.txt")
        await page.locator("#task-name").fill("Notes")
        await page.locator("#task-when").fill("every 10 minutes")
        await lose_answer(page, "**/api/tasks")
        make = page.locator("#new-task .button.main")
        await make.click()
        await expect(page.locator("#new-task > .problem")).to_contain_text("does not respond")
        await make.click()
        await expect(page).not_to_have_url(f"{server.address}/tasks/new")
        assert await count_conversations(visitor) == before + 1


async def test_an_example_is_sent_once_and_what_was_typed_stays(visitor: Visitor) -> None:
    page = await visitor.open("/new")
    before = await count_conversations(visitor)
    await page.locator("#composer").fill("half a sentence")
    await page.locator("[data-say]").last.dblclick()
    await expect(page.locator(".message.yours")).to_have_count(1)
    page = await visitor.open("/new")
    await expect(page.locator("#composer")).to_have_value("half a sentence")
    assert await count_conversations(visitor) == before + 1


async def test_what_is_typed_while_a_message_fails_stays(server: Server, browser: Browser) -> None:
    async with person(browser, allowed=("net::ERR_",)) as user:
        visitor = Visitor(await sign_in(user, server.make_link()), server)
        page = await visitor.open(f"/c/{await visitor.say('hello there')}")
        composer = page.locator("#composer")

        async def fail(route: Route) -> None:
            await composer.fill("typed meanwhile")
            await route.abort()

        await page.route("**/messages", fail)
        await composer.fill("thanks")
        await composer.press("Enter")
        await expect(page.locator(".composer .problem")).to_be_visible()
        await expect(composer).to_have_value("thanks\n\ntyped meanwhile")


async def test_an_edit_keeps_files_and_drafts_and_replaces_nothing_else(
    server: Server, browser: Browser
) -> None:
    async with person(browser, allowed=("status of 409",)) as user:
        visitor = Visitor(await sign_in(user, server.make_link()), server)
        conversation_id = await visitor.say("hello there")
        page = await visitor.open(f"/c/{conversation_id}")
        composer = page.locator("#composer")
        notes = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"notes")
        await page.locator("input[type=file]").set_input_files([notes])
        await expect(page.locator(".composer .file:not([aria-busy])")).to_have_count(1)
        await composer.fill("tahnks")
        await composer.press("Enter")
        own = page.locator(".message.yours:not(.sending)")
        await expect(own.last.locator(".file")).to_contain_text("notes.txt")
        # A reply that comes later moves the message away from the pointer.
        await expect(page.locator(".message.theirs[id]")).to_have_count(2)

        await composer.fill("half a sentence")
        await own.last.hover()
        await own.last.get_by_role("button", name="Edit").click()
        await expect(composer).to_have_value("tahnks")
        await expect(page.locator(".composer .file")).to_contain_text("notes.txt")
        await composer.fill("thanks")
        await composer.press("Enter")
        await expect(own.last).to_contain_text("thanks")
        await expect(own.last.locator(".file")).to_contain_text("notes.txt")
        # What was being written is there again, also after a reload.
        await expect(composer).to_have_value("half a sentence")
        await page.reload()
        await expect(composer).to_have_value("half a sentence")

        # Another tab has sent something since: an edit of the message before does not remove that.
        await composer.fill("")
        await composer.press("ArrowUp")
        await expect(composer).to_have_value("thanks")
        path = f"/api/conversations/{conversation_id}/messages"
        await visitor.call("POST", path, {"content": "what are you working on?"})
        await composer.fill("thank you")
        await composer.press("Enter")
        await expect(page.locator(".composer .problem")).to_contain_text("another message since")
        await expect(composer).to_have_value("thank you")
        expected = ["hello there", "thanks", "what are you working on?"]
        assert await list_own(visitor, conversation_id) == expected
        await composer.press("Escape")
        await expect(composer).to_have_value("")


async def test_what_is_refused_for_a_while_is_asked_for_again(
    server: Server, browser: Browser
) -> None:
    async with person(browser, allowed=("status of 429",)) as user:
        visitor = Visitor(await sign_in(user, server.make_link()), server)
        conversation_id = await visitor.say("hello there")
        page = await visitor.open(f"/c/{conversation_id}")
        await expect(page.locator(".message.theirs[id]")).to_be_visible()
        refused, both = set[str](), asyncio.Event()

        async def refuse(route: Route) -> None:
            if both.is_set():
                await route.continue_()
                return
            await route.fulfill(status=429, body="{}")
            refused.add(route.request.url.partition("?")[0].rpartition("/")[2])
            if {"rows", "head"} <= refused:
                both.set()

        await page.route(re.compile("/page/(?!stream)"), refuse)
        await visitor.call("PATCH", f"/api/conversations/{conversation_id}", {"title": "Newer"})
        await both.wait()
        await expect(page.locator("main h1")).to_have_text("Newer")
        await expect(page.locator(f"#row-{conversation_id} .title")).to_have_text("Newer")


async def test_a_storm_of_changes_is_a_few_requests(visitor: Visitor, user: BrowserContext) -> None:
    conversation_id = await visitor.say("hello there")
    await user.add_init_script(
        "Object.defineProperty(document, 'hidden', { get: () => window.looked !== true });"
    )
    unseen = [await user.new_page() for _ in range(3)]
    for tab in unseen:
        await tab.goto(f"{visitor.server.address}/c/{conversation_id}")
        await expect(tab.locator(".message.theirs[id]")).to_be_visible()
    page = await visitor.open(f"/c/{conversation_id}")
    await page.evaluate("window.looked = true")
    asked = list[str]()
    user.on("request", lambda one: asked.append(one.url) if "/page/" in one.url else None)
    path = f"/api/conversations/{conversation_id}"
    for number in range(40):
        await visitor.call("PATCH", path, {"title": f"Title {number}"})
    await expect(page.locator("main h1")).to_have_text("Title 39")
    await expect(page.locator(f"#row-{conversation_id} .title")).to_have_text("Title 39")
    assert len(asked) < 90

    # What nobody has seen is there when somebody looks.
    await unseen[0].evaluate(
        "window.looked = true; document.dispatchEvent(new Event('visibilitychange'))"
    )
    await expect(unseen[0].locator("main h1")).to_have_text("Title 39")
    await expect(unseen[0].locator(f"#row-{conversation_id} .title")).to_have_text("Title 39")


async def test_more_changes_than_rows_are_given_at_once_are_shown(
    visitor: Visitor, user: BrowserContext
) -> None:
    page = await visitor.open("/new")
    beside = await user.new_page()
    await beside.goto(f"{visitor.server.address}/reset")
    ids = [f"c_0123456789abcdefghjkmnpq{number:02}" for number in range(30)]
    async with page.expect_response(lambda one: "/page/list" in one.url) as listed:
        await beside.evaluate(TELL, ids)
    assert (await listed.value).status == 200


async def test_what_a_browser_has_no_room_for_is_sent_all_the_same(visitor: Visitor) -> None:
    page = await visitor.open(f"/c/{await visitor.say('hello there')}")
    await page.evaluate(FILL_STORAGE)
    await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    await page.locator("#composer").fill("thanks")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator(".message.theirs[id]").last).to_contain_text("You are welcome")


async def test_a_page_from_before_an_update_is_replaced_at_the_next_step(visitor: Visitor) -> None:
    page = await visitor.open(f"/c/{await visitor.say('hello there')}")
    await page.evaluate("window.sameDocument = true")
    await page.get_by_role("link", name="Needs you").click()
    await expect(page.get_by_role("heading", name="Needs you")).to_be_visible()
    assert await page.evaluate("window.sameDocument")

    async def be_newer(route: Route) -> None:
        answer = await route.fetch()
        headers = {**answer.headers, VERSION_HEADER: "0123456789ab"}
        await route.fulfill(response=answer, headers=headers)

    await page.route("**/page/connections", be_newer)
    await page.get_by_role("link", name="Connections").click()
    await expect(page.get_by_role("heading", name="Connections")).to_be_visible()
    assert await page.evaluate("window.sameDocument")
    await page.locator(".sidebar").get_by_role("link", name="New conversation").click()
    await expect(page).to_have_url(f"{visitor.server.address}/new")
    await expect(page.locator("#composer")).to_be_visible()
    assert await page.evaluate("window.sameDocument") is None


async def test_what_is_typed_before_the_scripts_are_there_stays(
    server: Server, browser: Browser
) -> None:
    loaded = asyncio.Event()

    async def wait(route: Route) -> None:
        await loaded.wait()
        await route.continue_()

    async with person(browser, service_workers="block") as user:
        page = await sign_in(user, server.make_link())
        conversation_id = await Visitor(page, server).say("hello there")
        await page.route("**/chat.js", wait)
        await page.goto(f"{server.address}/needs-you")
        await page.locator(f"#row-{conversation_id} > a").click()
        await page.locator("#composer").fill("half a sentence")
        loaded.set()
        await expect(page.get_by_role("button", name="Send")).to_be_enabled()
        await expect(page.locator("#composer")).to_have_value("half a sentence")


async def test_times_count_down_by_the_clock_of_the_server(
    visitor: Visitor, user: BrowserContext
) -> None:
    conversation_id = await visitor.say("every 30 minutes check the file notes.txt")
    for hours in (-5, 5):
        page = await user.new_page()
        await page.clock.install(time=datetime.now(UTC) + timedelta(hours=hours))
        await page.goto(f"{visitor.server.address}/needs-you")
        left = page.locator(f"#row-{conversation_id} time.in")
        await expect(left).to_have_text(re.compile(r"in\s(29|30)\smin"))
        await left.evaluate("(time) => { time.textContent = 'old'; }")
        await page.clock.fast_forward(60_000)
        await expect(left).to_have_text(re.compile(r"in\s(28|29|30)\smin"))
        await page.close()


async def test_a_chat_does_not_wait_for_the_list(visitor: Visitor) -> None:
    page, loaded = visitor.page, asyncio.Event()

    async def wait(route: Route) -> None:
        await loaded.wait()
        await route.continue_()

    await page.route("**/page/sidebar", wait)
    await page.goto(f"{visitor.server.address}/c/{await visitor.say('hello there')}")
    await expect(page.locator("#composer")).to_be_focused()
    loaded.set()
    await expect(page.locator("#list")).to_be_visible()
    await expect(page.locator("#composer")).to_be_focused()
