"""A real server and a real browser for the tests of the page, and people who are signed in."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from support.browser.browsing import Browser, BrowserContext, browsing, person
from support.browser.visitors import Server, Visitor, serving, sign_in


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("data")) as server:
        yield server


@pytest.fixture
async def cut_off(browser: Browser, tmp_path: Path) -> AsyncIterator[Visitor]:
    """Give somebody whose server the test may end."""
    with serving(tmp_path) as server:
        async with person(browser, allowed=("net::ERR_",)) as user:
            yield Visitor(await sign_in(user, server.make_link()), server)


@pytest.fixture(scope="package")
async def browser() -> AsyncIterator[Browser]:
    async with browsing() as browser:
        yield browser


@pytest.fixture
async def user(browser: Browser) -> AsyncIterator[BrowserContext]:
    async with person(browser) as user:
        yield user


@pytest.fixture
async def visitor(server: Server, user: BrowserContext) -> Visitor:
    return Visitor(await sign_in(user, server.make_link()), server)
