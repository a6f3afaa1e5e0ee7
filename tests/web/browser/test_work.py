"""Tasks, the calendar, schedules and jobs in a real browser: made by words, and shown at once."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.browser.browsing import Browser, BrowserContext, Page, expect, person
from support.browser.visitors import Visitor
from support.requirements import requirement

pytestmark = pytest.mark.timeout(400)

EVIL = 'Water </title><script>alert(1)</script> <img src=x onerror="alert(2)"> plants'
#: Proposes a task as a program with a token does.
PROPOSE = """async ([token, task]) => {
  const headers = { "content-type": "application/json", authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18" };
  const ask = async (body) => {
    const options = { method: "POST", headers, credentials: "omit" };
    const body_ = JSON.stringify({ jsonrpc: "2.0", ...body });
    const answer = await fetch("/mcp", { ...options, body: body_ });
    const session = answer.headers.get("mcp-session-id");
    if (session) headers["mcp-session-id"] = session;
    return answer.text();
  };
  const client = { protocolVersion: "2025-06-18", capabilities: {},
    clientInfo: { name: "robot", version: "1" } };
  await ask({ id: 1, method: "initialize", params: client });
  await ask({ method: "notifications/initialized" });
  const params = { name: "task_propose", arguments: task };
  return ask({ id: 2, method: "tools/call", params });
}"""


@pytest.fixture
async def user(browser: Browser) -> AsyncIterator[BrowserContext]:
    """Give somebody who types times that are refused."""
    async with person(browser, allowed=("status of 400",)) as user:
        yield user


async def propose(visitor: Visitor, **task: Any) -> None:
    token = await visitor.call("POST", "/api/tokens", {"name": "Robot", "scopes": ["write"]})
    said = await visitor.page.evaluate(PROPOSE, [token["token"], task])
    assert "Proposed" in said, said


async def choose(page: Page, text: str) -> None:
    """Open the editor of the schedule, and type."""
    await page.locator(".side-card").get_by_role("button", name="Change").first.click()
    await page.locator("#schedule-when").fill(text)


@requirement("B-task")
async def test_a_task_is_made_by_words_and_stands_in_the_calendar(visitor: Visitor) -> None:
    page = await visitor.open("/tasks")
    await page.get_by_role("link", name="New task").click()
    await page.locator("#task-prompt").fill("remind me to water the plants")
    await page.locator("#task-name").fill(EVIL)
    await page.locator("#task-when").fill("fridays")
    preview = page.locator(".preview")
    await expect(preview).to_contain_text("lacks a time of day")
    # An example of the error fills the field, and is explained in turn.
    await preview.get_by_role("button", name="every monday at 9").click()
    await expect(preview).to_contain_text("Mondays at 9:00")
    await page.get_by_role("button", name="Weekdays at 8").click()
    await expect(preview).to_contain_text("Weekdays at 8:00")
    await expect(preview.locator("li")).to_have_count(3)
    await page.locator("#task-allowance").fill("$2")
    await page.get_by_role("button", name="Start it").click()

    await expect(page.locator("#task h1")).to_have_text(EVIL)
    await expect(page.locator("#task")).to_contain_text("$0.00 of $2.00 so far")
    address = page.url
    await page.get_by_role("link", name="Tasks and calendar").click()
    await expect(page.locator(".task-row .title", has_text="Water")).to_have_text(EVIL)
    await page.get_by_role("link", name="Calendar", exact=True).click()
    entries = page.locator(".week .entry", has_text="Water")
    await entries.first.focus()
    await page.keyboard.press("ArrowRight")
    await expect(entries.nth(1)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(address)


async def test_a_task_is_changed_tried_paused_and_run_on_its_page(visitor: Visitor) -> None:
    task = {"name": "Plants", "prompt": "remind me to water the plants", "when": "mondays at 9"}
    made = await visitor.call("POST", "/api/tasks", task)
    page = await visitor.open(f"/t/{made['id']}")
    await choose(page, "every blue moon")
    wrong = page.get_by_text("This is not a time I know.")
    await expect(wrong).to_have_count(1)
    await page.locator("#schedule-editor").get_by_role("button", name="Save").click()
    await expect(page.locator("#schedule-when")).to_be_focused()
    await expect(wrong).to_have_count(1)
    await expect(page.locator("#schedule-editor .problem")).to_have_count(1)
    await page.locator("#schedule-when").fill("every day at 18:30")
    await expect(page.locator("#schedule-editor .preview")).to_contain_text("Every day at 18:30")
    await page.locator("#schedule-editor").get_by_role("button", name="Save").click()
    await expect(page.locator(".side-card").first).to_contain_text("Every day at 18:30")
    await expect(page.locator("#schedule-editor")).to_be_hidden()

    await expect(page.locator(".side-card").first).to_contain_text("missed times run once")
    await page.locator(".side-card").first.get_by_role("button", name="Change").click()
    await page.locator("#schedule-editor").get_by_role("radio", name="Skip them").check()
    await expect(page.locator(".side-card").first).to_contain_text("missed times are skipped")
    await expect(page.locator("#schedule-editor")).to_be_hidden()

    await page.get_by_role("button", name="Try it once").click()
    await expect(page.locator(".toast")).to_contain_text("The test run has begun")
    await page.get_by_role("button", name="Run now").click()
    runs = page.locator("#task-runs tbody tr")
    await expect(runs).to_have_count(1)
    await expect(runs.first).to_contain_text("Time to water the plants")
    await expect(runs.first).to_contain_text("you, Run now")
    await page.get_by_role("button", name="Pause", exact=True).click()
    await expect(page.locator(".main-stack .chips").first).to_contain_text("Paused by you")
    await page.locator(".toast").get_by_role("button", name="Undo").click()
    await expect(page.locator(".main-stack .chips").first).to_contain_text("Next")

    await page.get_by_role("button", name="Edit", exact=True).click()
    await page.locator("#edit-name").fill("Water the plants")
    await page.locator("#edit-notify").select_option("never")
    await page.get_by_role("dialog").get_by_role("button", name="Save").click()
    await expect(page.locator("#task h1")).to_have_text("Water the plants")
    await expect(page.locator("#task")).to_contain_text("never, except for questions")


@requirement("B-approve-cli")
async def test_a_proposal_comes_by_itself_and_is_started(visitor: Visitor) -> None:
    page = await visitor.open("/tasks")
    await propose(
        visitor,
        name="Nightly",
        prompt="Check \u202emain.",
        when="every day at 2:00",
        why="It broke.",
    )
    card = page.locator(".question", has_text="Start “Nightly”?")
    await expect(card).to_contain_text("It runs every day at 2:00.")
    await expect(card.locator(".times li")).to_have_count(3)
    # What cannot be seen is shown by its code.
    await expect(card).to_contain_text("Check \\u202emain.")

    await card.get_by_role("button", name="Try it once").click()
    await expect(page.locator("#task h1")).to_have_text("Nightly")
    await expect(page.locator(".toast")).to_contain_text("The test run has begun")
    # Here it has its own button for that.
    await expect(page.locator(".question .quiet", has_text="Try it once")).to_have_count(0)
    await page.go_back()
    await card.get_by_role("link", name="Change…").click()
    await expect(page.locator("#task h1")).to_have_text("Nightly")
    await choose(page, "every day at 3:00")
    await page.locator("#schedule-editor").get_by_role("button", name="Save").click()
    await expect(page.locator(".question")).to_contain_text("It runs every day at 3:00.")
    await page.locator(".question").get_by_role("button", name="Start it").click()
    await expect(page.locator(".question")).to_have_count(0)
    await expect(page.get_by_role("button", name="Run now")).to_be_visible()


async def test_a_chat_is_given_work_with_the_clock_beside_the_field(visitor: Visitor) -> None:
    conversation_id = await visitor.say("remind me to stretch")
    page = await visitor.open(f"/c/{conversation_id}")
    await page.get_by_role("button", name="Schedule", exact=True).click()
    editor = page.locator("#schedule-editor")
    await expect(editor.locator("#schedule-what")).to_have_value("remind me to stretch")
    await editor.get_by_role("button", name="Every hour").click()
    await expect(editor.locator(".preview")).to_contain_text("Every hour")
    await editor.get_by_role("button", name="Save").click()
    chip = page.locator("#head > .chips button")
    await expect(chip).to_contain_text("Every hour")

    await chip.click()
    await expect(editor.locator("#schedule-when")).to_have_value("every hour")
    await editor.get_by_role("button", name="Stop the work").click()
    await page.get_by_role("dialog").get_by_role("button", name="Stop the work").click()
    await expect(chip).to_have_count(0)


async def test_jobs_are_followed_in_their_tree(visitor: Visitor) -> None:
    conversation_id = await visitor.say("hello there")
    page = await visitor.open("/jobs")
    tree = page.locator(f"#tree-{conversation_id}")
    wanted = {"conversation": conversation_id, "prompt": "ask me whether to go on"}
    asking = await visitor.call("POST", "/api/jobs", {**wanted, "description": EVIL})
    await expect(tree.locator(".job .title")).to_have_text(EVIL)
    await expect(tree).to_contain_text("Asks: Shall I go on?")
    await expect(tree).to_contain_text("0 of 1 done")
    await tree.locator("summary").click()
    await expect(tree.locator(".job").first).to_be_hidden()
    # What was folded stays folded when something changes.
    done = {**wanted, "prompt": "remind me to stretch", "description": "Stretch"}
    await visitor.call("POST", "/api/jobs", done)
    await expect(tree).to_contain_text("1 of 2 done")
    await expect(tree.locator(".job").first).to_be_hidden()

    await page.goto(f"{visitor.server.address}/jobs/{asking['id']}")
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").last.click()
    await expect(page.locator("#jobs")).to_contain_text("Cancelled")
    await visitor.open(f"/c/{conversation_id}")
    await expect(page.locator("#about")).to_contain_text("of 2 done")


@pytest.mark.parametrize("width", [360, 800])
async def test_nothing_is_wider_than_the_screen(visitor: Visitor, width: int) -> None:
    made = await visitor.call(
        "POST", "/api/tasks", {"name": "W" * 150 + str(width), "prompt": "x" * 300, "when": "now"}
    )
    await visitor.page.set_viewport_size({"width": width, "height": 740})
    for path in ("/tasks", "/tasks/new", "/calendar?paused=true", "/jobs", f"/t/{made['id']}"):
        page = await visitor.open(path)
        boxes = "document.documentElement, ...document.querySelectorAll('.page')"
        over = f"Math.max(...[{boxes}].map((box) => box.scrollWidth - box.clientWidth))"
        assert await page.evaluate(over) == 0, path
