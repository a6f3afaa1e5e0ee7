"""A browser that tests drive, and people who use it: each has cookies and storage of their own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import (
    Browser,
    BrowserContext,
    FilePayload,
    Page,
    Route,
    ViewportSize,
    async_playwright,
    expect,
)

from support.browser.chromium import find_chromium

__all__ = [
    "Browser",
    "BrowserContext",
    "FilePayload",
    "Page",
    "Route",
    "ViewportSize",
    "browsing",
    "browsing_with_port",
    "expect",
    "person",
]

#: How long anything on a page may take, in milliseconds; only what is broken takes as long.
BOUND = 30_000
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
async def browsing_with_port(profile: Path, port: int) -> AsyncIterator[BrowserContext]:
    """Give a browser with a folder of its own, which other tools reach through a port."""
    program = await asyncio.to_thread(find_chromium)
    async with (
        async_playwright() as playwright,
        await playwright.chromium.launch_persistent_context(
            profile, executable_path=program, args=[f"--remote-debugging-port={port}"]
        ) as context,
    ):
        yield context


@asynccontextmanager
async def person(
    browser: Browser, *, allowed: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[BrowserContext]:
    """Give the browser of somebody new; in the end, no page of theirs has reported an error.

    `allowed` are parts of errors that the test is about.
    """
    errors = list[str]()
    async with await browser.new_context(**options) as context:
        context.set_default_timeout(BOUND)
        context.on("weberror", lambda found: errors.append(found.error.message))
        context.on(
            "console",
            lambda said: (
                errors.append(f"{said.text} {said.location['url']}")
                if said.type == "error"
                else None
            ),
        )
        yield context
    unexpected = [error for error in errors if not any(part in error for part in allowed)]
    assert not unexpected, unexpected
