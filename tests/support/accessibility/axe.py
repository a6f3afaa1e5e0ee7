"""axe, the checker of accessibility, in a page that a test has opened."""

from functools import cache
from pathlib import Path
from typing import Any

from support import npm_packages
from support.browser.browsing import Page

HERE = Path(__file__).parent
RUN = """async ([rules, without]) => {
  const options = rules.length ? { runOnly: { type: "rule", values: rules } } : {};
  options.rules = Object.fromEntries(without.map((rule) => [rule, { enabled: false }]));
  const { violations } = await axe.run(document, { ...options, resultTypes: ["violations"] });
  return violations.map(({ id, help, nodes }) => ({
    id, help, nodes: nodes.map(({ html, any, all, none }) => ({
      html: html.slice(0, 200),
      why: [...any, ...all, ...none].map((check) => check.message).join(" "),
    })),
  }));
}"""
IS_THERE = "typeof axe !== 'undefined'"


@cache
def _script() -> str:
    return (npm_packages.install(HERE, "axe") / "axe-core" / "axe.min.js").read_text()


async def find_violations(page: Page, *rules: str, without: tuple[str, ...] = ()) -> list[str]:
    """List what breaks a rule of axe, of any level; with names of rules, of those."""
    if not await page.evaluate(IS_THERE):
        await page.evaluate(_script())
    found: list[dict[str, Any]] = await page.evaluate(RUN, [list(rules), list(without)])
    return [
        f"{one['id']} ({one['help']}): {node['html']} - {node['why']}"
        for one in found
        for node in one["nodes"]
    ]
