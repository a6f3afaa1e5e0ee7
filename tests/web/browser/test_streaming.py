"""A reply as it is written: blocks appear when they close, and the open one grows as text."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.browser.browsing import Browser, Route, expect, person
from support.browser.visitors import Visitor, serving, sign_in
from support.model_api.server import ModelApi
from support.model_api.steps import CallTool, Delay, Refuse, Say

pytestmark = pytest.mark.timeout(400)

#: Keeps what other tabs are told of replies in progress.
RECORD = """() => {
  window.told = [];
  window.channel = new BroadcastChannel("backburner-stream");
  window.channel.onmessage = ({ data }) => data.name === "draft" && window.told.push(data);
}"""
#: Tells a page the same once more, and says how many replies it shows then.
TELL_AGAIN = """(told) => {
  const heard = new Promise((go) => document.addEventListener("draft", ({ detail }) => {
    if (detail.text === "last") go(document.querySelectorAll(".message.theirs").length);
  }));
  const channel = new BroadcastChannel("backburner-stream");
  for (const one of told) channel.postMessage(one);
  channel.postMessage({ name: "draft", data: { conversation: "none", text: "last" } });
  return heard;
}"""
#: Lets a page note that it has heard a text of a reply.
LISTEN = """(text) => {
  window.heard = new Promise((go) => document.addEventListener("draft", ({ detail }) => {
    if (detail.open?.text.includes(text)) go();
  }));
}"""
SETTINGS = """profile = "local"
[profiles.local]
engine = "openai"
address = "{address}/v1"
model = "small"
"""


@pytest.fixture
async def model() -> AsyncIterator[ModelApi]:
    async with ModelApi() as api:
        yield api


@pytest.fixture
async def visitor(browser: Browser, model: ModelApi, tmp_path: Path) -> AsyncIterator[Visitor]:
    (tmp_path / "backburner.toml").write_text(SETTINGS.format(address=model.address))
    (tmp_path / "backburner.toml").chmod(0o600)
    with serving(tmp_path) as server:
        async with person(browser) as user:
            yield Visitor(await sign_in(user, server.make_link()), server)


async def test_a_reply_is_shown_block_by_block_and_stays_as_it_was_shown(
    visitor: Visitor, model: ModelApi
) -> None:
    paused, stopped = asyncio.Event(), asyncio.Event()
    model.then(
        Say("First **bold** words.\n\n```python\nprint('<b>')\n```\n\n- one\n- two **th"),
        Delay(paused),
        Say("ree**\n\nThe end."),
    )
    model.then(CallTool("list_files", {"path": "."}))
    model.then(Say("I am still "), Delay(stopped), Say("writing."))
    page = await visitor.open("/new")
    await page.locator("#composer").fill("go")
    await page.keyboard.press("Enter")

    draft = page.locator("#draft .body")
    # What is closed is rendered; what is open is text.
    await expect(draft.locator("p b, p strong").first).to_have_text("bold")
    await expect(draft.locator("figure.code pre")).to_have_text("print('<b>')\n")
    await expect(draft.locator(".open-block")).to_contain_text("two **th")
    await expect(page.locator("#draft")).to_have_attribute("aria-busy", "true")
    # A tab that is opened now has all of it.
    late = await page.context.new_page()
    await late.goto(page.url)
    await expect(late.locator("#draft figure.code")).to_be_visible()
    await expect(late.locator("#draft .open-block")).to_contain_text("two **th")
    paused.set()
    for tab in (page, late):
        await expect(tab.locator("#draft .body")).to_have_count(0)
        reply = tab.locator(".message.theirs .body")
        await expect(reply.locator("li strong")).to_have_text("three")
        await expect(reply).to_contain_text("The end.")
    await late.close()

    # The next one uses a tool, and is stopped.
    await page.locator("#composer").fill("again")
    await page.keyboard.press("Enter")
    await expect(page.locator("#draft .open-block")).to_contain_text("I am still")
    line = page.locator(".tool")
    await expect(line).to_contain_text("Looked at the files")
    await line.click()
    await expect(page.locator(".tool-details")).to_contain_text('"path": "."')
    await page.locator("#composer").focus()
    await page.keyboard.press("Escape")
    await expect(page.locator("#draft .body")).to_have_count(0)
    await expect(page.locator(".message.theirs").last).to_contain_text("I am still")
    await expect(page.get_by_role("button", name=re.compile("Stop"))).to_be_hidden()
    stopped.set()


async def test_a_piece_that_comes_after_its_reply_is_not_shown(
    visitor: Visitor, model: ModelApi
) -> None:
    paused = asyncio.Event()
    model.then(Say("First.\n\nSec"), Delay(paused), Say("ond."))
    page = await visitor.open("/new")
    late = await page.context.new_page()
    await late.goto(page.url)
    await late.evaluate(RECORD)
    await page.locator("#composer").fill("go")
    await page.keyboard.press("Enter")
    await expect(page.locator("#draft")).to_contain_text("Sec")
    paused.set()
    await expect(page.locator(".message.theirs[id] .body")).to_contain_text("Second.")
    await expect(page.locator("#draft .body")).to_have_count(0)
    told = await late.evaluate("window.told")
    assert told
    # Looked at in the moment in which the page has heard them.
    assert await page.evaluate(TELL_AGAIN, told) == 1


async def test_a_reply_is_whole_where_its_pieces_come_before_the_messages(
    visitor: Visitor, model: ModelApi
) -> None:
    paused, released = asyncio.Event(), asyncio.Event()
    model.then(Say("Hello."))
    model.then(Say("First.\n\nSec"), Delay(paused), Say("ond."))
    page = await visitor.open("/new")
    await page.locator("#composer").fill("hello")
    await page.keyboard.press("Enter")
    await expect(page.locator(".message.theirs[id]")).to_have_count(1)
    asked = list[str]()

    async def hold(route: Route) -> None:
        asked.append(route.request.url)
        answer = await route.fetch()
        await released.wait()
        await route.fulfill(response=answer)

    await page.route("**/tail?*", hold)
    await page.locator("#composer").fill("go")
    await page.evaluate(LISTEN, "Sec")
    await page.keyboard.press("Enter")
    await page.evaluate("window.heard")
    released.set()
    await expect(page.locator("#draft p").first).to_have_text("First.")
    await expect(page.locator("#draft .open-block")).to_have_text("Sec")
    paused.set()
    await expect(page.locator("#draft .body")).to_have_count(0)
    await expect(page.locator(".message.theirs").last).to_contain_text("Second.")
    assert asked


async def test_the_last_messages_are_tried_again_edited_and_copied(
    visitor: Visitor, model: ModelApi
) -> None:
    model.then(Refuse(500))
    model.then(Say("It works:\n\n```sh\nls -l\n```"))
    page = await visitor.open("/new")
    composer = page.locator("#composer")
    await composer.fill("go")
    await page.keyboard.press("Enter")

    failed = page.locator(".message.failed")
    await expect(failed).to_contain_text("I could not answer")
    await failed.get_by_role("button", name="Try again").click()
    await expect(page.locator(".message.theirs.last")).to_contain_text("It works:")
    await expect(failed).to_have_count(0)
    await expect(page.get_by_role("button", name="Try again")).to_have_count(1)

    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await page.locator("figure.code").get_by_role("button", name="Copy").click()
    assert await page.evaluate("navigator.clipboard.readText()") == "ls -l\n"

    # To edit says so, and can be left.
    note = page.get_by_text("This takes the place of your last message.")
    await composer.focus()
    await page.keyboard.press("ArrowUp")
    await expect(composer).to_have_value("go")
    await expect(note).to_be_visible()
    await page.get_by_role("button", name="Cancel").click()
    await expect(note).to_be_hidden()
    await expect(composer).to_have_value("")
    await page.keyboard.press("ArrowUp")
    model.then(Say("Better."))
    await composer.fill("go better")
    await page.keyboard.press("Enter")
    await expect(page.locator(".message")).to_have_count(2)
    await expect(page.locator(".message.yours")).to_contain_text("go better")

    # Commands that show something show it wherever they are typed.
    await composer.press_sequentially("/ke")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog").get_by_role("heading", name="Keys")).to_be_visible()
