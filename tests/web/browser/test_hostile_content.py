"""Text of others stays text on every page: no script runs, and no other server is asked."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from support.accessibility.fit import find_misfits
from support.browser.browsing import Browser, BrowserContext, FilePayload, Page, expect
from support.showcase.house import BOOKS, House, open_house
from support.showcase.looking import look_at, visiting
from support.showcase.pages import Look, list_looks
from web.browser import hostile

pytestmark = pytest.mark.timeout(400)

#: What scripts of others would leave, and what the policy of the page has refused.
WATCH = """
window.pwned = [];
window.refused = [];
for (const name of ["alert", "confirm", "prompt"]) window[name] = (text) => pwned.push(text);
document.addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI }) => {
  refused.push(`${violatedDirective} ${blockedURI}`);
});
"""
#: What must not be in a page, whatever ran.
FIND = """() => [...document.body.querySelectorAll("*")].flatMap((element) => {
  const names = [...element.attributes].map(({ name }) => name);
  const found = names.filter((name) => name.startsWith("on") || name === "srcdoc");
  const tags = /^(script|iframe|object|embed|base|meta|link|style|frame)$/;
  if (tags.test(element.localName)) found.push("tag");
  const address = element.getAttribute("href") ?? element.getAttribute("src") ?? "";
  if (/^\\s*(javascript|vbscript|data|file):/i.test(address)) found.push(address);
  const leads = element.localName === "a" && element.origin;
  const isOutside = leads && element.origin !== location.origin;
  if (isOutside && !/noopener|noreferrer/.test(element.rel)) found.push("no rel");
  return found.map((what) => `${what}: ${element.outerHTML.slice(0, 200)}`);
})"""
OPEN_ALL = """() => {
  for (const opener of document.querySelectorAll("#main [data-toggle][aria-expanded=false]")) {
    opener.click();
  }
}"""
LOOKS = [
    *(look for look in list_looks() if look.who == "nora" and not look.name.startswith("error")),
    Look("hostile", "/c/{hostile}"),
    Look("hostile-task", "/c/{hostile_task}"),
    Look("hostile-choice", "/c/{hostile_choice}"),
    Look("hostile-approval", "/c/{hostile_approval}"),
    Look("hostile-connection", "/connections/{connection:evil}"),
]


@dataclass
class Watched:
    """Somebody whose browser is watched."""

    context: BrowserContext
    house: House
    #: Of other servers.
    asked: list[str] = field(default_factory=list)

    async def find_harm(self, page: Page) -> list[str]:
        ran = await page.evaluate("[...pwned.map((one) => `ran ${one}`), ...refused]")
        return [*ran, *await page.evaluate(FIND), *self.asked]


@pytest.fixture(scope="module")
async def watched(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Watched]:
    async with (
        open_house(tmp_path_factory.mktemp("house"), *BOOKS, hostile) as house,
        visiting(browser, house, "nora") as context,
    ):
        watched = Watched(context, house)
        await context.add_init_script(WATCH)

        def note(url: str) -> None:
            if not url.startswith((house.address, "blob:")):
                watched.asked.append(f"asked for {url}")

        context.on("request", lambda request: note(request.url))
        yield watched


@pytest.mark.parametrize("look", LOOKS, ids=lambda look: look.name)
async def test_hostile_text_is_only_text(look: Look, watched: Watched) -> None:
    page = await watched.context.new_page()
    try:
        await look_at(page, watched.house, look)
        await page.evaluate(OPEN_ALL)
        await expect(page.locator("#main[aria-busy]")).to_have_count(0)
        assert await watched.find_harm(page) == []
        text = await page.locator("body").inner_text()
        assert "41447" not in text
        assert await find_misfits(page, 360) == []
    finally:
        await page.close()
    if look.name == "hostile":
        for shown in (hostile.TEMPLATE, hostile.BREAKOUT, "evil.svg"):
            assert shown in text


async def test_hostile_files_are_attached_shown_and_downloaded_as_files(watched: Watched) -> None:
    kinds = ("image/svg+xml", "text/html", "image/gif", *["application/pdf"] * 3)
    files = hostile.ATTACHED.items()
    given = [(name, kind, data) for (name, data), kind in zip(files, kinds, strict=True)]
    page = await watched.context.new_page()
    try:
        await look_at(page, watched.house, Look("", "/c/{hostile}"))
        await page.locator("input[type=file]").set_input_files(
            [FilePayload(name=name[:100], mimeType=kind, buffer=data) for name, kind, data in given]
        )
        await expect(page.locator(".composer .file:not([aria-busy])")).to_have_count(6)
        for name in ("evil.svg", "evil.html"):
            async with page.expect_download() as downloading:
                await page.locator(f".message [data-name='{name}']").first.click()
            assert (await downloading.value).suggested_filename == name
        assert await watched.find_harm(page) == []
    finally:
        await page.close()
