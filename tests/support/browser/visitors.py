"""A running server, and people who are signed in to its page."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.browser.browsing import BrowserContext, Page, expect
from support.programs.programs import Running, Start, starter

#: Asks the API from within a page, with both halves of its session.
CALL = """async ([method, path, body]) => {
  const key = localStorage.getItem("backburner-session");
  const headers = { "content-type": "application/json", "x-backburner-session": key };
  const response = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}"""


@dataclass(frozen=True)
class Server:
    address: str
    #: Signs in once.
    printed_link: str
    data: Path
    start: Start
    running: Running

    def make_link(self) -> str:
        running = self.start("user", "link", "--data", self.data)
        return running.read_line()


@dataclass(frozen=True)
class Visitor:
    """Somebody who is signed in, with a page open."""

    page: Page
    server: Server

    async def call(self, method: str, path: str, body: Any = None) -> Any:
        """Ask the API with the session of the page."""
        return await self.page.evaluate(CALL, [method, path, body])

    async def open(self, path: str) -> Page:
        await self.page.goto(f"{self.server.address}{path}")
        await expect(self.page.locator("#main [data-title], #main form").first).to_be_attached()
        return self.page

    async def say(self, text: str) -> str:
        """Begin a conversation, and return its id."""
        made = await self.call("POST", "/api/conversations", {"message": text})
        conversation_id: str = made["id"]
        return conversation_id


async def sign_in(user: BrowserContext, link: str) -> Page:
    page = await user.new_page()
    await page.goto(link)
    await page.get_by_role("button", name="Sign in").click()
    await expect_signed_in(page)
    return page


async def expect_signed_in(page: Page) -> None:
    await expect(page.get_by_role("navigation", name="Conversations")).to_be_visible()


@contextmanager
def serving(data: Path, **settings: str) -> Iterator[Server]:
    with starter() as start:
        # Servers of connections and push services are on this machine.
        env = {
            **os.environ,
            # As a checkout starts it.
            "BACKBURNER_COMMAND": "python3 dev.py run",
            "BACKBURNER_PRIVATE_NETWORKS": "127.0.0.1/32",
            "BACKBURNER_PUSH_CONTACT": "mailto:ada@example.com",
            **{f"BACKBURNER_{name.upper()}": value for name, value in settings.items()},
        }
        running = start("up", "--port", "0", "--data", data, env=env)
        address = running.wait_until_ready()
        link = [running.read_line() for _ in range(3)][-1].split()[-1]
        yield Server(address, link, data, start, running)
