"""Questions as people answer them: the form of a server, and what "always here" would allow."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.browser.browsing import Browser, BrowserContext, Page, expect
from support.showcase import asking, belongings
from support.showcase.house import House, open_house
from support.showcase.looking import fill, visiting

from backburner.ports import Tx

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("house"), belongings, asking) as house:
        yield house


@pytest.fixture
async def nora(browser: Browser, house: House) -> AsyncIterator[BrowserContext]:
    async with visiting(browser, house, "nora") as context:
        yield context


async def open_chat(nora: BrowserContext, house: House, name: str) -> Page:
    page = await nora.new_page()
    await page.goto(f"{house.address}{fill(house, f'/c/{{{name}}}')}")
    await expect(page.locator(".question")).to_be_visible()
    return page


def read_sealed(house: House, name: str) -> Any:
    """Read what was sealed for the server that a conversation asks for."""
    world, place = house.world, house.world.places[name]

    def read(tx: Tx) -> bytes | None:
        ((_, secret),) = tx.secrets.find(f"inputs/{place}", owner=world.me)
        return world.deps.vault.load(tx.secrets, world.me, secret)

    return json.loads(world.database.run(read) or b"{}")["answers"]["to"]["values"]


async def test_a_form_of_five_kinds_of_values_is_filled_in_and_sent(
    nora: BrowserContext, house: House
) -> None:
    page = await open_chat(nora, house, "elicitation")
    card = page.locator(".question")
    # Nothing that a server named is a field of the form of its own.
    assert await card.locator("form").evaluate("(form) => typeof form.elements") == "object"
    await expect(card.get_by_label("Floor")).to_have_value("2")
    await expect(card.get_by_label("When")).to_have_value("pm")
    await expect(card.get_by_text("Somebody has to be there to sign for it.")).to_be_visible()

    # The browser asks for what is missing.
    await card.get_by_role("button", name="Send").click()
    await expect(card.get_by_label("Street and number")).to_be_focused()
    await card.get_by_label("Street and number").fill("Elm Road: 7")
    await card.get_by_label("Floor").fill("")
    await card.get_by_role("radio", name="No").check()
    await card.get_by_label("When").select_option("Before noon")
    await card.get_by_role("checkbox", name="Take the empty ones back").check()
    await card.get_by_role("button", name="Send").click()

    await expect(page.locator(".answered", has_text="Answered. You answered")).to_be_visible()
    assert read_sealed(house, "elicitation") == {
        "street": "Elm Road: 7",
        "gate": False,
        "slot": "am",
        "more": ["box"],
    }


async def test_always_here_asks_for_what_it_would_allow(nora: BrowserContext, house: House) -> None:
    page = await open_chat(nora, house, "lasting")

    await page.get_by_role("button", name="Always here").click()

    asks = page.get_by_role("dialog")
    await expect(asks.locator(".command")).to_have_text("mail/send_mail, whatever it is given")
    await expect(asks.get_by_role("button", name="Always here", exact=True)).to_be_visible()
    await asks.get_by_role("button", name="Cancel").click()
    await expect(page.locator(".question")).to_be_visible()


async def test_a_question_is_put_off_and_answered_all_the_same(
    nora: BrowserContext, house: House
) -> None:
    page = await open_chat(nora, house, "confirmation")
    needs = await nora.new_page()
    await needs.goto(f"{house.address}/needs-you")
    await page.get_by_role("button", name="Later").click()
    await page.get_by_role("button", name="In one hour").click()
    await expect(page.get_by_text("I will ask again")).to_be_visible()
    await expect(page.locator(".question")).to_be_hidden()
    # It is the last one there, and keys go to what can be seen of it.
    again = needs.get_by_role("button", name="Answer now")
    await expect(again).to_be_visible()
    await needs.locator(".cards > .question h2").last.focus()
    await needs.keyboard.press("j")
    await expect(again).to_be_focused()

    await page.get_by_role("button", name="Answer now").click()
    await page.locator(".question").get_by_role("button", name="Yes").click()
    await expect(page.locator(".answered", has_text="Yes. You answered")).to_be_visible()


@pytest.mark.parametrize(
    ("name", "answer"), [("in_doubt", "It happened"), ("allowance", "Raise it to $4.00")]
)
async def test_what_only_an_owner_can_decide_is_decided_with_a_button(
    nora: BrowserContext, house: House, name: str, answer: str
) -> None:
    page = await open_chat(nora, house, name)

    await page.locator(".question").get_by_role("button", name=answer).click()

    await expect(page.locator(".answered", has_text="You answered")).to_be_visible()
    await expect(page.locator(".question")).to_have_count(0)


async def test_a_conversation_is_archived_and_opened_again(
    nora: BrowserContext, house: House
) -> None:
    page = await open_chat(nora, house, "input")
    place = house.world.places["input"]
    row = page.locator(f"#row-{place}")
    await row.hover()
    await row.get_by_role("button", name="More for").click()
    await row.get_by_role("button", name="Archive").click()
    # Its work would be stopped.
    await page.get_by_role("dialog").get_by_role("button", name="Archive").click()
    await expect(row).to_have_count(0)

    # The page that is open says so.
    await expect(page.get_by_text("This is archived.")).to_be_visible()
    await expect(page.locator("#composer")).to_be_hidden()
    await page.get_by_role("button", name="Reopen").click()
    await expect(page.locator("#composer")).to_be_visible()
    await expect(row).to_be_visible()
