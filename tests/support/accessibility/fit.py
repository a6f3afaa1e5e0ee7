"""Whether a page fits: nothing beside the window, no text that is cut off without a sign of it."""

from functools import cache
from pathlib import Path

from support.browser.browsing import Page

TRIES = 5


@cache
def _script() -> str:
    return Path(__file__).with_suffix(".js").read_text()


async def find_misfits(page: Page, width: int, height: int = 740) -> list[str]:
    """List what does not fit into a window of this size."""
    await page.set_viewport_size({"width": width, "height": height})
    found: list[str] = []
    # What follows the size of the window may take a moment on a busy machine.
    for _ in range(TRIES):
        found = await page.evaluate(_script())
        if not found:
            break
        await page.wait_for_timeout(100)
    return [f"{width} px: {one}" for one in found]
