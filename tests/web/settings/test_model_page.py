"""The section of models, with the real setup: what operators in person see, and nobody's keys."""

from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from support.people.page import Page

from backburner.actions.accounts import sign_in, users
from backburner.actions.deps import Deps
from backburner.api.app import build_api
from backburner.app.build import build
from backburner.app.clock import Clock
from backburner.app.machines import build_machines
from backburner.app.model_reload import ModelReloader
from backburner.app.models.stored import StoredModels
from backburner.bus.local import LocalBus
from backburner.core.accounts import Role
from backburner.core.run import Failure, FailureKind
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database
from backburner.web.page_routes import add_pages

KEY = "sk-canary-27182818284590"
MODELS = "/api/operate/models"
MODEL = {"kind": "openai", "model": "small", "address": "http://127.0.0.1:9/v1", "key": KEY}


@dataclass(frozen=True)
class Install:
    deps: Deps
    page: httpx2.AsyncClient

    async def read(self, path: str = "/page/settings/model") -> str:
        answer = await self.page.get(path)
        assert answer.status_code == 200, answer.text
        assert KEY not in answer.text
        text: str = answer.text
        return text


@pytest.fixture
async def install(
    tmp_path: Path, migrated_sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Install]:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    monkeypatch.delenv("BACKBURNER_MODEL", raising=False)
    settings, clock = load(data=str(data), commands="off"), Clock()
    with closing(open_database(migrated_sqlite_url, clock.read)) as database:
        machines = build_machines(settings, "backburner")
        app = build(settings, clock, database, LocalBus(), machines)
        reloader = ModelReloader(
            app, machines, lambda: load(data=str(data), commands="off"), "backburner"
        )
        app.deps.reload_models = reloader.reload
        app.deps.model_setup = StoredModels(reloader)
        api = build_api(app.deps, hosts={"localhost"}, checks={})
        add_pages(api)
        owner = await users.ensure_owner(app.deps)
        assert owner is not None
        link = await sign_in.issue_link(app.deps, owner.id)
        transport = httpx2.ASGITransport(app=api)
        headers = {"content-type": "application/json"}
        async with Page(transport=transport, base_url="http://localhost", headers=headers) as page:
            assert (await page.post("/api/sign-in", json={"link": link.secret})).is_success
            yield Install(app.deps, page)
        await reloader.close()


async def test_the_card_for_the_first_model_is_for_chats_and_goes_once_there_is_one(
    install: Install,
) -> None:
    page = await install.read()
    assert "The demo" in page
    assert page.count("<details") == 4
    assert 'value="chats" data-type="list" checked' in page
    assert "/settings/model" in await install.read("/page/new")

    saved = await install.page.put(f"{MODELS}/local", json={**MODEL, "use_for": ["chats"]})
    assert saved.is_success, saved.text
    page = await install.read()
    assert "small · 127.0.0.1:9 · with a key" in page
    assert "Used for chats, and for background work until another is chosen" in page
    assert 'data-call="DELETE /api/operate/models/local"' in page
    # The next one gets another name, and is not used for anything unless asked.
    assert 'value="local-2"' in page
    assert 'value="chats" data-type="list" checked' not in page
    assert "/settings/model" not in await install.read("/page/new")


async def test_trouble_of_a_model_is_told_with_what_its_server_says(install: Install) -> None:
    await install.page.put(f"{MODELS}/local", json={**MODEL, "use_for": ["chats"]})
    trouble = Failure(FailureKind.ACCESS_DENIED, "Bad <key>.")
    await install.deps.store.transact(lambda tx: tx.outages.note("local", trouble, probed=False))

    page = await install.read()

    assert "The key was refused, or no credit is left, since today" in page
    assert "Bad &lt;key&gt;." in page


async def test_who_does_not_operate_in_person_sees_names_only(install: Install) -> None:
    await install.page.put(f"{MODELS}/house", json={**MODEL, "use_for": ["chats"]})
    made = await install.page.post(
        "/api/tokens", json={"name": "ops", "scopes": ["operate", "read"]}
    )
    bearer = {"authorization": f"Bearer {made.json()['token']}"}
    by_token = (await install.page.get("/page/settings/model", headers=bearer)).text
    added = await users.add(
        install.deps,
        actor=(await users.find(install.deps, None)).id,
        login="ann",
        name="",
        role=Role.MEMBER,
    )
    link = await sign_in.issue_link(install.deps, added[0].id)
    await install.page.post("/api/sign-in", json={"link": link.secret})
    by_member = await install.read()

    for page in (by_token, by_member):
        assert "house" in page
        assert "Used for chats and background work" in page
        assert "127.0.0.1:9" not in page
        assert MODELS not in page
        assert "An operator of this server sets models up." in page
