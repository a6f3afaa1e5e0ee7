"""Profiles are read again while the program runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from support.requirements import requirement
from support.stage.make import USER
from support.stage.until import until

from backburner import log
from backburner.actions.models import profiles
from backburner.app.build import App, build
from backburner.app.clock import Clock
from backburner.app.machines import build_machines
from backburner.app.model_reload import ModelReloader
from backburner.bus.local import LocalBus
from backburner.core.errors import Conflict
from backburner.core.routing import Routes
from backburner.ports import Hint, HintKind
from backburner.settings import load
from backburner.store.lifecycle.opening import open_database

KEY = "sk-canary-161803398874989"
LOCAL = f"""
profile = "local"
[profiles.local]
engine = "openai"
model = "qwen3:8b"
address = "http://127.0.0.1:9/v1"
key = "{KEY}"
seats = 2
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
async def app(data: Path) -> AsyncIterator[App]:
    settings, clock = load(data=str(data), commands="off"), Clock()
    with closing(open_database(settings.database.get_secret_value(), clock.read)) as database:
        machines = build_machines(settings, "backburner")
        app = build(settings, clock, database, LocalBus(), machines)
        reloader = ModelReloader(
            app, machines, lambda: load(data=str(data), commands="off"), "backburner"
        )
        app.deps.reload_models = reloader.reload
        following = asyncio.create_task(reloader.follow_hints())
        yield app
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await reloader.close()


@requirement("Z-model-change")
async def test_a_model_that_was_set_up_is_used_without_a_restart(app: App, data: Path) -> None:
    demo = app.deps.engines["demo"]
    (data / "models.toml").write_text(LOCAL)

    assert await app.deps.reload_models()

    assert app.deps.routes == Routes(names=("local", "demo"), chat="local")
    assert app.deps.default_profile == "local"
    assert set(app.deps.engines) == {"local", "demo"}
    # A profile that has not changed keeps its engine, and whatever that holds.
    assert app.deps.engines["demo"] is demo
    assert log.clean(f"It is {KEY}.") == f"It is {log.REPLACEMENT}."
    assert not await app.deps.reload_models()


async def test_a_profile_that_has_changed_gets_a_new_engine(app: App, data: Path) -> None:
    (data / "models.toml").write_text(LOCAL)
    await app.deps.reload_models()
    before = app.deps.engines["local"]
    (data / "models.toml").write_text(LOCAL.replace("qwen3:8b", "qwen3:14b"))

    assert await app.deps.reload_models()
    assert app.deps.engines["local"] is not before


async def test_keys_of_users_follow_the_kind_and_address_of_a_profile(app: App, data: Path) -> None:
    (data / "models.toml").write_text(LOCAL)
    await app.deps.reload_models()
    assert app.deps.model_servers == {
        "local": "openai key http://127.0.0.1:9/v1",
        "demo": "demo key ",
    }

    (data / "models.toml").write_text(LOCAL.replace("127.0.0.1:9", "127.0.0.1:8"))
    await app.deps.reload_models()

    assert app.deps.model_servers["local"] == "openai key http://127.0.0.1:8/v1"


@pytest.mark.parametrize(
    "text",
    ["profile = ", 'profile = "nobody"', LOCAL.replace("openai", "openapi"), "colour = 1"],
)
async def test_a_wrong_file_changes_nothing_and_the_error_says_why(
    app: App, data: Path, text: str
) -> None:
    before = app.deps.engines, app.deps.routes
    (data / "models.toml").write_text(text)

    with pytest.raises(Conflict, match="The models were not changed: ") as refused:
        await app.deps.reload_models()
    assert KEY not in str(refused.value)
    assert (app.deps.engines, app.deps.routes) == before


async def test_other_processes_reload_on_a_hint_and_survive_a_wrong_file(
    app: App, data: Path
) -> None:
    (data / "models.toml").write_text("profile = ")
    with capture_logs() as logs:
        app.bus.hint(Hint(HintKind.MODELS))
        await until(lambda: logs)
    assert logs[0]["event"] == "models.reload_failed"

    (data / "models.toml").write_text(LOCAL)
    app.bus.hint(Hint(HintKind.MODELS))
    await until(lambda: app.deps.routes.chat == "local")


async def test_the_models_are_listed_with_their_use(app: App) -> None:
    assert await profiles.list_models(app.deps, USER) == [
        profiles.ModelUse("demo", chats=True, background=True)
    ]
