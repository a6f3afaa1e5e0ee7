"""Every page of the showcase: accessible in light and dark, and whole in narrow windows."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from support.accessibility.axe import find_violations
from support.accessibility.fit import find_misfits
from support.browser.browsing import Browser, BrowserContext
from support.showcase.house import House, open_house
from support.showcase.looking import DESKTOP, look_at, visiting
from support.showcase.pages import Look, list_looks

#: Takes longest, and is the same at every size.
CONTRAST = "color-contrast"
#: A desktop at 200 %, and a narrow phone. Hostile text is looked at in a wider one.
SIZES = ((DESKTOP["width"] // 2, DESKTOP["height"] // 2), (320, 640))
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    async with open_house(tmp_path_factory.mktemp("house")) as house:
        yield house


@pytest.fixture(scope="module")
async def visitors(browser: Browser, house: House) -> AsyncIterator[dict[str, BrowserContext]]:
    async with AsyncExitStack() as stack:
        yield {
            who: await stack.enter_async_context(visiting(browser, house, who))
            for who in ("nora", "tomas", "")
        }


@pytest.mark.parametrize("look", list_looks(), ids=lambda look: look.name)
async def test_a_page_is_accessible_and_fits(
    look: Look, house: House, visitors: dict[str, BrowserContext]
) -> None:
    page = await visitors[look.who].new_page()
    try:
        await look_at(page, house, look)
        found = [f"light: {one}" for one in await find_violations(page)]
        await page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        found += [f"dark: {one}" for one in await find_violations(page, CONTRAST)]
        for width, height in SIZES:
            found += await find_misfits(page, width, height)
        found += [f"narrow: {one}" for one in await find_violations(page, without=(CONTRAST,))]
    finally:
        await page.close()
    assert not found, "\n".join(found)
