"""The pages for browsers: strict headers, no code in them, and forms that match the API."""

import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import Any, cast

import httpx2
import pytest
from starlette.applications import Starlette

from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.app.machines import NoTools
from backburner.ports import Store
from backburner.web.pages import (
    ASSETS,
    CALLBACK,
    PAGES,
    build_routes,
    read_file,
    render_page,
    render_view,
)

STRICT = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
KINDS = {"css": "text/css; charset=utf-8", "svg": "image/svg+xml"}


class Read(HTMLParser):
    """The tags of a page, and its forms with the names of their fields."""

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
    transport = httpx2.ASGITransport(app=Starlette(routes=build_routes()))
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        yield client


@pytest.mark.parametrize(
    "path", [*PAGES, "/c/c_1", "/q/q_1", CALLBACK, *(f"/assets/{name}" for name in ASSETS)]
)
async def test_pages_and_assets_have_strict_headers(pages: httpx2.AsyncClient, path: str) -> None:
    answer = await pages.get(path)

    assert answer.status_code == 200
    assert STRICT.items() <= dict(answer.headers).items()
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"default-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert {"require-trusted-types-for 'script'", "trusted-types 'none'"} <= set(policy)
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert (await pages.post(path)).status_code == 405


async def test_assets_have_the_right_media_type(pages: httpx2.AsyncClient) -> None:
    # With `nosniff` a browser runs a script only with the right type.
    for name in ASSETS:
        kind = (await pages.get(f"/assets/{name}")).headers["content-type"]
        wanted = KINDS.get(name.rpartition(".")[2])
        assert kind == wanted if wanted else re.fullmatch(r"(text|application)/javascript.*", kind)


async def test_the_page_of_a_conversation_or_question_is_the_same_for_every_id(
    pages: httpx2.AsyncClient,
) -> None:
    answers = [await pages.get(path) for path in ("/c/c_1", "/c/c_2", "/q/q_1", "/c/%3Cb%3E")]

    assert {(answer.status_code, answer.text) for answer in answers} == {(200, render_view())}
    assert (await pages.get("/c/c_1/more")).status_code == 404


@pytest.mark.parametrize("text", [*map(render_page, PAGES), render_view()])
def test_a_page_has_no_inline_code_and_loads_only_its_assets(text: str) -> None:
    page = Read(text)

    for tag, attributes in page.tags:
        assert not [one for one in attributes if one.startswith("on") or one == "style"], tag
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        for source in filter(None, (attributes.get("src"), attributes.get("href"))):
            assert source.removeprefix("/assets/") in ASSETS
    assert any(tag == "script" for tag, _ in page.tags)


@pytest.mark.parametrize("path", PAGES)
def test_every_form_sends_what_the_api_takes(path: str) -> None:
    described = openapi()
    forms = Read(render_page(path)).forms

    assert forms
    for form, fields in forms:
        sent = fields | {form["data-secret"]} if "data-secret" in form else fields
        operation = described["paths"][form["data-to"]]["post"]
        body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        schema = described["components"]["schemas"][body.rpartition("/")[2]]
        assert sent <= schema["properties"].keys()
        assert set(schema.get("required", ())) <= sent
        # Without the script, no input may get into an address.
        assert form["method"] == "post"
        assert "hidden" in form


@pytest.mark.parametrize("name", [name for name in ASSETS if name.endswith(".js")])
def test_a_script_never_turns_text_into_code(name: str) -> None:
    script = read_file(name)

    for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "http:"):
        assert word not in script


def openapi() -> dict[str, Any]:
    nothing = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    return build_api(nothing, hosts={"localhost"}, checks={}).openapi()
