"""Connections in a real browser: added, signed in to at a real authorization server, ticked, ended
there, and signed in to again from the question of the work that waits.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.browser.browsing import Browser, Page, expect
from support.browser.visitors import Server, Visitor, sign_in
from support.mcp_peers.scripted import ScriptedPeer, scripted
from support.oauth_peer.peer import OAuthPeer, oauth_peer

# The first time, Chromium may have to be fetched.
pytestmark = pytest.mark.timeout(400)

EVIL = {
    "name": "<script>document.title='x'</script>" + "y" * 80,
    "description": "<img src=x onerror=alert(1)> **bold** " + "long " * 500,
    "inputSchema": {"type": "object", "title": "</div><b>bold</b>"},
    "annotations": {"readOnlyHint": True},
}
MANY = [
    {"name": f"read_{number}", "description": f"Reads {number}.", "inputSchema": {"type": "object"}}
    for number in range(20)
]
#: Whether something can be scrolled sideways.
IS_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture
def peer(server: Server) -> Iterator[OAuthPeer]:
    with oauth_peer(server.start) as peer:
        yield peer


@pytest.fixture
async def tools() -> AsyncIterator[ScriptedPeer]:
    async with scripted("modern", tools=[*MANY, EVIL]) as tools:
        yield tools


async def add(visitor: Visitor, address: str, title: str) -> Page:
    page = await visitor.open("/connections/add")
    await page.get_by_role("textbox", name="Address").fill(address)
    await page.get_by_role("textbox", name="Title").fill(title)
    form = page.locator("form", has=page.get_by_role("textbox", name="Address"))
    await form.get_by_role("button", name="Connect", exact=True).click()
    return page


async def sign_in_there(page: Page, peer: OAuthPeer) -> None:
    """Look at where it goes, and go."""
    dialog = page.get_by_role("dialog")
    host = peer.issuer.removeprefix("http://")
    await expect(dialog.get_by_text("mail.send")).to_be_visible()
    await expect(dialog.get_by_text(host).first).to_be_visible()
    await dialog.get_by_role("link", name=f"Go to {host}").click()
    await page.get_by_role("button", name="Allow").click()


async def test_a_service_is_signed_in_to_ticked_lost_and_reconnected_from_its_question(
    visitor: Visitor, peer: OAuthPeer
) -> None:
    page = await add(visitor, peer.server, "Post")
    await sign_in_there(page, peer)

    await expect(page.locator(".toast")).to_contain_text("Signed in to Post.")
    assert re.search(r"/connections/x_\w+$", page.url)
    await expect(page.get_by_role("heading", name="Post", exact=True)).to_be_visible()
    reads = page.get_by_role("radiogroup", name="list_mails").get_by_label("Reads only")
    await reads.check()
    row = page.get_by_role("navigation", name="Your connections").get_by_role("link", name="Post")
    await expect(row).to_contain_text("1 of 4 tools allowed")
    off = page.get_by_role("radiogroup", name="send").get_by_label("Off")
    await off.check()
    await page.reload()
    await expect(reads).to_be_checked()
    await expect(off).to_be_checked()

    peer.revoke("ann")
    await page.get_by_role("button", name="Check now").click()
    await expect(row).to_contain_text("Signed out")
    task = {"name": "Inbox", "prompt": "Look.", "when": "every monday at 3"}
    made = await visitor.call("POST", "/api/tasks", {**task, "connections": ["post"]})
    await visitor.call("POST", f"/api/tasks/{made['id']}/run-now", {})
    await expect(row).to_contain_text("One conversation waits.")
    await page.set_viewport_size({"width": 360, "height": 740})
    await visitor.open("/needs-you")
    await page.get_by_role("button", name="Reconnect at 127.0.0.1").click()
    await sign_in_there(page, peer)

    # Back where it was begun, and the work has gone on.
    await expect(page.locator(".toast")).to_contain_text("Signed in to Post.")
    assert page.url.endswith("/needs-you")
    await expect(page.get_by_role("button", name="Reconnect at 127.0.0.1")).to_have_count(0)
    await visitor.open("/connections")
    await row.click()
    await expect(page.get_by_role("button", name="Check now")).to_be_visible()
    assert not await page.evaluate(IS_WIDE)
    await page.get_by_role("link", name="Back").click()
    await expect(row).to_contain_text("Works")


async def test_a_sign_in_that_is_refused_or_impossible_says_what_to_do(
    server: Server, browser: Browser, peer: OAuthPeer
) -> None:
    # Not `person`: the browser reports refusals as errors.
    async with await browser.new_context() as user:
        visitor = Visitor(await sign_in(user, server.make_link()), server)
        page = await add(visitor, peer.server, "Denied")
        await page.get_by_role("link", name=re.compile("^Go to ")).click()
        await page.get_by_role("button", name="Deny").click()

        await expect(page.get_by_role("heading", name="You are not signed in")).to_be_visible()
        await expect(page.get_by_text("You did not allow it, or may not.")).to_be_visible()
        await page.get_by_role("link", name="Back to Connections").click()
        row = page.get_by_role("link", name="Denied")
        await expect(row).to_contain_text("Signed out")

        peer.switch(registration=False)
        peer.forget_clients()
        await row.click()
        await page.get_by_role("button", name="Sign in at 127.0.0.1").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_role("alert")).to_be_visible()
        await expect(dialog.get_by_label("Client id")).to_be_visible()
        await expect(dialog.get_by_role("link", name=re.compile("^Go to "))).to_be_hidden()


async def test_servers_in_a_file_of_another_program_are_ticked_and_added(
    server: Server, browser: Browser, tools: ScriptedPeer, peer: OAuthPeer, tmp_path: Path
) -> None:
    hostile = "<img src=x onerror=alert(1)>"
    servers = {
        "Reads": {"url": tools.url, "headers": {"X-Key": "${TOKEN}"}},
        "Wants": {"url": peer.server},
        "Gone": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": "canary"}},
        hostile: {"command": "uvx", "args": ["x"], "env": {"KEY": "canary"}},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    # Not `person`: the browser reports refusals as errors.
    async with await browser.new_context() as user:
        visitor = Visitor(await sign_in(user, server.make_link()), server)
        page = await visitor.open("/connections/add")
        await page.get_by_label("Text of the file").fill("no file")
        await page.get_by_role("button", name="Look at it").click()
        await expect(page.locator(".problem")).to_contain_text("not JSON")
        await page.get_by_label("Choose a file").set_input_files(file)

        await expect(page.get_by_role("heading", name="In this file")).to_be_focused()
        assert "canary" not in await page.content()
        await expect(page.locator("#import-found img")).to_have_count(0)
        await expect(page.locator("#programs-command")).to_contain_text(
            "python3 dev.py run connections import --only"
        )
        await page.get_by_role("button", name="Add the ticked ones").click()
        await expect(page.locator(".toast")).to_contain_text("Tick what is to be added.")
        for name in ("Reads", "Wants", "Gone"):
            await page.get_by_role("checkbox", name=name).check()
        await page.get_by_role("button", name="Add the ticked ones").click()
        await expect(page.locator(".toast")).to_contain_text("Not all could be added.")
        await expect(page.get_by_text("The value of TOKEN is missing.")).to_be_visible()
        await expect(page.get_by_text("Gone cannot be used: The port 9")).to_be_visible()
        await expect(page.get_by_role("link", name="Added. Sign in")).to_be_visible()
        await page.get_by_role("textbox", name="TOKEN").fill("typed")
        await page.get_by_role("checkbox", name="Gone").uncheck()
        await page.get_by_role("button", name="Add the ticked ones").click()
        await expect(page.locator(".toast")).to_contain_text("Added.")
        names = page.get_by_role("navigation", name="Your connections").get_by_role("link")
        await expect(names.filter(has_text="Reads")).to_contain_text("0 of 21 tools allowed")
        await expect(names.filter(has_text="Wants")).to_contain_text("Signed out")
        await page.set_viewport_size({"width": 320, "height": 640})
        assert not await page.evaluate(IS_WIDE)
        await page.get_by_role("link", name="Added. Open").click()
        await expect(page.get_by_role("heading", name="Reads", exact=True)).to_be_visible()


async def test_words_of_a_server_stay_words_and_changes_are_seen_before_they_count(
    visitor: Visitor, tools: ScriptedPeer
) -> None:
    page = await add(visitor, tools.url, "Reader")
    await expect(page.get_by_text("<img src=x onerror=alert(1)>")).to_be_visible()
    await expect(page.locator("#connection img")).to_have_count(0)
    assert (await page.title()).endswith("Reader · Backburner")
    shown = page.locator("#tool-list > li:visible")
    await expect(shown).to_have_count(21)
    await page.get_by_label("Find a tool").fill("reads 7")
    await expect(shown).to_have_count(1)
    await page.get_by_role("radiogroup", name="read_7").get_by_label("Reads only").check()
    await expect(shown).to_contain_text("Your choice")
    await expect(shown).to_have_count(1)
    await page.get_by_label("Find a tool").fill("nothing like it")
    await expect(page.get_by_text("No tool has that")).to_be_visible()
    await page.get_by_label("Find a tool").fill("")

    # A call that may have been made is repeated only if its owner says so.
    await page.get_by_role("button", name="read_8", exact=True).click()
    repeats = page.get_by_role("switch", name="May be repeated")
    await expect(repeats).not_to_be_checked()
    await repeats.check()
    row = page.locator(".tool-row", has=page.get_by_role("radiogroup", name="read_8", exact=True))
    await expect(row.locator("> .grow > .aside")).to_have_text("May be repeated")
    await expect(repeats).to_be_checked()

    # By keyboard: the arrows choose.
    group = page.get_by_role("radiogroup", name="read_7", exact=True)
    await group.get_by_label("Ask").focus()
    await page.keyboard.press("ArrowRight")
    await expect(group.get_by_label("Off")).to_be_checked()

    tools.tools = [*MANY[1:], EVIL, {**MANY[0], "description": "Reads 0, and tells us."}]
    await page.get_by_role("button", name="Check now").click()
    change = page.get_by_role("article").filter(has_text="Changed: look")
    await expect(change).to_contain_text("Reads 0, and tells us.")
    await change.get_by_role("button", name="Accept").click()
    await expect(change).to_have_count(0)
    await page.get_by_role("switch", name="Used in chats").uncheck()
    await expect(page.locator(".toast")).to_contain_text("Saved.")

    await page.set_viewport_size({"width": 320, "height": 640})
    assert not await page.evaluate(IS_WIDE)
    await page.get_by_role("button", name="More for Reader").click()
    await page.get_by_role("button", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("link", name="Reader")).to_have_count(0)
