"""The pages for browsers: strict headers, no code in them, and forms that match the API."""

import json
import re
import runpy
import struct
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest
from starlette.applications import Starlette

from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.app.machines import NoTools
from backburner.app.program import Invocation
from backburner.ports import Store
from backburner.web.assets import load_assets, version
from backburner.web.pages import CALLBACKS, PAGES, build_routes, render_page
from backburner.web.routes.shell import PATHS

STRICT = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
KINDS = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml", "png": "image/png"}
#: Of all pages together, as they are sent, each compressed by itself.
MAX_SCRIPTS, MAX_SCRIPT_BYTES = 6, 23_000
#: Of pages for who is not signed in, of the end of a sign-in elsewhere, and of the service worker.
SCRIPTS_OF_OTHERS = {"pages.js", "callback.js", "sw.js"}


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


@pytest.mark.parametrize("path", [*PAGES, *CALLBACKS, "/", "/c/c_1", "/q/q_1", "/settings/model"])
async def test_pages_have_strict_headers(pages: httpx2.AsyncClient, path: str) -> None:
    answer = await pages.get(path)

    assert answer.status_code == 200
    assert STRICT.items() <= dict(answer.headers).items()
    policy = answer.headers["content-security-policy"].split("; ")
    assert {"frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert {"default-src 'none'", "default-src 'self'"} & set(policy)
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert (await pages.post(path)).status_code == 405


@pytest.mark.parametrize("name", load_assets())
async def test_an_asset_has_its_type_and_is_cached_by_its_version(
    pages: httpx2.AsyncClient, name: str
) -> None:
    current = await pages.get(f"/assets/{version()}/{name}")
    other = await pages.get(f"/assets/000000000000/{name}")

    # With `nosniff` a browser runs a script only with the right type.
    assert current.headers["content-type"].partition(";")[0] == KINDS[name.rpartition(".")[2]]
    assert "immutable" in current.headers["cache-control"]
    # A page from before an update gets what there is, and does not keep it.
    assert other.headers["cache-control"] == "no-store"
    assert other.content == current.content == load_assets()[name].content


async def test_there_are_no_other_assets(pages: httpx2.AsyncClient) -> None:
    for name in ("nothing.js", "sign-in.html", "..%2fpages.py", "%00"):
        assert (await pages.get(f"/assets/{version()}/{name}")).status_code == 404


async def test_the_shell_is_the_same_for_every_address(pages: httpx2.AsyncClient) -> None:
    paths = [path.replace("{id}", "c_1").replace("{section}", "model") for path in PATHS]
    answers = [await pages.get(path) for path in [*paths, "/c/c_2", "/c/%3Cb%3E"]]

    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.text for answer in answers}) == 1
    assert (await pages.get("/c/c_1/more")).status_code == 404


@pytest.mark.parametrize("path", [*PAGES, "/"])
async def test_a_page_has_no_inline_code_and_loads_only_its_assets(
    pages: httpx2.AsyncClient, path: str
) -> None:
    page = Read((await pages.get(path)).text)

    for tag, attributes in page.tags:
        assert not [one for one in attributes if one.startswith("on") or one == "style"], tag
        assert tag != "style"
        assert tag != "script" or attributes.get("src")
        loaded = attributes.get("src") or (tag == "link" and attributes.get("href"))
        if loaded:
            assert (await pages.get(loaded)).status_code == 200
            assert loaded.startswith(("/assets/", "/manifest"))
    assert any(tag == "script" for tag, _ in page.tags)


async def test_the_scripts_are_few_and_small(pages: httpx2.AsyncClient) -> None:
    names = {file.name for file in files("backburner.web").joinpath("js").iterdir()}
    sizes = dict[str, int]()
    for name in names:
        async with pages.stream("GET", f"/assets/{version()}/{name}") as answer:
            assert answer.headers["content-encoding"] == "gzip"
            sizes[name] = len(b"".join([part async for part in answer.aiter_raw()]))

    assert len(sizes) <= MAX_SCRIPTS
    assert sum(sizes.values()) < MAX_SCRIPT_BYTES


@pytest.mark.parametrize("name", [name for name in load_assets() if name.endswith(".js")])
def test_a_script_is_sent_without_comments_and_indentation(name: str) -> None:
    sent = load_assets()[name].content.decode().splitlines()
    folder = files("backburner.web").joinpath("files" if name in SCRIPTS_OF_OTHERS else "js")
    written = folder.joinpath(name).read_text(encoding="utf-8")
    code = [line.strip() for line in written.splitlines()]

    assert not any(line.startswith((" ", "//")) for line in sent)
    left_out = [line for line in code if line and line not in sent]
    assert all(line.startswith(("//", "/*", "*")) for line in left_out)
    assert [line for line in code if line in sent and line] == sent
    # What spans lines would be changed.
    assert all(line.count("`") % 2 == 0 for line in code)


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


@pytest.mark.parametrize(
    ("command", "shown"),
    [("python3 dev.py run", "python3 dev.py run"), ("/opt/backburner", "backburner")],
)
def test_a_page_names_commands_as_they_are_called_and_no_folder(command: str, shown: str) -> None:
    page = render_page("/sign-in", Invocation(command=command).shown_command)

    assert f"<code>{shown} user link</code>" in page
    assert f'data-command="{shown}"' in page
    assert "&lt;b&gt; user link" in render_page("/sign-in", "<b>")


@pytest.mark.parametrize("name", [name for name in load_assets() if name.endswith(".js")])
def test_a_script_never_turns_text_into_code(name: str) -> None:
    script = load_assets()[name].content.decode()

    for word in ("outerHTML", "insertAdjacent", "document.write", "eval(", "http:"):
        assert word not in script
    # One place takes the fragments of our server, through the policy that the page allows.
    assert script.count("innerHTML") == (name == "page.js")


def test_no_template_takes_text_for_markup() -> None:
    folder = Path(str(files("backburner.web").joinpath("templates")))
    templates = {path.name: path.read_text() for path in folder.rglob("*.html")}

    assert len(templates) > 50
    for name, text in templates.items():
        # Only views make markup, of what they have escaped or cleaned.
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", text), name


async def test_the_page_can_be_installed(pages: httpx2.AsyncClient) -> None:
    manifest = (await pages.get("/manifest.webmanifest")).json()
    icons = [*manifest["icons"], *(icon for one in manifest["shortcuts"] for icon in one["icons"])]

    assert {one["url"] for one in manifest["shortcuts"]} <= set(PATHS)
    assert manifest["id"] == manifest["start_url"] == manifest["scope"] == "/"
    assert {one.get("purpose") for one in manifest["icons"]} == {"any", "maskable"}
    for icon in icons:
        answer = await pages.get(icon["src"])
        assert answer.headers["content-type"] == icon["type"]
        if icon["type"] == "image/png":
            width, height = struct.unpack(">II", answer.content[16:24])
            assert icon["sizes"] == f"{width}x{height}"


def test_the_icons_are_those_of_the_mark() -> None:
    drawn = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "draw_icons.py"))
    icon = next(one for one in drawn["ICONS"] if one.name == "badge.png")

    assert load_assets()["badge.png"].content == drawn["draw"](icon)
    assert {one.name for one in drawn["ICONS"]} == {n for n in load_assets() if n.endswith(".png")}


async def test_the_service_worker_keeps_the_frame_and_nothing_else(
    pages: httpx2.AsyncClient,
) -> None:
    answer = await pages.get("/sw.js")
    first, _, script = answer.text.partition("\n")
    frame = json.loads(first.removeprefix("const FRAME = ").removesuffix(";"))

    assert answer.headers["content-type"].partition(";")[0] == "text/javascript"
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'; connect-src")
    assert script == load_assets()["sw.js"].content.decode()
    loaded = Read((await pages.get("/")).text).tags
    needed = {a["src"] for tag, a in loaded if tag == "script"} | {
        a["href"] for tag, a in loaded if a.get("rel") in ("stylesheet", "icon")
    }
    assert needed <= set(frame["files"])
    for path in [*frame["files"], frame["icon"], frame["badge"]]:
        assert path.startswith(f"/assets/{version()}/")
        assert (await pages.get(path)).status_code == 200
    # What scripts load, they find: of modules that name each other, each is there.
    names = {path.rpartition("/")[2] for path in frame["files"]}
    for name in [name for name in names if name.endswith(".js")]:
        content = load_assets()[name].content.decode()
        assert set(re.findall(r'(?:from |import\()"\./(\w+\.js)"', content)) <= names


def openapi() -> dict[str, Any]:
    nothing = Deps(store=cast("Store", None), engines={}, default_profile="", toolbox=NoTools())
    return build_api(nothing, hosts={"localhost"}, checks={}).openapi()
