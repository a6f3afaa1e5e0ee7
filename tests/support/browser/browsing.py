"""A browser that tests drive, and people who use it: each has cookies and storage of their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, BrowserContext, Page, async_playwright, expect

from support.browser.chromium import find_chromium

__all__ = ["Browser", "BrowserContext", "Page", "browsing", "expect", "person"]

#: How long anything on a page may take, in milliseconds; only what is broken takes as long.
BOUND = 10_000
expect.set_options(timeout=BOUND)


@asynccontextmanager
async def browsing() -> AsyncIterator[Browser]:
    program = await asyncio.to_thread(find_chromium)
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch(executable_path=program) as browser,
    ):
        yield browser


@asynccontextmanager
async def person(browser: Browser, **options: Any) -> AsyncIterator[BrowserContext]:
    """Give the browser of somebody new; in the end, no page of theirs has reported an error."""
    errors = list[str]()
    async with await browser.new_context(**options) as context:
        context.set_default_timeout(BOUND)
        context.on("weberror", lambda found: errors.append(found.error.message))
        context.on(
            "console", lambda said: errors.append(said.text) if said.type == "error" else None
        )
        yield context
    assert not errors, errors
