"""Runs in a real browser: watched while they work, opened by keyboard, stopped, and found later."""

import re
from collections.abc import AsyncIterator, Iterator

import pytest
from support.browser.browsing import Browser, Page, expect, person
from support.browser.visitors import Server, Visitor, sign_in
from support.doubles.engine import Call, End, Spend, Step
from support.faults import script
from support.programs.programs import PYTHON, starter

pytestmark = pytest.mark.timeout(400)

HOSTILE = "<img src=x onerror=alert(1)>"
DONE = End({"complete": True, "message": f"All **fine** {HOSTILE}"})
PHONE = {"width": 360, "height": 740}
WIDTHS = """[...document.querySelectorAll("#main, #main .page, #main .column")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.className)"""
FIVE_HOURS_AGO = 'localStorage.setItem("backburner-active", Date.now() - 5 * 3600e3)'


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server with an agent that does what its work says."""
    folder = tmp_path_factory.mktemp("scripted")
    data = folder / "data"
    given = ("--serve", "--traces", folder / "traces", "--data", data)
    with starter() as start:
        running = start(*given, command=(*PYTHON, "support.faults.program"))
        address = running.read_line().removeprefix("ready as ")
        yield Server(address, "", data, start, running)


@pytest.fixture
async def visitor(browser: Browser, program: Server) -> AsyncIterator[Visitor]:
    async with person(browser) as user:
        yield Visitor(await sign_in(user, program.make_link()), program)


async def begin(visitor: Visitor, name: str, *steps: Step) -> str:
    """Let work begin now, and return its conversation."""
    conversation_id = await plan(visitor, name, *steps)
    await visitor.call("POST", f"/api/conversations/{conversation_id}/run-now")
    return conversation_id


async def plan(visitor: Visitor, name: str, *steps: Step) -> str:
    body = {"name": name, "prompt": script.write(*steps), "when": "every day at 8:00"}
    made = await visitor.call("POST", "/api/tasks", {**body, "notify": "always"})
    conversation_id: str = made["id"]
    return conversation_id


async def expect_ended(page: Page) -> None:
    await expect(page.locator(".run-title .chip")).to_have_text("Went well")


async def test_work_is_watched_and_its_steps_are_opened_by_keyboard(visitor: Visitor) -> None:
    steps = (
        Spend(7),
        Call("look", {"text": HOSTILE}),
        Call("slow", {"text": "pytest", "seconds": 3}),
        Spend(5),
        DONE,
    )
    conversation_id = await plan(visitor, f"CI {HOSTILE}", *steps)
    page = await visitor.open(f"/c/{conversation_id}")
    await expect(page.locator("#tail")).to_contain_text("Nothing has been said here yet.")
    await page.get_by_role("button", name="Run now").click()
    await page.get_by_role("link", name="Watch").click()

    running = page.locator(".step.running")
    await expect(running).to_contain_text("test.slow")
    await expect(page.locator(".run-title .chip")).to_have_text("Working")
    await running.locator("button").focus()
    await page.keyboard.press("Enter")
    opened = page.locator(".step.running + .step-details")
    await expect(opened).to_contain_text("No result yet.")
    await expect(running.locator(".took")).to_have_text(re.compile(r"^[\d.]+\s?s$"))
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("k")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    look = page.locator(".step-details", has_text="look is done.")
    await expect(look).to_contain_text(HOSTILE)

    await expect_ended(page)
    # What was open stays open, with what has come since, and the focus stays where it was.
    await expect(page.locator(".step-details", has_text="slow is done.")).to_be_visible()
    await expect(look).to_be_visible()
    focused = page.locator(".step button:focus")
    await expect(focused).to_have_attribute("aria-expanded", "true")
    await page.keyboard.press("Enter")
    await expect(look).to_be_hidden()
    await expect(page.locator("#run-outcome strong")).to_have_text("fine")
    await expect(page.get_by_role("table", name="What it did")).to_be_visible()
    await expect(page.locator("#main img")).to_have_count(0)
    await page.locator("summary").press("Enter")
    await expect(page.locator(".told .command").first).to_contain_text("SCRIPT")

    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await page.evaluate(WIDTHS) == []


async def test_what_runs_now_is_seen_and_stopped(visitor: Visitor) -> None:
    page = await visitor.open("/running")
    await begin(visitor, "Endless", Call("slow", {"text": "x", "seconds": 300}), DONE)

    row = page.locator("#runs-now .run-line", has_text="Endless")
    await expect(row).to_contain_text("Uses slow")
    await row.get_by_role("button", name="Stop for good").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Stop this work for good?")
    await page.get_by_role("dialog").get_by_role("button", name="Stop for good").click()
    await expect(row).to_have_count(0)
    recent = page.locator("#runs-recent .run-line", has_text="Endless")
    await expect(recent).to_be_visible()
    await page.get_by_role("link", name="Failed", exact=True).click()
    await expect(recent).to_have_count(0)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await page.evaluate(WIDTHS) == []


async def test_an_absence_is_offered_in_a_chat_shown_and_then_seen(visitor: Visitor) -> None:
    asks = {"type": "confirmation", "prompt": "Shall I pay it?"}
    needs = End({"needs_input": True, "message": "An invoice came.", "question": asks})
    done = await begin(visitor, "Flats", Call("look"), DONE)
    asking = await begin(visitor, "Invoices", Call("look"), needs)
    page = await visitor.open(f"/c/{asking}")
    await expect(page.locator(".question")).to_be_visible()
    await expect(page.locator(f"#row-{done}")).not_to_contain_text("Working")
    await expect(page.locator("#away-offer")).to_have_count(0)

    offer = page.locator("#away-offer")
    await page.evaluate(FIVE_HOURS_AGO)
    await page.reload()
    await offer.get_by_role("button", name="Not now").click()
    await expect(offer).to_have_count(0)
    await page.evaluate(FIVE_HOURS_AGO)
    await page.reload()
    await expect(offer).to_contain_text("one asks you")
    await offer.get_by_role("link", name="Have a look").click()

    await expect(page.locator(".lead")).to_contain_text("One asks you something")
    lanes = page.locator(".away-lanes li")
    await expect(lanes.filter(has_text="Invoices").locator(".dot")).to_have_count(1)
    await expect(lanes.filter(has_text="Flats").locator("rect")).not_to_have_count(0)
    await expect(page.locator(".run-line", has_text="Flats")).to_contain_text("All fine")
    # It was shown, so the next summary begins here; this one stays, also when it is loaded again.
    await page.wait_for_url("**/away?since=*")
    await page.reload()
    await expect(lanes.filter(has_text="Invoices")).to_be_visible()
    question_id = await page.locator(".question").get_attribute("id")
    await page.keyboard.press("j")
    await page.keyboard.press("1")
    await expect(page.locator(f"#{question_id}")).to_have_count(0)
    await page.get_by_role("link", name="24 hours").click()
    await expect(lanes.filter(has_text="Flats")).to_be_visible()
    await page.get_by_role("link", name="Since you looked").click()
    await expect(lanes.filter(has_text="Flats")).to_have_count(0)
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    assert await page.evaluate(WIDTHS) == []


async def test_spending_is_reached_from_the_sidebar(visitor: Visitor) -> None:
    await begin(visitor, "Spends", Spend(4_000), DONE)
    page = await visitor.open("/new")
    await page.locator("#who .spent").click()

    await expect(page.get_by_role("heading", name="Spending")).to_be_visible()
    await expect(page.get_by_role("img", name="Spending per day, last 30 days")).to_be_visible()
    await expect(page.locator(".spenders a").first).to_be_visible()
