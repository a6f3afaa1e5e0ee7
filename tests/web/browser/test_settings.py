"""The first minutes with the page: a sentence, a model, the settings, and signing out."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.browser.browsing import Browser, expect, person
from support.browser.visitors import Visitor, serving, sign_in
from support.model_api import ModelApi, Refuse, Say
from support.requirements import requirement

pytestmark = pytest.mark.timeout(400)

KEY = "sk-canary-141421356237"


@pytest.fixture
async def newcomer(browser: Browser, tmp_path: Path) -> AsyncIterator[Visitor]:
    """Give somebody with a server of their own, who looks at it for the first time."""
    with serving(tmp_path) as server:
        async with person(browser, allowed=("status of 400",)) as user:
            yield Visitor(await sign_in(user, server.printed_link), server)


@requirement("Z-setup")
async def test_a_newcomer_tries_a_sentence_and_sets_up_a_model(newcomer: Visitor) -> None:
    page = newcomer.page
    await page.get_by_role("button", name="Pick a name for my new cat").click()
    question = page.locator(".question")
    await expect(
        question.get_by_role("heading", name="Which name for your new cat?")
    ).to_be_visible()
    await question.get_by_role("button", name="Pixel").click()
    await expect(page.locator(".message.theirs[id], .background").last).to_contain_text(
        "Your new cat is called Pixel."
    )

    async with ModelApi() as api:
        api.then(Refuse(401, message="Wrong key."))
        await page.goto(f"{newcomer.server.address}/new")
        await page.get_by_role("link", name="Set up").click()
        await page.get_by_text("A model on the server").click()
        form = page.locator("details[open] form")
        await form.get_by_label("Address").fill(f"{api.address}/v1")
        await form.get_by_label("Key").fill("wrong")
        await form.get_by_label("Model", exact=True).focus()
        # What the server offers is there to choose from.
        await expect(form.locator("datalist option")).not_to_have_count(0)
        await form.get_by_label("Model", exact=True).fill("small")
        await form.get_by_role("button", name="Test").click()
        result = form.locator(".tested")
        await expect(result).to_contain_text("key")
        await expect(result).to_have_attribute("data-works", "false")
        assert (await newcomer.call("GET", "/api/operate/models"))["items"][0]["profile"] == "demo"

        await form.get_by_label("Key").fill(KEY)
        await form.get_by_role("button", name="Test").click()
        await expect(result).to_have_attribute("data-works", "true")
        await expect(result).to_contain_text(re.compile(r"· in \d+\.\d\ss"))
        await form.get_by_role("button", name="Save and use").click()
        await expect(page.locator("li", has_text="with a key")).to_contain_text("Used for chats")
        # Its form is gone, and what was saved is in sight.
        await expect(page.locator("details[open]")).to_have_count(0)
        assert KEY not in await page.content()

        # Without a restart: the next message is answered by it.
        api.then(Say("I am a real model."))
        await page.get_by_role("link", name="New conversation").click()
        await expect(page.get_by_text("Set up a model")).to_have_count(0)
        await page.locator("#composer").fill("Who are you?")
        await page.keyboard.press("Enter")
        await expect(page.locator(".message.theirs[id]").last).to_contain_text("I am a real model.")
        assert api.received[-1].headers["authorization"] == f"Bearer {KEY}"


async def test_settings_take_effect_at_once(newcomer: Visitor) -> None:
    page = await newcomer.open("/settings")
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_label("Name", exact=True).fill("Ada <b>")
    await page.keyboard.press("Enter")
    await expect(page.locator("#who")).to_contain_text("Ada <b>")
    await page.reload()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_label("Time zone").fill("Mars/Olympus")
    await page.get_by_label("Time zone").blur()
    await expect(page.locator("#zone [role=alert]")).to_contain_text("Mars/Olympus")

    await page.get_by_role("link", name="Background work").click()
    switch = page.get_by_role("switch", name="Pause everything")
    await switch.check()
    await page.locator("#sidebar").get_by_role("button", name="Resume").click()
    await expect(switch).not_to_be_checked()

    await page.get_by_role("link", name="Allowances").click()
    await page.get_by_label("Allowance for: All work, per day").fill("7")
    await page.keyboard.press("Enter")
    await expect(page.locator("#who")).to_contain_text("$0.00 of $7.00 today")


async def test_tokens_and_memories_are_made_and_taken_back(visitor: Visitor) -> None:
    page = await visitor.open("/settings/tokens")
    await page.get_by_label("Name", exact=True).fill("calendar")
    await page.get_by_role("button", name="Create").click()
    made = page.locator("#made-token-text")
    await expect(made).to_have_text(re.compile("^bb_"))
    secret = await made.text_content() or ""
    await expect(page.locator("#tokens")).to_contain_text("calendar")
    await page.get_by_role("link", name="Done", exact=True).click()
    await expect(page.locator("#made-token")).to_be_hidden()
    assert secret not in await page.content()
    await page.get_by_role("button", name="Revoke: calendar").click()
    await page.locator("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.locator("#tokens")).not_to_contain_text("calendar")

    await page.get_by_role("link", name="Memories").click()
    await page.get_by_role("button", name="Add a memory").click()
    await page.get_by_label("Name", exact=True).fill("family/ada")
    await page.get_by_label("Text", exact=True).fill("Likes tea.")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".memory")).to_contain_text("Likes tea.")
    await page.get_by_role("button", name="Edit: family/ada").click()
    await page.get_by_label("Text: family/ada").fill("Likes coffee.")
    await page.locator(".memory").get_by_role("button", name="Save").click()
    await expect(page.locator(".memory p")).to_have_text("Likes coffee.")
    await page.get_by_role("searchbox", name="Search memories").fill("tea")
    await expect(page.locator("#memories")).to_contain_text("No memory matches")
    # A change elsewhere is looked at with the same words.
    async with page.expect_response("**/found?text=tea"):
        memory = {"text": "Herons like rivers."}
        await visitor.call("PUT", "/api/memories/birds", memory)
    await expect(page.locator("#memories")).to_contain_text("No memory matches")
    await page.get_by_role("searchbox", name="Search memories").fill("rivers")
    await expect(page.locator(".memory")).to_contain_text("Herons like rivers.")


async def test_data_is_exported_and_signing_out_ends_the_session(newcomer: Visitor) -> None:
    page = await newcomer.open("/settings/data")
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export").click()
    assert (await downloading.value).suggested_filename == "backburner-export.json"

    sections = page.get_by_role("navigation", name="Sections")
    await sections.get_by_role("link", name="You", exact=True).click()
    await page.get_by_label("Login").fill("ada")
    await page.get_by_label("New password").fill("three words or more")
    await page.get_by_role("button", name="Set password").click()
    # The new session is this one.
    await expect(page.locator(".section")).to_contain_text("Everything else is signed out.")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("textbox", name="Password", exact=True)).to_be_visible()
    assert await page.evaluate("localStorage.getItem('backburner-session')") is None
    await page.get_by_label("Login").fill("ada")
    await page.get_by_role("textbox", name="Password", exact=True).fill("three words or more")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.locator("#who")).to_contain_text("ada")
