"""Models are tested, stored, chosen and removed through the API, and used without a restart."""

import stat
import tomllib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs
from support.people.page import Page
from support.requirements import requirement
from support.servers.model_servers import ModelServer, model_server

from backburner.actions.accounts import sign_in, users
from backburner.api.app import build_api
from backburner.app.build import App, build
from backburner.app.clock import Clock
from backburner.app.machines import build_machines
from backburner.app.model_reload import ModelReloader
from backburner.app.models.stored import StoredModels
from backburner.bus.local import LocalBus
from backburner.core.run import Failure, FailureKind
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database

KEY = "sk-canary-161803398874989"
MODELS = "/api/operate/models"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with model_server() as server:
        yield server


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
async def app(data: Path, migrated_sqlite_url: str) -> AsyncIterator[App]:
    settings, clock = load(data=str(data), commands="off"), Clock()
    with closing(open_database(migrated_sqlite_url, clock.read)) as database:
        machines = build_machines(settings, "backburner")
        app = build(settings, clock, database, LocalBus(), machines)
        reloader = ModelReloader(
            app, machines, lambda: load(data=str(data), commands="off"), "backburner"
        )
        app.deps.reload_models = reloader.reload
        app.deps.model_setup = StoredModels(reloader)
        yield app
        await reloader.close()


@pytest.fixture
async def page(app: App) -> AsyncIterator[httpx2.AsyncClient]:
    """The browser of the owner, with both halves of its session."""
    api = build_api(app.deps, hosts={"localhost"}, checks={})
    owner = await users.ensure_owner(app.deps)
    assert owner is not None
    link = await sign_in.issue_link(app.deps, owner.id)
    headers = {"content-type": "application/json"}
    async with Page(
        transport=httpx2.ASGITransport(app=api), base_url="http://localhost", headers=headers
    ) as page:
        assert (await page.post("/api/sign-in", json={"link": link.secret})).status_code == 200
        yield page


def local(server: ModelServer, **more: Any) -> dict[str, Any]:
    return {"kind": "openai", "model": "small", "address": f"{server.address}/v1", **more}


def claude(server: ModelServer, **more: Any) -> dict[str, Any]:
    return {"kind": "claude-key", "model": "claude-x", "address": server.address, **more}


async def listed(page: httpx2.AsyncClient) -> dict[str, Any]:
    found = await page.get(MODELS)
    assert found.status_code == 200, found.text
    assert KEY not in found.text
    return {one["profile"]: one for one in found.json()["items"]}


def stored(data: Path) -> dict[str, Any]:
    return tomllib.loads((data / "models.toml").read_text())


@requirement("Z-setup")
async def test_a_model_is_tested_stored_and_used_at_once(
    page: httpx2.AsyncClient, app: App, data: Path, server: ModelServer
) -> None:
    entry = claude(server, key=KEY)

    tried = (await page.post(f"{MODELS}/test", json={"entry": entry})).json()
    assert (tried["works"], tried["message"]) == (True, "claude-x answers.")
    assert tried["latency_ms"] >= 0
    assert not (data / "models.toml").exists()

    saved = await page.put(f"{MODELS}/claude", json={**entry, "use_for": ["chats"]})

    assert saved.status_code == 200, saved.text
    assert KEY not in saved.text
    assert app.deps.routes.chat == "claude"
    assert set(app.deps.engines) == {"claude", "demo"}
    mine = (await listed(page))["claude"]
    assert mine == {
        "profile": "claude",
        "kind": "claude-key",
        "model": "claude-x",
        "address": server.address,
        "has_key": True,
        "seats": 5,
        "chats": True,
        "background": True,
        "can_change": True,
        "state": "works",
        "trouble": "",
        "since": None,
        "next_try_at": None,
    }
    assert stored(data)["profiles"]["claude"]["key"] == KEY
    assert stat.S_IMODE((data / "models.toml").stat().st_mode) == 0o600


async def test_several_models_are_kept_and_each_role_is_chosen(
    page: httpx2.AsyncClient, app: App, server: ModelServer
) -> None:
    await page.put(f"{MODELS}/one", json=local(server))
    # A model is not used just because it is the first.
    assert app.deps.routes.chat == "demo"
    await page.put(f"{MODELS}/two", json=local(server, use_for=["background"]))
    assert (app.deps.routes.chat, app.deps.routes.background) == ("demo", "two")

    chosen = await page.patch(MODELS, json={"chats": "one"})
    assert chosen.status_code == 200
    assert (app.deps.routes.chat, app.deps.routes.background) == ("one", "two")

    await page.patch(MODELS, json={"background": None})
    assert (app.deps.routes.chat, app.deps.routes.background) == ("one", None)
    assert [name for name, one in (await listed(page)).items() if one["background"]] == ["one"]
    nobody = await page.patch(MODELS, json={"chats": "nobody"})
    assert nobody.status_code == 400
    assert "There are: one, two, demo." in nobody.json()["hint"]


async def test_a_key_stays_where_it_was_stored_for_and_goes_nowhere_else(
    page: httpx2.AsyncClient, data: Path, server: ModelServer
) -> None:
    await page.put(f"{MODELS}/claude", json=claude(server, key=KEY))

    changed = await page.put(f"{MODELS}/claude", json=claude(server, model="claude-y"))
    assert changed.status_code == 200
    assert stored(data)["profiles"]["claude"] == {
        "engine": "claude",
        "address": server.address,
        "model": "claude-y",
        "key": KEY,
    }

    with model_server() as other:
        for path, method, body in (
            (f"{MODELS}/claude", "PUT", claude(other)),
            (f"{MODELS}/test", "POST", {"profile": "claude", "entry": claude(other)}),
            (
                f"{MODELS}/test",
                "POST",
                {"profile": "claude", "entry": claude(server, kind="claude-token")},
            ),
        ):
            refused = await page.request(method, path, json=body)
            assert refused.status_code == 400, path
            assert "is needed." in refused.json()["detail"]
        listing = {"profile": "claude", "entry": local(other)}
        assert (await page.post(f"{MODELS}/offered", json=listing)).json()["models"]
        assert all("authorization" not in asked.headers for asked in other.asked)
        assert KEY not in str(other.asked)

    same = {"profile": "claude", "entry": claude(server, model="claude-z")}
    assert (await page.post(f"{MODELS}/test", json=same)).json()["message"] == "claude-z answers."
    assert server.asked[-1].headers["x-api-key"] == KEY


async def test_a_stored_model_is_tested_as_it_is(
    page: httpx2.AsyncClient, server: ModelServer
) -> None:
    await page.put(f"{MODELS}/local", json=local(server, key=KEY))

    tried = (await page.post(f"{MODELS}/test", json={"profile": "local"})).json()
    demo = (await page.post(f"{MODELS}/test", json={"profile": "demo"})).json()
    gone = await page.post(f"{MODELS}/test", json={"profile": "gone"})

    assert tried["message"] == "small answers."
    assert demo["works"]
    assert gone.status_code == 404
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_failed_test_says_what_is_wrong_in_words(
    page: httpx2.AsyncClient, server: ModelServer
) -> None:
    async def tried(**more: Any) -> Any:
        entry = local(server, key=KEY, **more)
        answer = await page.post(f"{MODELS}/test", json={"entry": entry})
        assert answer.status_code == 200
        assert KEY not in answer.text
        return answer.json()

    unlisted = await tried(model="nosuch")
    assert unlisted["works"]
    assert unlisted["note"] == "The server does not list nosuch. It lists: large, small."
    server.answers["/v1/chat/completions"] = (404, {"error": f"no such model {KEY}"})
    missing = await tried(model="nosuch")
    assert (missing["trouble"], missing["offered"]) == ("model", ["large", "small"])
    assert missing["message"].endswith("There are: large, small.")
    server.answers["/v1/chat/completions"] = (401, "")
    assert (await tried())["message"] == "The key was refused (401)."
    nowhere = await tried(address="http://127.0.0.1:9/v1")
    assert nowhere["trouble"] == "unreachable"
    assert nowhere["message"].startswith("http://127.0.0.1:9/v1 cannot be reached")


async def test_the_models_of_a_server_are_listed_or_the_reason(
    page: httpx2.AsyncClient, server: ModelServer
) -> None:
    async def offered(entry: dict[str, Any]) -> Any:
        return (await page.post(f"{MODELS}/offered", json={"entry": entry})).json()

    none = {"problem": "", "hint": ""}
    assert await offered(local(server, model="")) == {"models": ["large", "small"], **none}
    assert await offered(claude(server, key=KEY)) == {"models": ["large", "small"], **none}
    assert server.asked[-1].headers["x-api-key"] == KEY
    server.answers["/v1/models"] = (200, {"data": [{"id": KEY}, {"id": "a\nb"}, {"id": "x"}]})
    assert await offered(local(server, key=KEY)) == {"models": ["x"], **none}
    server.answers["/v1/models"] = (401, KEY)
    refused = await offered(local(server, key=KEY))
    assert (refused["models"], refused["problem"]) == ([], "The key was refused (401).")


async def test_a_model_is_removed_unless_chats_use_it(
    page: httpx2.AsyncClient, app: App, data: Path, server: ModelServer
) -> None:
    await page.put(f"{MODELS}/local", json=local(server, key=KEY, use_for=["chats"]))
    await page.put(f"{MODELS}/other", json=local(server, use_for=["background"]))

    in_use = await page.delete(f"{MODELS}/local")
    assert (in_use.status_code, in_use.json()["detail"]) == (409, "Chats use this model.")
    assert (await page.delete(f"{MODELS}/other")).status_code == 204
    assert app.deps.routes.background is None
    await page.patch(MODELS, json={"chats": "demo"})
    assert (await page.delete(f"{MODELS}/local")).status_code == 204

    assert set(app.deps.engines) == {"demo"}
    assert KEY not in (data / "models.toml").read_text()
    assert (await page.delete(f"{MODELS}/local")).status_code == 404
    assert (await page.delete(f"{MODELS}/demo")).status_code == 409


@pytest.mark.parametrize(
    ("name", "changes", "status", "named"),
    [
        ("two words", {}, 400, "cannot be the name"),
        ("demo", {}, 400, "built in"),
        ("local", {"address": "over there"}, 400, "invalid address"),
        ("local", {"address": f"http://u:{KEY}@127.0.0.1/v1"}, 400, "user or password"),
        ("local", {"model": ""}, 400, "a model that is not text"),
        ("local", {"key": f"two {KEY}"}, 400, "contains spaces"),
        ("local", {"kind": "clod"}, 422, "invalid"),
        # An agent of that name is in the settings.
        ("scout", {}, 409, "the name of an agent"),
    ],
)
async def test_what_is_wrong_is_refused_without_the_key_and_changes_nothing(
    page: httpx2.AsyncClient,
    app: App,
    data: Path,
    server: ModelServer,
    *,
    name: str,
    changes: dict[str, Any],
    status: int,
    named: str,
) -> None:
    (data / "backburner.toml").write_text('[agents.scout]\ninstructions = "Look."\n')
    await page.put(f"{MODELS}/kept", json=local(server))
    before = (data / "models.toml").read_bytes(), app.deps.engines, app.deps.routes

    with capture_logs() as logs:
        refused = await page.put(f"{MODELS}/{name}", json=local(server, key=KEY) | changes)

    assert refused.status_code == status, refused.text
    assert named in refused.text
    assert KEY not in refused.text + str(logs)
    assert ((data / "models.toml").read_bytes(), app.deps.engines, app.deps.routes) == before


async def test_models_that_are_set_elsewhere_stay_there_and_the_answer_says_where(
    page: httpx2.AsyncClient,
    app: App,
    data: Path,
    server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (data / "backburner.toml").write_text(
        f'[profiles.given]\nengine = "openai"\nmodel = "m"\naddress = "{server.address}/v1"\n'
    )
    monkeypatch.setenv("BACKBURNER_PROFILE", "given")
    await app.deps.reload_models()

    found = (await page.get(MODELS)).json()
    assert found["obstacle"] == ""
    assert found["chats_obstacle"] == "The model of chats is set by BACKBURNER_PROFILE."
    assert [one["can_change"] for one in found["items"]] == [False, False]
    for method, path, body in (
        ("PUT", f"{MODELS}/given", local(server)),
        ("DELETE", f"{MODELS}/given", None),
        ("PUT", f"{MODELS}/mine", local(server, use_for=["chats"])),
        ("PATCH", MODELS, {"chats": "demo"}),
    ):
        refused = await page.request(method, path, json=body)
        assert refused.status_code == 409, (method, path)
        assert "is set by" in refused.json()["detail"]
    assert not (data / "models.toml").exists()
    # What is not set elsewhere can be stored.
    assert (await page.put(f"{MODELS}/mine", json=local(server))).status_code == 200
    assert app.deps.routes.chat == "given"


async def test_a_wrong_models_file_is_reported_and_left_alone(
    page: httpx2.AsyncClient, data: Path, server: ModelServer
) -> None:
    (data / "models.toml").write_text("profiles = 1")

    found = (await page.get(MODELS)).json()
    refused = await page.put(f"{MODELS}/local", json=local(server))

    assert "is invalid" in found["obstacle"]
    assert refused.status_code == 409
    assert "backburner setup" in refused.json()["hint"]
    assert (data / "models.toml").read_text() == "profiles = 1"


async def test_other_values_of_a_profile_are_kept_when_it_is_changed(
    page: httpx2.AsyncClient, data: Path, server: ModelServer
) -> None:
    address = f"{server.address}/v1"
    (data / "models.toml").write_text(
        f'profile = "demo"\n[profiles.local]\nengine = "openai"\nmodel = "m"\nseats = 3\n'
        f'address = "{address}"\nimages = true\nprice = "1 in, 2 out"\n'
    )

    assert (await page.put(f"{MODELS}/other", json=local(server))).status_code == 200
    await page.put(f"{MODELS}/local", json=local(server, model="m", key=KEY))
    assert stored(data)["profiles"]["local"]["images"] is True
    await page.put(f"{MODELS}/local", json=local(server, model="n"))

    assert stored(data)["profiles"]["local"] == {
        "engine": "openai",
        "address": address,
        "model": "n",
        "key": KEY,
        "seats": 3,
    }


async def test_trouble_of_a_model_is_shown_with_its_time(
    page: httpx2.AsyncClient, app: App, server: ModelServer
) -> None:
    await page.put(f"{MODELS}/local", json=local(server))
    denied = Failure(FailureKind.ACCESS_DENIED, "The model's API refused the key.")
    outage = app.database.run(lambda tx: tx.outages.note("local", denied, probed=False))

    shown = (await listed(page))["local"]

    assert (shown["state"], shown["trouble"]) == ("refused", denied.message)
    assert shown["since"].startswith(outage.since.isoformat()[:19])
    down = Failure(FailureKind.UNAVAILABLE, "Overloaded.")
    app.database.run(lambda tx: tx.outages.note("demo", down, probed=False))
    assert (await listed(page))["demo"]["state"] == "outage"


async def test_each_change_is_recorded_without_the_key(
    page: httpx2.AsyncClient, server: ModelServer
) -> None:
    await page.put(f"{MODELS}/local", json=local(server, key=KEY, use_for=["chats"]))
    await page.patch(MODELS, json={"chats": "demo", "background": None})
    await page.delete(f"{MODELS}/local")

    acts = (await page.get("/api/audit")).json()["items"]

    assert [(act["act"], act["detail"]) for act in acts] == [
        ("model_removed", "local"),
        ("models_chosen", "background: as chats, chats: demo"),
        ("model_saved", f"local: openai, small, {server.address}/v1, chats"),
    ]


async def test_a_member_and_a_token_of_an_operator_set_up_nothing(
    page: httpx2.AsyncClient, server: ModelServer
) -> None:
    scopes = ["read", "write", "approve", "operate"]
    made = await page.post("/api/tokens", json={"name": "script", "scopes": scopes})
    token = {"authorization": f"Bearer {made.json()['token']}"}
    for method, path, body in (
        ("GET", MODELS, None),
        ("PATCH", MODELS, {"chats": "demo"}),
        ("POST", f"{MODELS}/test", {"entry": local(server)}),
        ("POST", f"{MODELS}/offered", {"entry": local(server)}),
        ("PUT", f"{MODELS}/local", local(server)),
        ("DELETE", f"{MODELS}/local", None),
    ):
        refused = await page.request(method, path, json=body, headers=token)
        assert refused.status_code == 403, (method, path)
        assert refused.json()["detail"] == "A token cannot set up models."
    assert server.asked == []
