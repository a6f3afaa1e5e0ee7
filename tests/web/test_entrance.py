"""The pages behind links: served with all that shuts others out, and in step with the API."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, cast

import httpx2
import pytest
from starlette.applications import Starlette

from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.app.machines import NoTools
from backburner.ports import Store
from backburner.web.entrance import PAGES, PARTS, build_pages

STRICT = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
KINDS = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


class Read(HTMLParser):
    """What a page has: its tags, and its forms with the names of their fields."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.forms: list[tuple[dict[str, str | None], set[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.tags.append((tag, found))
        if tag == "form":
            self.forms.append((found, set()))
        elif name := found.get("name") if tag == "input" else None:
            self.forms[-1][1].add(name)


@pytest.fixture
async def pages() -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=Starlette(routes=build_pages()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


def read(name: str) -> Read:
    return Read(files("backburner.web").joinpath("files", name).read_text())


@pytest.mark.parametrize("path", [*PAGES, *(f"/parts/{name}" for name in PARTS)])
async def test_each_is_served_with_everything_shut(pages: httpx2.AsyncClient, path: str) -> None:
    answer = await pages.get(path)

    assert answer.status_code == 200
    assert STRICT.items() <= dict(answer.headers).items()
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert {"require-trusted-types-for 'script'", "trusted-types 'none'"} <= set(policy)
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert (await pages.post(path)).status_code == 405


async def test_scripts_and_looks_are_known_for_what_they_are(pages: httpx2.AsyncClient) -> None:
    # A browser that may not guess takes nothing else for a script.
    for name in PARTS:
        kind = (await pages.get(f"/parts/{name}")).headers["content-type"]
        wanted = KINDS.get(name.rpartition(".")[2])
        assert kind == wanted if wanted else re.fullmatch(r"(text|application)/javascript.*", kind)


@pytest.mark.parametrize("name", sorted(set(PAGES.values())))
def test_a_page_has_no_code_of_its_own_and_takes_only_what_is_served(name: str) -> None:
    page = read(name)

    for tag, attributes in page.tags:
        assert not [one for one in attributes if one.startswith("on") or one == "style"], tag
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        for source in filter(None, (attributes.get("src"), attributes.get("href"))):
            assert source.removeprefix("/parts/") in PARTS
    assert any(tag == "script" for tag, _ in page.tags)


@pytest.mark.parametrize("name", sorted(set(PAGES.values())))
def test_every_form_sends_what_the_api_takes(name: str) -> None:
    described = openapi()
    forms = read(name).forms

    assert forms
    for form, fields in forms:
        sent = fields | {form["data-secret"]} if "data-secret" in form else fields
        operation = described["paths"][form["data-to"]]["post"]
        body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        schema = described["components"]["schemas"][body.rpartition("/")[2]]
        assert sent <= schema["properties"].keys()
        assert set(schema.get("required", ())) <= sent
        # Without the script nothing typed may get into an address.
        assert form["method"] == "post"
        assert "hidden" in form


def test_the_script_makes_no_code_of_text() -> None:
    script = files("backburner.web").joinpath("files", "entrance.js").read_text()

    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "http:"):
        assert word not in script


def openapi() -> dict[str, Any]:
    nothing = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    return build_api(nothing, hosts={"localhost"}, checks={}).openapi()
