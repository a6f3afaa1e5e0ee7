"""The field where messages are written: commands and files; and copying, going on, trying again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from support.browser.browsing import Browser, BrowserContext, FilePayload, expect, person
from support.browser.visitors import Visitor, serving, sign_in
from support.model_api import ModelApi, Refuse, Say
from support.requirements import requirement
from support.showcase import asking, belongings
from support.showcase.house import open_house
from support.showcase.looking import look_at, visiting
from support.showcase.pages import Look

pytestmark = pytest.mark.timeout(400)

SETTINGS = """profile = "local"
[profiles.local]
engine = "openai"
address = "{address}/v1"
model = "small"
"""
#: As when a file is pasted into the field, and when one is dropped on the page.
GIVE = """
  const give = (...names) => {
    const data = new DataTransfer();
    for (const name of names) data.items.add(new File([name], name, { type: "text/plain" }));
    return data;
  };
  const options = { bubbles: true, cancelable: true };
  const field = document.querySelector("#composer");
  const paste = (clipboardData) =>
    field.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData }));
  const drag = (kind, more) =>
    document.body.dispatchEvent(new DragEvent(kind, { ...options, ...more }));
"""
PASTE = """() => {%s
  paste(give("pasted.txt"));
  // A spreadsheet gives a picture of a text, too.
  const cells = give("cells.png");
  cells.setData("text/plain", "1, 2");
  paste(cells);
}"""
DRAG = """() => {%s
  const dataTransfer = give("dropped.txt");
  drag("dragover", { dataTransfer });
  // From one part of the page to another.
  drag("dragleave", { dataTransfer, relatedTarget: field });
}"""
#: The browser opens files that are dropped on a page, unless that is prevented; a text it inserts.
DROP = """() => {%s
  const text = new DataTransfer();
  text.setData("text/plain", "a word");
  const names = Array.from({ length: 10 }, (_, number) => `dropped-${number}.txt`);
  return [drag("drop", { dataTransfer: give(...names) }), drag("drop", { dataTransfer: text })];
}"""


async def test_commands_are_completed_and_done(visitor: Visitor) -> None:
    conversation_id = await visitor.say("every 10 minutes check the file notes.txt")
    page = await visitor.open(f"/c/{conversation_id}")
    composer, row = page.locator("#composer"), page.locator(f"#row-{conversation_id}")
    await expect(row.locator(".state")).to_contain_text("min")
    await expect(composer).to_be_focused()

    await composer.press_sequentially("/")
    options = page.get_by_role("listbox", name="Commands").get_by_role("option")
    assert await options.count() > 5
    # A slash alone chooses nothing; the list is whole on a screen that is low, too.
    await expect(page.locator("#commands [aria-selected=true]")).to_have_count(0)
    await composer.press("Enter")
    await expect(composer).to_have_value("/")
    await page.set_viewport_size({"width": 844, "height": 390})
    await composer.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await expect(options.first).to_be_in_viewport(ratio=1)
    await page.set_viewport_size({"width": 1280, "height": 720})
    await composer.press_sequentially("pa")
    await expect(options).to_have_count(1)
    await composer.press("Enter")
    await expect(row.locator(".state")).to_contain_text("Paused by you")
    await expect(composer).to_have_value("")

    await composer.press_sequentially("/ti")
    await composer.press("Tab")
    await expect(composer).to_have_value("/title ")
    await composer.press_sequentially("Notes of <b>mine</b>")
    await composer.press("Enter")
    await expect(row.locator(".title")).to_have_text("Notes of <b>mine</b>")

    await composer.press_sequentially("/")
    await composer.press("Escape")
    await expect(options).to_have_count(0)
    await composer.fill("/cancel")
    await composer.press("Enter")
    sure = page.get_by_role("dialog")
    await expect(sure).to_contain_text("Stop this work for good?")
    await sure.get_by_role("button", name="Cancel").click()
    await expect(row.locator(".state")).to_contain_text("Paused by you")
    # Those that need no conversation are there before it.
    await composer.fill("/new")
    await composer.press("Enter")
    await expect(page.locator("#main [data-say]").first).to_be_visible()
    await composer.fill("/needs")
    await composer.press("Enter")
    await expect(page.get_by_role("heading", name="Needs you")).to_be_visible()
    # None of it was said.
    listed = await visitor.call("GET", f"/api/conversations/{conversation_id}/messages")
    assert not any(one["content"].startswith("/") for one in listed["items"])


async def test_a_message_is_copied_and_the_end_is_reached(
    visitor: Visitor, user: BrowserContext
) -> None:
    await user.grant_permissions(["clipboard-read", "clipboard-write"])
    conversation_id = await visitor.say("hello **there**")
    await visitor.page.set_viewport_size({"width": 1000, "height": 420})
    page = await visitor.open(f"/c/{conversation_id}")
    first = page.locator(".message.yours").first
    await expect(page.locator(".message.theirs[id]")).to_be_visible()
    await first.hover()
    await first.get_by_role("button", name="Copy").click()
    await expect(first.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "hello **there**"

    below = page.locator("#below")
    await page.evaluate("document.querySelector('#scroller').scrollTop = 1e9")
    await expect(below).to_be_hidden()
    for replies in range(2, 5):
        await page.locator("#composer").fill("what are you working on?")
        await page.locator("#composer").press("Enter")
        await expect(page.locator("#composer")).to_have_value("")
        await expect(page.locator(".message.theirs[id]")).to_have_count(replies)
    await page.evaluate("document.querySelector('#scroller').scrollTop = 0")
    await expect(below).to_contain_text("latest")
    path = f"/api/conversations/{conversation_id}/messages"
    await visitor.call("POST", path, {"content": "thanks"})
    # What comes meanwhile moves nothing.
    await expect(below).to_contain_text("1 new")
    assert await page.evaluate("document.querySelector('#scroller').scrollTop") == 0
    await below.click()
    await expect(page.locator(".message.theirs[id]").last).to_be_in_viewport()
    await expect(below).to_be_hidden()


@requirement("Z-attach")
async def test_files_are_pasted_dropped_taken_back_and_sent(visitor: Visitor) -> None:
    page = await visitor.open("/new")
    await expect(page.locator("#composer")).to_be_focused()
    await page.evaluate(PASTE % GIVE)
    files = page.locator(".composer .file:not([aria-busy])")
    await expect(files).to_have_count(1)
    await page.evaluate(DRAG % GIVE)
    await expect(page.locator(".composer.drop")).to_be_visible()
    assert await page.evaluate(DROP % GIVE) == [False, True]
    await expect(page.locator(".composer.drop")).to_have_count(0)
    await expect(files).to_have_count(11)

    await page.reload()
    await expect(files).to_have_count(11)
    await page.get_by_role("button", name="Send").click()
    problem = page.locator(".composer .problem")
    await expect(problem).to_have_text("At most 10 files fit in a message; take 1 away.")
    await page.get_by_role("button", name="Remove dropped-1.txt").click()
    await page.get_by_role("button", name="Send").click()
    sent = page.locator(".message.yours .file")
    await expect(sent).to_have_count(10)
    async with page.expect_download() as downloading:
        await sent.filter(has_text="pasted.txt").click()
    download = await downloading.value
    assert download.suggested_filename == "pasted.txt"
    assert (await download.path()).read_text() == "pasted.txt"


@asynccontextmanager
async def staying(browser: Browser, data: Path, model: ModelApi) -> AsyncIterator[Visitor]:
    """Give somebody whose server has a model."""
    settings = data / "backburner.toml"
    settings.write_text(SETTINGS.format(address=model.address))
    settings.chmod(0o600)
    with serving(data) as server:
        async with person(browser) as user:
            yield Visitor(await sign_in(user, server.make_link()), server)


async def test_a_reply_that_failed_is_tried_again_with_the_files_of_its_message(
    browser: Browser, tmp_path: Path
) -> None:
    async with ModelApi() as model, staying(browser, tmp_path, model) as visitor:
        model.then(Refuse(400, message="No."))
        page = await visitor.open("/new")
        notes = FilePayload(name="notes.txt", mimeType="text/plain", buffer=b"Buy tea.")
        await page.locator("input[type=file]").set_input_files([notes])
        await expect(page.locator(".composer .file:not([aria-busy])")).to_have_count(1)
        await page.locator("#composer").fill("read this")
        await page.locator("#composer").press("Enter")
        again = page.get_by_role("button", name="Try again")
        await expect(again).to_be_visible()
        model.then(Say("You want tea."))
        await again.click()
        await expect(page.locator(".message.theirs[id]").last).to_contain_text("You want tea.")
        await expect(page.locator(".message.yours")).to_have_count(1)
        await expect(page.locator(".message.yours .file")).to_contain_text("notes.txt")
        assert "Buy tea." in str(model.received[-1].body)


@requirement("A-question")
async def test_a_message_answers_the_question_that_is_open_and_no_other(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        open_house(tmp_path, belongings, asking) as house,
        visiting(browser, house, "nora") as nora,
    ):
        page = await nora.new_page()
        await look_at(page, house, Look("", "/c/{input}"))
        composer, bar = page.locator("#composer"), page.locator(".answers-this")
        await expect(bar).to_contain_text("This answers:")
        await composer.fill("The early one")
        await composer.press("Enter")
        await expect(page.locator(".answered")).to_contain_text("The early one")
        await expect(bar).to_be_hidden()
        # What is said next is a message, in the same page.
        await composer.fill("And a cabin")
        await composer.press("Enter")
        await expect(page.locator(".message.yours").last).to_contain_text("And a cabin")
        await expect(composer).to_have_value("")
        await expect(page.locator(".composer .problem")).to_have_count(0)
