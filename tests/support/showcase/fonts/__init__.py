"""Fonts for pictures: those that the page names, and that machines for tests do not have.

The page asks for none, and its policy allows none, so a picture is taken without the policy.
"""

from pathlib import Path

from support import npm_packages
from support.browser.browsing import BrowserContext, Route

HERE = Path(__file__).parent
FONTS = {"Inter": "inter", "JetBrains Mono": "jetbrains-mono"}
ADD = """document.addEventListener("DOMContentLoaded", () => {
  const style = document.createElement("style");
  style.textContent = `%s`;
  document.head.append(style);
});"""
FACE = """@font-face {
  font-family: "%s"; font-weight: 100 900; src: url("/fonts/%s.woff2") format("woff2");
}"""


async def add_fonts(context: BrowserContext) -> None:
    """Give every page of a context the fonts; it must have been made with `bypass_csp`."""
    packages = npm_packages.install(HERE, "fonts") / "@fontsource-variable"

    async def serve(route: Route) -> None:
        name = Path(route.request.url).stem
        await route.fulfill(path=packages / name / "files" / f"{name}-latin-wght-normal.woff2")

    await context.route("**/fonts/*.woff2", serve)
    faces = "\n".join(FACE % font for font in FONTS.items())
    await context.add_init_script(ADD % faces)
