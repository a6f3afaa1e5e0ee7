"""Writes pictures of every page of the showcase: `python3 dev.py screenshots`."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

import structlog
from support.browser.browsing import Browser, BrowserContext, browsing
from support.showcase.fonts import add_fonts
from support.showcase.house import House, open_house
from support.showcase.looking import DESKTOP, PHONE, Size, look_at, visiting
from support.showcase.pages import Look, list_looks

SIZES = {"desktop": DESKTOP, "phone": PHONE}
THEMES = ("light", "dark")
README = Path(__file__).parent / "page.png"
README_LOOK, README_SIZE = Look("readme", "/c/{builds}"), Size(width=1200, height=740)


async def write_pictures(folder: Path, names: list[str]) -> tuple[int, int]:
    """Write the pictures of all pages, or of those whose names begin like one of these.

    Return how many pages there are, and how many looks at them failed.
    """
    looks = [one for one in list_looks() if one.name.startswith(tuple(names or [""]))]
    failed = 0
    with tempfile.TemporaryDirectory() as data:
        async with open_house(Path(data)) as house, browsing() as browser:
            if README_LOOK.name in names:
                await write_readme_picture(browser, house)
            for who in ("nora", "tomas", ""):
                wanted = [look for look in looks if look.who == who]
                failed += await _write_of(browser, house, who, wanted, folder)
    return len(looks), failed


async def write_readme_picture(browser: Browser, house: House) -> None:
    async with visiting(browser, house, "nora", bypass_csp=True) as context:
        await add_fonts(context)
        await _write(context, house, README_LOOK, [(README, "light")], README_SIZE)


async def _write_of(
    browser: Browser, house: House, who: str, looks: list[Look], folder: Path
) -> int:
    """Write the pictures of what somebody sees; return how many looks failed."""
    if not looks:
        return 0
    failed = 0
    async with visiting(browser, house, who, device_scale_factor=2, bypass_csp=True) as context:
        await add_fonts(context)
        for look in looks:
            for device, size in SIZES.items():
                files = [(folder / f"{look.name}-{device}-{theme}.png", theme) for theme in THEMES]
                failed += not await _write(context, house, look, files, size)
    return failed


async def _write(
    context: BrowserContext, house: House, look: Look, files: list[tuple[Path, str]], size: Size
) -> bool:
    """Write pictures of a page in some themes; False: it cannot be shown."""
    page = await context.new_page()
    await page.set_viewport_size(size)
    try:
        await look_at(page, house, look)
        await page.evaluate("document.fonts.ready")
        for path, theme in files:
            await page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            await page.screenshot(path=path, animations="disabled")
    except Exception as error:  # noqa: BLE001 (the other pages are worth a look as well)
        print(f"{look.name}: {error}", file=sys.stderr)
        return False
    else:
        return True
    finally:
        await page.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="dev.py screenshots", description="Write a picture of every page, with made-up people."
    )
    parser.add_argument("folder", nargs="?", default="screenshots", type=Path)
    parser.add_argument(
        "names",
        nargs="*",
        metavar="name",
        help="how the names of the wanted pages begin; `readme` is the picture of the README",
    )
    wanted = parser.parse_args()
    # What the stories do is in the pictures; nobody has to read it.
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    wanted.folder.mkdir(parents=True, exist_ok=True)
    pages, failed = asyncio.run(write_pictures(wanted.folder, wanted.names))
    print(f"Pictures of {pages} pages are in {wanted.folder}.")
    if failed:
        print(f"{failed} looks at them failed, as said above.", file=sys.stderr)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
